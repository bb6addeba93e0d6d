-- SPDX-License-Identifier: Apache-2.0
-- absent: drops waiting visitors who have not been seen for waiting_ttl.
-- Flags: allow-oom
-- Parts: prelude.records prelude.presence prelude.runs
--
-- ARGV     1 bucket in which the caller judged   2 about how many events to keep   3... places it found absent
-- Returns  { dropped, Redis time ms }; dropped is 0 if the caller judged in an earlier bucket
-- Errors   NOQUEUE  the queue does not exist
--
-- Invariants: a visitor who was seen since the caller looked stays, because presence is looked up again here; a place
-- where no visitor waits any more is skipped; state.waiting is the size of the set. Work is bounded by the given
-- places.
local judged, keep = tonumber(ARGV[1]), ARGV[2]

local state, expired_total, absent_total = open_state('expired', 'absent')
local waiting_ttl = tonumber(redis.call('HGET', K_CONFIG, 'waiting_ttl'))
if not state or not waiting_ttl then
    return no_queue()
end
local now = now_ms()
local bucket = bucket_at(now, waiting_ttl)
if bucket ~= judged then
    return { 0, now }
end
check_types()
expired_total, absent_total = read_counter(expired_total), read_counter(absent_total)

local bitmaps = {} -- chunk -> its keys in all buckets

local function bitmaps_of(chunk)
    if not bitmaps[chunk] then
        local keys = {}
        for b = bucket - PRESENCE_BUCKETS, bucket do
            keys[#keys + 1] = seen_key(b, chunk)
        end
        bitmaps[chunk] = keys
    end
    return bitmaps[chunk]
end

local function is_seen(seq)
    local chunk, first = chunk_of(seq)
    for _, bitmap in ipairs(bitmaps_of(chunk)) do
        if redis.call('GETBIT', bitmap, seq - first) == 1 then
            return true
        end
    end
    return false
end

-- All are judged before the first is dropped: a bitmap that cannot be read ends the script.
local places, visitors = {}, {}
for i = 3, #ARGV do
    local place = tonumber(ARGV[i])
    local visitor = not is_seen(place % LANE) and redis.call('ZRANGE', K_WAITING, place, place, 'BYSCORE')[1]
    if visitor then
        places[#places + 1], visitors[#visitors + 1] = place, visitor
    end
end
local dropped, score = {}, end_score(now, REASON.absent)
for i, visitor in ipairs(visitors) do
    if redis.call('ZREM', K_WAITING, visitor) == 1 then -- else its place was given twice
        redis.call('ZADD', K_ENDED, score, visitor)
        dropped[#dropped + 1] = places[i]
    end
end
local n = #dropped
if n > 0 then
    state.waiting = state.waiting - n
    commit(state, { 'expired', expired_total + n, 'absent', absent_total + n },
        { { EVENT.removed, runs_of(dropped), REASON.absent } }, keep)
end
return { n, now }
