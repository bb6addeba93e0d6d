-- absent: drops waiting visitors who have not been seen for waiting_ttl.
--
-- ARGV  1 bucket the caller judged in   2 events to keep   3... places it found absent
-- Returns { dropped, Redis time ms }; dropped is 0 for a judgement made in an earlier bucket.
-- Errors  NOQUEUE  the queue does not exist
--
-- Holds: presence is looked up again here, so a visitor seen since the caller looked stays; a place whose visitor
-- has moved on is left alone; state.waiting is the size of the set. Work is bounded by the places given.
local judged, keep = tonumber(ARGV[1]), ARGV[2]

local s = redis.call('HMGET', K_STATE, 'generation', 'event', 'waiting', 'active', 'expired', 'absent')
local waiting_ttl = tonumber(redis.call('HGET', K_CONFIG, 'waiting_ttl') or nil)
local generation = tonumber(s[1])
if not generation or not waiting_ttl then
    return redis.error_reply('NOQUEUE the queue does not exist')
end
local now = now_ms()
local bucket = math.floor(now / bucket_length(waiting_ttl))
if bucket ~= judged then
    return { 0, now }
end

local gone, ended = {}, {}
for i = 3, #ARGV do
    local place = tonumber(ARGV[i])
    local seq = place % LANE
    local here = false
    for b = bucket - 4, bucket do
        here = here or redis.call('GETBIT', K_SEEN .. int(b), seq) == 1
    end
    local visitor = not here and redis.call('ZRANGE', K_WAITING, place, place, 'BYSCORE')[1]
    if visitor then
        redis.call('ZREM', K_WAITING, visitor)
        redis.call('ZADD', K_ENDED, now * 8 + REASON.absent, visitor)
        gone[#gone + 1] = place
    end
end
if #gone > 0 then
    local number, waiting = tonumber(s[2]) + 1, tonumber(s[3]) - #gone
    redis.call('HSET', K_STATE, 'waiting', int(waiting), 'event', int(number), 'expired', int(tonumber(s[5]) + #gone),
        'absent', int(tonumber(s[6]) + #gone))
    emit(number, generation, waiting, tonumber(s[4]), { { EVENT.removed, runs_of(gone), REASON.absent } }, keep)
end
return { #gone, now }
