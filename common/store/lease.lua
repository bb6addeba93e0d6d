-- lease: takes, renews or gives back a role's lease on a queue. A lease only spreads the work between replicas; what
-- keeps the data right is the fence, which the apply script checks. A lease that certainly has not run out is renewed
-- without a script (common/store/lease.h).
--
-- KEYS     1 state   2 the lease      (not the keys of the other scripts)
-- ARGV     1 owner   2 time to live in ms, 0 gives the lease back   3 field of the state that counts the fence, or ''
-- Returns  { 1 held by the owner | 0 held by another, fence }
-- Errors   NOQUEUE  the queue does not exist
local owner, ttl, fence_field = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local holder = redis.call('GET', KEYS[2])
if ttl == 0 then
    if holder == owner then
        redis.call('DEL', KEYS[2])
    end
    return { 0, 0 }
end
if holder and holder ~= owner then
    return { 0, 0 }
end
if redis.call('EXISTS', K_STATE) == 0 then
    return no_queue()
end
redis.call('SET', KEYS[2], owner, 'PX', ttl)
if fence_field == '' then
    return { 1, 0 }
end
if holder == owner then
    return { 1, tonumber(redis.call('HGET', K_STATE, fence_field)) }
end
return { 1, redis.call('HINCRBY', K_STATE, fence_field, 1) }
