-- SPDX-License-Identifier: Apache-2.0
-- presence: what the expirer needs to find waiting visitors who are absent. Changes nothing.
-- Flags: no-writes
-- Parts: prelude.presence
--
-- ARGV     none
-- Returns  { current bucket, bucket length ms, observed (1|0), last seq that joined before the oldest bucket began,
--            ms until the next bucket begins }
--          observed is 1 when presence was recorded in each of the whole buckets that make up waiting_ttl, and no
--          worker has become silent lately. Only then may absence be judged: during an outage no visitor can be seen.
-- Errors   NOQUEUE  the queue does not exist
local state, seq, marks = read_state('seq', 'marks')
local waiting_ttl = tonumber(redis.call('HGET', K_CONFIG, 'waiting_ttl'))
if not state or not waiting_ttl then
    return no_queue()
end
local length = bucket_length(waiting_ttl)
local now = now_ms()
local bucket = bucket_at(now, waiting_ttl)
local oldest = bucket - PRESENCE_BUCKETS

local observed = any_worker_silent(now, waiting_ttl) and 0 or 1
for b = oldest, bucket - 1 do
    if redis.call('EXISTS', seen_key(b, 0)) == 0 then
        observed = 0
    end
end
return { bucket, length, observed, last_seq_before(oldest, marks or '', tonumber(seq)), (bucket + 1) * length - now }
