-- SPDX-License-Identifier: Apache-2.0
-- expire: ends the sessions that are overdue, oldest deadline first.
-- Flags: allow-oom
-- Parts: prelude.records prelude.runs prelude.ended prelude.called prelude.unapplied
-- Parts: expire.ahead expire.held expire.remembered
--
-- ARGV     1 most sessions to end in this step   2 about how many events to keep
--          3 how long ends are kept, ms; missing: an hour
-- Returns  { ended, when the next session may end, ms, or 0, Redis time ms, ends forgotten, base_seq }
-- Errors   NOQUEUE  the queue does not exist
--
-- Invariants: only sessions whose deadline has passed by Redis's clock end, and none whose claim or renewal may be on
-- its way (expire.held.lua); a session ends once; state.active is the size of the set. Also forgets ends that are too
-- old, or too many, and corrects what a clock left that was ahead (expire.ahead.lua). Work is bounded by ARGV[1] ends
-- and as many forgotten.
local most, keep = tonumber(ARGV[1]), ARGV[2]
local PORTION = 1000 -- visitors in one call of Redis; unpack is limited by Lua's stack

local state, expired_total, unclaimed_total, called_before, full_since, recover_since, recover_until, started, base_ms =
    open_state('expired', 'unclaimed', 'called', 'full_since', 'recover_since', 'recover_until', 'started', 'base_ms')
if not state then
    return no_queue()
end
local now = now_ms()

-- The places whose sessions end, by whether they were claimed. A damaged session ends too, but its place is not known.
local expired, unclaimed, n_unclaimed = {}, {}, 0
local score_expired, score_unclaimed = end_score(now, REASON.expired), end_score(now, REASON.unclaimed)

local called = parse_called(called_before) -- where the queue is overbooked
if called then
    load_called()
    if called.since > now + AHEAD_MS then
        called.n = -1 -- counting begins again
    end
end

-- Who was called and never came. A damaged session tells nothing: counting begins again.
local function note_noshow(visitor, session)
    local _, admitted_ms, claimed = parse_session(session)
    if not admitted_ms then
        called.n = -1
    elseif not claimed and end_unclaimed(called, visitor, admitted_ms) then
        called.noshows = called.noshows + 1
    end
end

local function end_sessions(visitors, from, to)
    local sessions = redis.call('HMGET', K_SESSIONS, unpack(visitors, from, to))
    local ended, n, n_expired = {}, 0, #expired
    for i = from, to do
        local place, claimed = parse_session_fast(sessions[i - from + 1])
        if place and not claimed then
            n_unclaimed = n_unclaimed + 1
            unclaimed[n_unclaimed] = place
            ended[n + 1] = score_unclaimed
        else
            if place then
                n_expired = n_expired + 1
                expired[n_expired] = place
            end
            ended[n + 1] = score_expired
        end
        n = n + 2
        ended[n] = visitors[i]
        if called and called.n >= 0 then
            note_noshow(visitors[i], sessions[i - from + 1])
        end
    end
    redis.call('ZREM', K_ACTIVE, unpack(visitors, from, to)) -- not by rank: one that goes on may be due again
    redis.call('HDEL', K_SESSIONS, unpack(visitors, from, to))
    redis.call('ZADD', K_ENDED, unpack(ended))
end

local c = redis.call('HMGET', K_CONFIG, 'session_ttl', 'claim_ttl')
local session_ttl, claim_ttl = tonumber(c[1] or '') or 2 ^ 50, tonumber(c[2] or '') or 0
local due = redis.call('ZRANGE', K_ACTIVE, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
local again = 0
if #due > 0 then
    local last
    last, again = ends_until(now, base_ms)
    due = last < now and redis.call('ZRANGE', K_ACTIVE, '-inf', int(last), 'BYSCORE', 'LIMIT', 0, most) or due
end
local ahead = sessions_ahead(now, session_ttl, claim_ttl)
local changes = correct_times(now, full_since, recover_since, recover_until, started)
local events = #changes > 0 and { { EVENT.config } } or {}
if #due > 0 or #ahead > 0 or #changes > 0 or called and called.n < 0 then
    check_types()
    expired_total, unclaimed_total = read_counter(expired_total), read_counter(unclaimed_total)
    if called or #ahead > 0 then
        redis.call('ZCARD', key_of('held')) -- fails likewise
    end
    correct_sessions(ahead, now, claim_ttl, events)
    if #due > 0 and redis.call('TYPE', K_LOST).ok == 'hash' then
        due = keep_remembered(due, called, events)
    end
    for from = 1, #due, PORTION do
        end_sessions(due, from, math.min(from + PORTION - 1, #due))
    end
    if #due > 0 then
        local n = #changes
        changes[n + 1], changes[n + 2] = 'expired', expired_total + #due
        changes[n + 3], changes[n + 4] = 'unclaimed', unclaimed_total + n_unclaimed
    end
    if #expired > 0 then
        events[#events + 1] = { EVENT.freed, runs_of(expired), REASON.expired }
    end
    if n_unclaimed > 0 then
        events[#events + 1] = { EVENT.freed, runs_of(unclaimed), REASON.unclaimed }
    end
    state.active = state.active - #due
    if called and called_text(called) ~= called_before then
        changes[#changes + 1], changes[#changes + 2] = 'called', called_text(called)
    end
    if #events > 0 or #changes > 0 then
        commit(state, changes, events, keep)
    end
end

correct_ends(now)
local forgotten = forget_ended(now, most, tonumber(ARGV[3] or ENDED_KEPT_MS))

local first = redis.call('ZRANGE', K_ACTIVE, 0, 0, 'WITHSCORES')
local deadline = tonumber(first[2] or 0) or 0
if deadline >= 2 ^ 53 then -- damaged: infinite
    deadline = 0
elseif deadline > 0 and deadline <= now and #due < most then -- it is held
    deadline = math.max(deadline, again)
end
return { #due, deadline, now, forgotten, state.base_seq }
