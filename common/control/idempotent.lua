-- SPDX-License-Identifier: Apache-2.0
-- idempotent: the calls of a queue that were made with an Idempotency-Key, and their answers.
-- Flags: allow-oom
--
-- ARGV     1 'claim', 'keep' or 'release'   2 the key, hashed   3 claim, keep: what identifies the request, hashed
--          keep: 4 the answer
-- Returns  claim: { NEW } the call may be made | { OTHER } the key was used for another request | { BUSY } the first
--          call is under way | { KEPT, answer }; the others: { NEW }
--
-- tl:{q}:idempotent is a hash, key -> `at ms:request:answer`, the answer empty while the call is under way;
-- tl:{q}:idempotent_at a sorted set, key -> ms. Both have the same members, KEEP_MAX at most, and expire.
local what, key, request, answer = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local NEW, OTHER, BUSY, KEPT = 0, 1, 2, 3
local KEEP_MS, KEEP_MAX = 86400000, 1000
local BUSY_MS = 60000 -- longer than any call: its caller is gone

local answers, times, now = key_of('idempotent'), key_of('idempotent_at'), now_ms()
redis.call('HLEN', answers) -- fail when they are of another type, before anything is written
redis.call('ZCARD', times)

local function forget(keys)
    if #keys > 0 then
        redis.call('HDEL', answers, unpack(keys))
        redis.call('ZREM', times, unpack(keys))
    end
end

local function write(text)
    redis.call('HSET', answers, key, int(now) .. ':' .. request .. ':' .. text)
    redis.call('ZADD', times, int(now), key)
    redis.call('PEXPIRE', answers, KEEP_MS)
    redis.call('PEXPIRE', times, KEEP_MS)
end

if what == 'release' then
    forget({ key })
    return { NEW }
end
if what == 'keep' then
    write(answer)
    return { NEW }
end
forget(redis.call('ZRANGE', times, '-inf', int(now - KEEP_MS), 'BYSCORE', 'LIMIT', 0, 100))
local found = redis.call('HGET', answers, key)
if found then
    local at, before, text = string.match(found, '^(%d+):(%x*):(.*)$')
    if before ~= request then
        return { OTHER }
    elseif text ~= '' then
        return { KEPT, text }
    elseif now - tonumber(at) < BUSY_MS then
        return { BUSY }
    end
end
local n = redis.call('ZCARD', times)
if n >= KEEP_MAX then
    forget(redis.call('ZRANGE', times, 0, n - KEEP_MAX))
end
write('')
return { NEW }
