-- Presence: time is cut into buckets. Bit `seq` of the bitmap tl:{q}:seen:<bucket> is set for a waiting visitor who was
-- seen in that bucket; bit 0, of no visitor, makes the key exist once presence was recorded at all.

local BUCKETS = 4 -- whole buckets that make up waiting_ttl; TL_PRESENCE_BUCKETS in C

local function bucket_length(waiting_ttl)
    return math.max(250, math.floor(waiting_ttl / BUCKETS))
end

local function bucket_at(ms, waiting_ttl)
    return math.floor(ms / bucket_length(waiting_ttl))
end

local function seen_key(bucket)
    return K_SEEN .. int(bucket)
end

-- state.marks: "bucket:last seq before its first join", newest first, joined by ','. They tell who joined before a bucket
-- began. Six of them span more than waiting_ttl.

-- last_seq is text.
local function add_mark(marks, bucket, last_seq)
    local all = int(bucket) .. ':' .. last_seq .. (marks ~= '' and ',' .. marks or '')
    local _, stop = string.find(all, '^[^,]*,[^,]*,[^,]*,[^,]*,[^,]*,[^,]*')
    return stop and string.sub(all, 1, stop) or all
end

-- The last seq that joined before this bucket began: by the earliest mark that is not older than the bucket, else `seq`,
-- the last one of all.
local function last_seq_before(bucket, marks, seq)
    local last = seq
    for marked, before in string.gmatch(marks, '(%d+):(%d+)') do
        if tonumber(marked) >= bucket then
            last = tonumber(before)
        end
    end
    return last
end

