-- SPDX-License-Identifier: Apache-2.0
-- lease: takes, renews or gives back a role's lease on a queue. A lease only spreads the work between replicas; what
-- keeps the data right is the fence, which the function apply checks. A lease that certainly has not run out is renewed
-- without a script (common/store/lease.h).
-- Flags: allow-oom
--
-- ARGV     1 role   2 owner   3 time to live in ms, 0 gives the lease back   4 1: count the fence, else 0
--          5 the longest time to live that any replica asks for, in ms
-- Returns  { 1 held by the owner | 0 held by another, fence }
-- Errors   NOQUEUE  the queue does not exist
local lease, owner, ttl, fenced, longest = key_of(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1',
    tonumber(ARGV[5])
local holder = redis.call('GET', lease)
if ttl == 0 then
    if holder == owner then
        redis.call('DEL', lease)
    end
    return { 0, 0 }
end
-- A lease that ends later than any can, or never, was set before the server's clock went back, or by hand: it is free.
local left_ms = redis.call('PTTL', lease)
if holder and holder ~= owner and left_ms >= 0 and left_ms <= longest then
    return { 0, 0 }
end
local state, fence = open_state('fence')
if not state then
    return no_queue()
end
if fenced then
    fence = read_counter(fence)
end
redis.call('SET', lease, owner, 'PX', ttl)
if not fenced then
    return { 1, 0 }
end
if holder == owner then
    return { 1, fence }
end
return { 1, redis.call('HINCRBY', K_STATE, 'fence', 1) }
