-- SPDX-License-Identifier: Apache-2.0
-- Sessions that are due, and whose last claim or renewal the store has lost with the end of its history. Workers
-- remember their ends and tell them (CALLED of the present generation); they stand in tl:{q}:lost until then.

local K_LOST = key_of('lost')

-- What a session comes to by the end that a worker remembers: its deadline, and whether it is claimed. nil: the store
-- knows no earlier one. No session gets more time than it could have had. settings: session_ttl, claim_ttl, session_max
-- and sliding.
local function remembered_session(remembered, deadline, admitted_ms, claimed, settings)
    local longest = settings.sliding and settings.session_max or settings.session_ttl
    local till = math.min(remembered, admitted_ms + longest)
    if till <= deadline then
        return nil
    end
    local is_extension = till == admitted_ms + 2 * settings.claim_ttl and 2 * settings.claim_ttl < settings.session_ttl
    return till, claimed or not is_extension
end

-- Takes those that go on out of the visitors who are due, and adds their events. called: as in prelude.called.lua, or
-- nil. Returns the others.
local function keep_remembered(due, called, events)
    local ended = {}
    local c = redis.call('HMGET', K_CONFIG, 'session_ttl', 'claim_ttl', 'session_max', 'session_sliding')
    local settings = { session_ttl = tonumber(c[1] or '') or 0, claim_ttl = tonumber(c[2] or '') or 0,
        session_max = tonumber(c[3] or '') or 0, sliding = c[4] == 'true' }
    for _, visitor in ipairs(due) do
        local place, admitted_ms, claimed = parse_session(redis.call('HGET', K_SESSIONS, visitor))
        local remembered = place and tonumber(redis.call('HGET', K_LOST, int(place)) or '')
        local till, is_claimed
        if remembered then
            redis.call('HDEL', K_LOST, int(place))
            local deadline = tonumber(redis.call('ZSCORE', K_ACTIVE, visitor))
            till, is_claimed = remembered_session(remembered, deadline, admitted_ms, claimed, settings)
        end
        if till then
            redis.call('ZADD', K_ACTIVE, 'XX', int(till), visitor)
            redis.call('HSET', K_SESSIONS, visitor, int(place) .. session_tail(int(admitted_ms), is_claimed))
            if called and is_claimed and not claimed and end_unclaimed(called, visitor, admitted_ms) then
                called.claims = called.claims + 1
            end
            events[#events + 1] = { is_claimed and EVENT.renewed or EVENT.extended, place, till }
        else
            ended[#ended + 1] = visitor
        end
    end
    return ended
end
