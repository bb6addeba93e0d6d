-- presence: what the expirer needs to know to find waiting visitors who went away. Changes nothing.
--
-- No ARGV. Returns { bucket now, bucket length ms, observed (1|0), last seq that joined before the oldest bucket began,
--                    ms until the next bucket begins }
-- observed is 1 when presence was recorded in each of the four whole buckets that make up waiting_ttl: only then may absence
-- be judged (after an outage nobody could have been seen).
-- Errors  NOQUEUE  the queue does not exist
local s = redis.call('HMGET', K_STATE, 'generation', 'seq', 'marks')
local waiting_ttl = tonumber(redis.call('HGET', K_CONFIG, 'waiting_ttl') or nil)
if not s[1] or not waiting_ttl then
    return redis.error_reply('NOQUEUE the queue does not exist')
end
local length = bucket_length(waiting_ttl)
local now = now_ms()
local bucket = math.floor(now / length)
local oldest = bucket - 4

local observed = 1
for b = oldest, bucket - 1 do
    if redis.call('EXISTS', K_SEEN .. int(b)) == 0 then
        observed = 0
    end
end

-- marks: newest first, "bucket:seq before its first join". The earliest mark at or after `oldest` tells.
local before = tonumber(s[2])
for b, seq in string.gmatch(s[3] or '', '(%d+):(%d+)') do
    if tonumber(b) >= oldest then
        before = tonumber(seq)
    end
end
return { bucket, length, observed, before, (bucket + 1) * length - now }
