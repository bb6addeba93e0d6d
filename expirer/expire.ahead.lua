-- SPDX-License-Identifier: Apache-2.0
-- What the server's clock left behind that was ahead and went back: times that do not come for long. Until then a
-- session would hold its slot, a line be full, or a recovery go on.

local AHEAD_MS = 5000  -- clocks are set by less than that all the time
local AHEAD_MOST = 100 -- sessions, and ends, in one step

-- An end that is to come happened when the clock was ahead. It counts as of now.
local function correct_ends(now)
    local ends = redis.call('ZRANGE', K_ENDED, end_score(now + AHEAD_MS, 0), int(2 ^ 53), 'BYSCORE', 'LIMIT', 0,
        AHEAD_MOST, 'WITHSCORES')
    for i = 1, #ends, 2 do
        redis.call('ZADD', K_ENDED, end_score(now, math.floor(ends[i + 1] % 8)), ends[i])
    end
end

-- The sessions, latest deadline first, that end later than any of now can: visitor, deadline, ...
local function sessions_ahead(now, session_ttl, claim_ttl)
    local longest = math.max(session_ttl, 2 * claim_ttl)
    return redis.call('ZRANGE', K_ACTIVE, int(2 ^ 53), int(now + longest + AHEAD_MS), 'BYSCORE', 'REV', 'LIMIT', 0,
        AHEAD_MOST, 'WITHSCORES')
end

-- Sessions that began when the clock was ahead begin now, and keep their length. Who was held for a claim then has
-- claim_ttl from now on. Others may be from before the settings were lowered. Adds the events.
local function correct_sessions(sessions, now, claim_ttl, events)
    for i = 1, #sessions, 2 do
        local visitor, deadline = sessions[i], tonumber(sessions[i + 1])
        local place, admitted_ms, claimed = parse_session(redis.call('HGET', K_SESSIONS, visitor))
        local is_ahead = place and admitted_ms > now + AHEAD_MS
        if is_ahead then
            deadline = math.max(now, deadline - (admitted_ms - now))
            redis.call('HSET', K_SESSIONS, visitor, int(place) .. session_tail(int(now), claimed))
        elseif place and not claimed and redis.call('ZSCORE', key_of('held'), visitor) then
            is_ahead, deadline = true, now + claim_ttl
        end
        if is_ahead then
            redis.call('ZADD', K_ACTIVE, 'XX', int(deadline), visitor)
            events[#events + 1] = { claimed and EVENT.renewed or EVENT.extended, place, deadline }
        end
    end
end

-- The fields of the state that change: name, value, ...
local function correct_times(now, full_since, recover_since, recover_until, started)
    local changes = {}
    local function is_ahead(text)
        return (tonumber(text or '') or 0) > now + AHEAD_MS
    end
    local function set(field, value)
        changes[#changes + 1], changes[#changes + 2] = field, value
    end
    if is_ahead(full_since) then
        set('full_since', now)
    end
    local since = is_ahead(started) and started or is_ahead(recover_since) and recover_since
    if since and is_ahead(recover_until) then
        set('recover_until', now + math.max(0, recover_until - since))
    end
    if is_ahead(recover_since) then
        set('recover_since', now)
    end
    if is_ahead(started) then
        set('started', now)
    end
    return changes
end
