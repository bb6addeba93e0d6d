-- SPDX-License-Identifier: Apache-2.0
-- Claims where a queue is overbooked (prelude.called.lua). They need no more than this script's own memory, besides one
-- HMGET and one ZCARD in a call, and nothing where it is not.

local claims = {} -- its functions; and `called`: what is counted, nil for nothing

-- Makes the functions: only queues that count need them.
local function load_claims()

-- Fails when the key of those held is of another type.
function claims.open(called)
    claims.called = called
    local c = redis.call('HMGET', K_CONFIG, 'capacity', 'capacity_mode', 'capacity_min', 'claim_ttl')
    local capacity = capacity_now(c[2], tonumber(c[1] or '') or 0, c[3], redis.call('HGET', K_STATE, 'capacity_now'))
    claims.rule = { capacity = capacity, claim_ttl = tonumber(c[4] or '') or 0, held = redis.call('ZCARD', held_key()) }
end

-- May this visitor claim the session now? Else it is held for the visitor, who is here: not before another session
-- ends, and not before those held for longer.
function claims.may_claim(visitor, place, admitted_ms)
    local called, rule = claims.called, claims.rule
    if not is_counted(called, admitted_ms) then
        return true
    end
    local is_held = redis.call('ZSCORE', held_key(), visitor)
    if not is_held and rule.capacity - (state.active - called.n) - rule.held > 0 then
        called.n, called.claims = called.n - 1, called.claims + 1
        return true
    end
    if not is_held then
        redis.call('ZADD', held_key(), int(place), visitor)
        rule.held = rule.held + 1
    end
    redis.call('ZADD', K_ACTIVE, 'XX', int(now + rule.claim_ttl), visitor)
    return false
end

-- The session of this visitor ends, by a command. Who completes it has come.
function claims.note_end(visitor, session, reason)
    local called, rule = claims.called, claims.rule
    local _, admitted_ms, claimed = parse_session(session)
    if claimed or not is_counted(called, admitted_ms) then
        return
    end
    if redis.call('ZSCORE', held_key(), visitor) then
        rule.held = rule.held - 1
    end
    if end_unclaimed(called, visitor, admitted_ms) and reason == REASON.completed then
        called.claims = called.claims + 1
    end
end

end
