-- SPDX-License-Identifier: Apache-2.0
-- What the server's clock left behind that was ahead and went back: times until which a session would hold its slot, a
-- line be full, or a recovery go on.

local int = text.int
local MOST = 100 -- sessions, and ends, in one step
local NEVER = '9007199254740992' -- 2^53

clock.AHEAD_MS = 5000 -- clocks are set by less than that all the time

-- An end that is to come happened when the clock was ahead. It counts as of now.
function clock.correct_ends(c)
    local ends = call('ZRANGE', c.key.ended, text.end_score(c.now + clock.AHEAD_MS, 0), NEVER, 'BYSCORE', 'LIMIT', 0,
        MOST, 'WITHSCORES')
    for i = 1, #ends, 2 do visitor.set_end(c, ends[i], floor(ends[i + 1] % 8)) end
end

-- The sessions, latest deadline first, that end later than any of now can: visitor, deadline, ...
function clock.sessions_ahead(c, session_ttl, claim_ttl)
    local longest = max(session_ttl, 2 * claim_ttl)
    return call('ZRANGE', c.key.active, NEVER, int(c.now + longest + clock.AHEAD_MS), 'BYSCORE', 'REV', 'LIMIT', 0,
        MOST, 'WITHSCORES')
end

-- Sessions that began when the clock was ahead begin now, and keep their length. Who was held for a claim then has
-- claim_ttl from now on. Others may be from before the settings were lowered.
function clock.correct_sessions(c, sessions, claim_ttl)
    for i = 1, #sessions, 2 do
        local id, deadline, session = sessions[i], tonumber(sessions[i + 1]), visitor.session(c, sessions[i])
        local is_ahead = session and session.admitted > c.now + clock.AHEAD_MS
        if is_ahead then
            deadline = max(c.now, deadline - (session.admitted - c.now))
            session.admitted = c.now
        elseif session and not session.claimed and call('ZSCORE', c.key.held, id) then
            is_ahead, deadline = true, c.now + claim_ttl
        end
        if is_ahead then visitor.prolong(c, id, session, deadline, true) end
    end
end

local function is_ahead(c, t) return (tonumber(t) or 0) > c.now + clock.AHEAD_MS end

-- Times of the state. c: with the fields full_since, recover_since, recover_until and started. Returns whether one was
-- wrong.
function clock.correct_times(c)
    local till, since, is_wrong = c.recover_until, nil, false
    for _, field in ipairs({ 'full_since', 'recover_since', 'started' }) do
        local t = c[field]
        if is_ahead(c, t) then
            state.set(c, field, c.now)
            since, is_wrong = field ~= 'full_since' and t or since, true
        end
    end
    if since and is_ahead(c, till) then state.set(c, 'recover_until', c.now + max(0, till - since)) end
    return is_wrong
end
