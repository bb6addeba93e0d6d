-- SPDX-License-Identifier: Apache-2.0
-- Overbooking in the admit step (prelude.called.lua).

local grant_held, count_called, overbooked_left

-- Makes these functions: only overbooked queues need them.
local function load_overbooking()

-- Claims sessions for those who came while the capacity was claimed. Returns how many are still held.
grant_held = function(state, called, capacity, now, session_ttl, most, events)
    local held = redis.call('ZCARD', held_key())
    local free = math.min(capacity - (state.active - called.n), most)
    while held > 0 and free > 0 do
        local visitor = redis.call('ZPOPMIN', held_key())[1]
        local place, admitted_ms, claimed = parse_session(redis.call('HGET', K_SESSIONS, visitor))
        held = held - 1
        if place and not claimed and is_counted(called, admitted_ms) then -- else it has ended
            local deadline = now + session_ttl
            redis.call('ZADD', K_ACTIVE, 'XX', int(deadline), visitor)
            redis.call('HSET', K_SESSIONS, visitor, int(place) .. session_tail(int(now), true))
            called.n, called.claims, free = called.n - 1, called.claims + 1, free - 1
            events[#events + 1] = { EVENT.renewed, place, deadline }
        end
    end
    return held
end

-- What is counted, in this step: begins where the queue is overbooked, and ends where it no longer is, nobody is held
-- and all who are active fit.
count_called = function(text, overbook, capacity, active, now, held)
    local called = parse_called(text)
    if overbook > 0 and (not called or called.since > now + 1000) then -- or the clock was ahead
        return { since = now + 1, n = 0, claims = 0, noshows = 0 }
    elseif overbook == 0 and called and held == 0 and active <= capacity then
        return nil
    end
    return called
end

local LEARNED_MIN = 50 -- claims and no-shows: with fewer of them, the share is not known
local CAUTION = 1.645  -- the share is taken so many standard deviations lower: one guess in twenty is too high

-- The share of those called who never come, cautiously.
local function noshow_share(called)
    local total = called.claims + called.noshows
    if total < LEARNED_MIN then
        return 0
    end
    local share = called.noshows / total
    return math.min(0.9, math.max(0, share - CAUTION * math.sqrt(share * (1 - share) / total)))
end

-- How many more may be called: so that those who come are expected to fit, and at most `overbook` above the capacity.
overbooked_left = function(called, capacity, overbook, active, held)
    local free = capacity - (active - called.n) - held
    local come = 1 - noshow_share(called)
    local more = math.floor(free / come + 1e-9) - (called.n - held)
    return math.max(0, math.min(more, capacity + overbook - active))
end

end
