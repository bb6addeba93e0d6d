-- SPDX-License-Identifier: Apache-2.0
-- lease: takes, renews or gives back a role's lease on a queue, which only spreads the work: the fence keeps the data
-- right. A lease that certainly has not run out is renewed without a function (common/store/lease.h).
-- args     1 role   2 owner   3 time to live in ms, 0 gives the lease back   4 1: count the fence, else 0
--          5 the longest time to live that any replica asks for, in ms
-- returns  { 1 held by the owner | 0 held by another, fence }

local FENCED = state.fields({ 'fence' }, {})

entry('lease', { 'allow-oom' }, function(keys, args)
    local c, owner, ttl, is_fenced = state.begin(keys), args[2], args[3] + 0, args[4] == '1'
    local lease = c.key.base .. args[1]
    local holder = call('GET', lease)
    if ttl == 0 then
        if holder == owner then call('DEL', lease) end
        return { 0, 0 }
    end
    -- One that ends later than any can, or never, was set before the server's clock went back, or by hand: it is free.
    local left_ms = call('PTTL', lease)
    if holder and holder ~= owner and left_ms >= 0 and left_ms <= args[5] + 0 then return { 0, 0 } end
    state.open(c, is_fenced and FENCED or state.CORE)
    call('SET', lease, owner, 'PX', ttl)
    if not is_fenced then return { 1, 0 } end
    return { 1, holder == owner and c.fence or state.next_fence(c) }
end)
