-- SPDX-License-Identifier: Apache-2.0
-- Presence: who has been seen lately, in bitmaps by bucket of time and chunk of seqs
-- (docs/contributors/wire-format.md). Only this module writes tl:{q}:seen:..., tl:{q}:reports, and the field `marks`
-- through state.set.

local int, BUCKETS = text.int, defs.PRESENCE_BUCKETS
local SILENT_PARTS = 2 -- a worker is silent after waiting_ttl / 2: it reports every waiting_ttl / 8

function presence.length(waiting_ttl) return max(250, floor(waiting_ttl / BUCKETS)) end

function presence.bucket(ms, waiting_ttl) return floor(ms / presence.length(waiting_ttl)) end

local function seen_key(c, bucket, chunk)
    return c.key['seen:'] .. int(bucket) .. (chunk > 0 and ':' .. int(chunk) or '')
end

-- The chunk of this seq, its first seq and the one after its last.
local function chunk_of(seq)
    local first = seq - seq % defs.PRESENCE_CHUNK
    return first / defs.PRESENCE_CHUNK, first, first + defs.PRESENCE_CHUNK
end

---- workers that report

-- Notes that a SEEN of this worker was applied, or its farewell. Forgets the workers whose silence no longer counts.
function presence.report(c, worker, is_farewell, waiting_ttl)
    local key = c.key.reports
    if is_farewell then return call('ZREM', key, worker) end
    local last = tonumber(call('ZSCORE', key, worker))
    if last and last <= c.now - floor(waiting_ttl / SILENT_PARTS) then
        call('ZADD', key, int(last), 'silence:' .. worker)
    end
    call('ZADD', key, int(c.now), worker)
    call('ZREMRANGEBYSCORE', key, '-inf', int(c.now - 3 * waiting_ttl))
end

---- who is seen

-- Sets bits of a bitmap by set(bitmap, ...). It expires by itself. A key of another type goes first: nothing may fail
-- now, because other steps of the batch are done, and presence is recorded again all the time.
local function set_in(c, bitmap, waiting_ttl, set, ...)
    local is = c.bitmaps[bitmap] and 'string' or call('TYPE', bitmap).ok
    if is ~= 'string' and is ~= 'none' then call('UNLINK', bitmap) end
    set(bitmap, ...)
    if not c.bitmaps[bitmap] then call('PEXPIRE', bitmap, 8 * presence.length(waiting_ttl)) end
    c.bitmaps[bitmap] = true
end

local function set_few(bitmap, from, past)
    if from < past then call('BITFIELD', bitmap, 'SET', 'u' .. past - from, int(from), 2 ^ (past - from) - 1) end
end

-- Sets the bits [from, past): whole bytes at once, and those before and after them.
local function set_bits(bitmap, from, past)
    local first, last = ceil(from / 8) * 8, floor(past / 8) * 8
    if first >= last then return set_few(bitmap, from, past) end
    set_few(bitmap, from, first)
    call('SETRANGE', bitmap, first / 8, rep('\255', (last - first) / 8))
    set_few(bitmap, last, past)
end

-- Marks the seqs [first, first + count). One that was not given out yet is skipped, and no more are marked than ever
-- joined, which bounds the work. c: with the counters seq and joined.
function presence.mark(c, first, count, waiting_ttl)
    local bucket = presence.bucket(c.now, waiting_ttl)
    if not c.bitmaps then
        c.bitmaps = {} -- those of this call that expire by themselves
        set_in(c, seen_key(c, bucket, 0), waiting_ttl, function(observed) call('SETBIT', observed, 0, 0) end)
    end
    local from, past = first, min(first + min(count, c.joined), c.seq + 1)
    while from < past do
        local chunk, chunk_first, chunk_past = chunk_of(from)
        local to = min(past, chunk_past)
        set_in(c, seen_key(c, bucket, chunk), waiting_ttl, set_bits, from - chunk_first, to - chunk_first)
        from = to
    end
end

-- Was this seq seen in the current bucket, or in one of those that make up waiting_ttl? bitmaps: for calls in a row.
function presence.is_seen(c, seq, bucket, bitmaps)
    local chunk, first = chunk_of(seq)
    if not bitmaps[chunk] then
        bitmaps[chunk] = {}
        for b = bucket - BUCKETS, bucket do bitmaps[chunk][b - bucket + BUCKETS + 1] = seen_key(c, b, chunk) end
    end
    for i = 1, BUCKETS + 1 do
        if call('GETBIT', bitmaps[chunk][i], seq - first) == 1 then return true end
    end
    return false
end

-- Was presence recorded in each of the whole buckets that make up waiting_ttl, and has no worker become silent lately,
-- without a farewell? Only then may absence be judged. Visitors of a silent worker, who cannot be seen, get one
-- waiting_ttl more, and the rest of a bucket; also when it is back, until all of them have asked again.
function presence.is_observed(c, bucket, waiting_ttl)
    for b = bucket - BUCKETS, bucket - 1 do
        if call('EXISTS', seen_key(c, b, 0)) == 0 then return false end
    end
    local oldest = c.now - 2 * waiting_ttl - 2 * presence.length(waiting_ttl)
    local newest = c.now - floor(waiting_ttl / SILENT_PARTS)
    return #call('ZRANGE', c.key.reports, int(oldest), int(newest), 'BYSCORE', 'LIMIT', 0, 1) == 0
end

---- when visitors joined: state.marks, "bucket:last seq before its first join", newest first, joined by ','

-- last_seq is text. Six marks span more than waiting_ttl.
function presence.add_mark(marks, bucket, last_seq)
    local all = int(bucket) .. ':' .. last_seq .. (marks ~= '' and ',' .. marks or '')
    return match(all, '^[^,]*,[^,]*,[^,]*,[^,]*,[^,]*,[^,]*') or all
end

-- After joins: last_seq was the last one before them, as text. c: with the field marks.
function presence.note_joins(c, last_seq, waiting_ttl)
    local bucket, marks = presence.bucket(c.now, waiting_ttl), c.marks or ''
    if match(marks, '^%d+') ~= int(bucket) then state.set(c, 'marks', presence.add_mark(marks, bucket, last_seq)) end
end

-- The last seq that joined before this bucket began: by the earliest mark that is not older than the bucket, else
-- `seq`, the last one of all.
function presence.last_seq_before(bucket, marks, seq)
    local last = seq
    for marked, before in gmatch(marks or '', '(%d+):(%d+)') do
        if marked + 0 >= bucket then last = before + 0 end
    end
    return last
end
