-- SPDX-License-Identifier: Apache-2.0
-- expire: ends the sessions that are overdue, oldest deadline first. Also forgets ends that are too old, or too many,
-- and corrects what a clock left that was ahead.
-- args     1 most sessions to end, and ends to forget, in this step   2 keep
--          3 how long ends are kept, ms; missing: an hour
-- returns  EXPIRE
--
-- Invariants: only sessions whose deadline has passed by Redis's clock end, and none whose claim or renewal may be on
-- its way (ends_until); a session ends once.

local FIELDS = state.fields({ 'expired', 'unclaimed' },
    { 'called', 'handed', 'base_ms', 'full_since', 'recover_since', 'recover_until', 'started' })
local SETTINGS = settings.list({ 'session_ttl', 'claim_ttl', 'session_max', 'session_sliding' })
local WRITES = { 'waiting', 'active', 'ended', 'events' } -- the sessions are looked at before the first write

-- An entry of the ingest stream that was written before a deadline may hold the claim or renewal of that session, so it
-- does not end before the entry is applied. But no session is held for longer than this: a supervisor starts a
-- dispatcher again in seconds, and people answer an alarm in minutes.
local UNAPPLIED_MOST_MS = 300000

-- The store was restarted or is another server, and may lack the end of its history. For so long no session ends, so
-- that workers, which reconnect and load the line within this time, can tell the later ends that they remember.
local RETURN_MS = 5000

-- Returns the latest deadline of a session that may end now, and when to look again at those that are held, ms.
local function ends_until(c)
    local now, began = c.now, tonumber(c.base_ms)
    if began and began <= now and now < began + RETURN_MS then return -1, began + RETURN_MS end
    if began and rewind.holds_sessions(c) then return -1, now + RETURN_MS end
    local id = ingest.oldest_unapplied(c)
    local oldest = id and text.id_ms(id)
    if not oldest or oldest > now then return now, now end
    local again = max(10, min(500, floor((now - oldest) / 4)))
    return max(oldest - 1, now - UNAPPLIED_MOST_MS), now + again
end

---- times that a clock left which was ahead and went back: until then a slot is held, a line full, a recovery goes on

local MOST = 100 -- sessions, and ends, in one step
local NEVER = '9007199254740992' -- 2^53
local AHEAD_MS = 5000 -- clocks are set by less than that all the time
local TIMES = { 'full_since', 'recover_since', 'started' }

-- Sessions that began when the clock was ahead begin now, and keep their length. A visitor held for a claim then
-- has claim_ttl from now on. Others may be from before the settings were lowered.
local function correct_sessions(c, sessions, claim_ttl)
    for i = 1, #sessions, 2 do
        local id, deadline, session = sessions[i], tonumber(sessions[i + 1]), visitor.session(c, sessions[i])
        local is_ahead = session and session.admitted > c.now + AHEAD_MS
        if is_ahead then
            deadline = max(c.now, deadline - (session.admitted - c.now))
            session.admitted = c.now
        elseif session and not session.claimed and call('ZSCORE', c.key.held, id) then
            is_ahead, deadline = true, c.now + claim_ttl
        end
        if is_ahead then visitor.prolong(c, id, session, deadline, true) end
    end
end

-- Times of the state. Returns whether one was wrong.
local function correct_times(c)
    local till, since, is_wrong, latest = c.recover_until, nil, false, c.now + AHEAD_MS
    for i = 1, #TIMES do
        local field = TIMES[i]
        local t = c[field] and tonumber(c[field]) or 0
        if t > latest then
            state.set(c, field, c.now)
            since, is_wrong = field ~= 'full_since' and t or since, true
        end
    end
    if since and (tonumber(till) or 0) > latest then state.set(c, 'recover_until', c.now + max(0, till - since)) end
    return is_wrong
end

---- the step

-- The deadline that comes next, or nil: also damaged ones, which sort like numbers.
local function first_deadline(c) return tonumber(call('ZRANGE', c.key.active, 0, 0, 'WITHSCORES')[2]) end

entry('expire', { 'allow-oom' }, function(keys, args)
    local most, c = args[1] + 0, state.open(state.begin(keys, args[2]), FIELDS)
    local due, again, deadline = {}, 0, first_deadline(c)
    local v = deadline and call('HMGET', c.key.config, 'session_ttl', 'claim_ttl') or {}
    local session_ttl, claim_ttl = text.number(v[1]) or 2 ^ 50, text.number(v[2]) or 0 -- a damaged one stops nobody
    if deadline and deadline <= c.now then
        local last
        last, again = ends_until(c)
        due = call('ZRANGE', c.key.active, '-inf', text.int(last), 'BYSCORE', 'LIMIT', 0, most)
    end
    -- The sessions, latest deadline first, that end later than any of now can: visitor, deadline, ...
    local longest = text.int(c.now + max(session_ttl, 2 * claim_ttl) + AHEAD_MS)
    local ahead = deadline and call('ZRANGE', c.key.active, NEVER, longest, 'BYSCORE', 'REV', 'LIMIT', 0, MOST,
        'WITHSCORES') or {}
    local is_wrong = correct_times(c)
    overbook.open(c)
    local counts_ahead = c.overbook and c.overbook.since > c.now + AHEAD_MS
    if #due > 0 or #ahead > 0 or is_wrong or counts_ahead then
        state.check(c, WRITES)
        if c.overbook or #ahead > 0 then call('ZCARD', c.key.held) end
        local remembers = #due > 0 and call('TYPE', c.key.lost).ok == 'hash'
        local s = remembers and settings.read(c, SETTINGS)
        if is_wrong then state.event(c, defs.EVENT.config) end
        if counts_ahead and c.overbook then c.overbook.n = -1 end -- counting begins again
        correct_sessions(c, ahead, claim_ttl)
        if remembers then due = recovery.keep_remembered(c, due, s) end
        visitor.revoke(c, due)
        overbook.save(c)
        state.commit(c)
        deadline = first_deadline(c)
    end
    c.ended = c.ended or call('ZCARD', c.key.ended)
    local forgotten = 0
    if c.ended > 0 then
        -- An end that is to come happened when the clock was ahead. It counts as of now.
        local ends = call('ZRANGE', c.key.ended, text.end_score(c.now + AHEAD_MS, 0), NEVER, 'BYSCORE', 'LIMIT', 0,
            MOST, 'WITHSCORES')
        for i = 1, #ends, 2 do visitor.set_end(c, ends[i], floor(ends[i + 1] % 8)) end
        forgotten = visitor.forget_ended(c, most, tonumber(args[3]) or 3600000)
    end
    if not deadline or deadline >= 9007199254740992 then -- damaged: infinite
        deadline = 0
    elseif deadline > 0 and deadline <= c.now and #due < most then -- it is held
        deadline = max(deadline, again)
    end
    return { #due, deadline, c.now, forgotten, c.base_seq }
end)
