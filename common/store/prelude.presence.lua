-- SPDX-License-Identifier: Apache-2.0
-- Presence: time is cut into buckets, and seqs into chunks. A bit of the bitmap tl:{q}:seen:<bucket>:<chunk> is set for
-- a waiting visitor who was seen in that bucket. Chunk 0 is tl:{q}:seen:<bucket>; it exists once presence was recorded
-- at all in that bucket.

local function bucket_length(waiting_ttl)
    return math.max(250, math.floor(waiting_ttl / PRESENCE_BUCKETS))
end

local function bucket_at(ms, waiting_ttl)
    return math.floor(ms / bucket_length(waiting_ttl))
end

local function seen_key(bucket, chunk)
    return K_SEEN .. int(bucket) .. (chunk > 0 and ':' .. int(chunk) or '')
end

-- Returns the chunk of this seq, its first seq and the one after its last.
local function chunk_of(seq)
    if seq < PRESENCE_CHUNK_0 then
        return 0, 0, PRESENCE_CHUNK_0
    end
    local chunk = math.floor(seq / PRESENCE_CHUNK)
    return chunk, chunk * PRESENCE_CHUNK, (chunk + 1) * PRESENCE_CHUNK
end

-- tl:{q}:reports: worker -> when its last SEEN was applied. A worker that ends sends a farewell and is not in it. And
-- "silence:<worker>" -> when its last SEEN before a silence was applied.

local SILENT_PARTS = 2 -- a worker is silent after waiting_ttl / 2: it reports every waiting_ttl / 8

local function reports_key()
    return key_of('reports')
end

local function silence_ms(waiting_ttl)
    return math.floor(waiting_ttl / SILENT_PARTS)
end

-- Has a worker that reported lately become silent without a farewell? Its visitors may be present, but cannot be seen.
-- They would be absent after waiting_ttl and get one waiting_ttl more, and the rest of a bucket. So they do when the
-- worker is back, because it takes a while until all of them have asked again.
local function any_worker_silent(now, waiting_ttl)
    local oldest = now - 2 * waiting_ttl - 2 * bucket_length(waiting_ttl)
    local newest = now - silence_ms(waiting_ttl)
    return #redis.call('ZRANGE', reports_key(), int(oldest), int(newest), 'BYSCORE', 'LIMIT', 0, 1) > 0
end

-- Notes that a SEEN of this worker was applied, or its farewell. Forgets the workers whose silence no longer counts.
local function note_report(worker, is_farewell, now, waiting_ttl)
    if is_farewell then
        redis.call('ZREM', reports_key(), worker)
        return
    end
    local last = tonumber(redis.call('ZSCORE', reports_key(), worker))
    if last and last <= now - silence_ms(waiting_ttl) then
        redis.call('ZADD', reports_key(), int(last), 'silence:' .. worker)
    end
    redis.call('ZADD', reports_key(), int(now), worker)
    redis.call('ZREMRANGEBYSCORE', reports_key(), '-inf', int(now - 3 * waiting_ttl))
end

-- state.marks: "bucket:last seq before its first join", newest first, joined by ','. They tell who joined before a
-- bucket began. Six of them span more than waiting_ttl.

-- last_seq is text.
local function add_mark(marks, bucket, last_seq)
    local all = int(bucket) .. ':' .. last_seq .. (marks ~= '' and ',' .. marks or '')
    local _, stop = string.find(all, '^[^,]*,[^,]*,[^,]*,[^,]*,[^,]*,[^,]*')
    return stop and string.sub(all, 1, stop) or all
end

-- The last seq that joined before this bucket began: by the earliest mark that is not older than the bucket, else
-- `seq`, the last one of all.
local function last_seq_before(bucket, marks, seq)
    local last = seq
    for marked, before in string.gmatch(marks, '(%d+):(%d+)') do
        if tonumber(marked) >= bucket then
            last = tonumber(before)
        end
    end
    return last
end

