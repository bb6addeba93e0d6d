-- expire: ends the sessions that are overdue, oldest deadline first.
-- Flags: allow-oom
-- Parts: prelude.records prelude.runs prelude.ended prelude.called
--
-- ARGV     1 most sessions to end in this step   2 about how many events to keep
--          3 how long ends are kept, ms; missing: an hour
-- Returns  { ended, next deadline ms or 0, Redis time ms, ends forgotten, base_seq }
-- Errors   NOQUEUE  the queue does not exist
--
-- Invariants: only sessions whose deadline has passed by Redis's clock end; a session ends once; state.active is the
-- size of the set. Also forgets ends that are too old, or too many. Work is bounded by ARGV[1] ends and as
-- many forgotten.
local most, keep = tonumber(ARGV[1]), ARGV[2]
local PORTION = 1000 -- visitors in one call of Redis; unpack is limited by Lua's stack

local state, expired_total, unclaimed_total, called_before = open_state('expired', 'unclaimed', 'called')
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
    redis.call('HDEL', K_SESSIONS, unpack(visitors, from, to))
    redis.call('ZADD', K_ENDED, unpack(ended))
end

local due = redis.call('ZRANGE', K_ACTIVE, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
if #due > 0 then
    check_types()
    expired_total, unclaimed_total = read_counter(expired_total) + #due, read_counter(unclaimed_total)
    if called then
        redis.call('ZCARD', held_key()) -- fails likewise
    end
    for from = 1, #due, PORTION do
        end_sessions(due, from, math.min(from + PORTION - 1, #due))
    end
    redis.call('ZREMRANGEBYRANK', K_ACTIVE, 0, #due - 1)
    local events = {}
    if #expired > 0 then
        events[1] = { EVENT.freed, runs_of(expired), REASON.expired }
    end
    if n_unclaimed > 0 then
        events[#events + 1] = { EVENT.freed, runs_of(unclaimed), REASON.unclaimed }
    end
    state.active = state.active - #due
    local changes = { 'expired', expired_total, 'unclaimed', unclaimed_total + n_unclaimed }
    if called then
        changes[5], changes[6] = 'called', called_text(called)
    end
    commit(state, changes, events, keep)
end

local forgotten = forget_ended(now, most, tonumber(ARGV[3] or ENDED_KEPT_MS))

local first = redis.call('ZRANGE', K_ACTIVE, 0, 0, 'WITHSCORES')
local deadline = tonumber(first[2] or 0) or 0
if deadline >= 2 ^ 53 then -- damaged: infinite
    deadline = 0
end
return { #due, deadline, now, forgotten, state.base_seq }
