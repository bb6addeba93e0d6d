-- configure: changes settings, or the notice, of an existing queue and tells everyone, in one step.
--
-- ARGV  1 events to keep   2 'settings' or 'notice'   3... name, value pairs, or the notice's text
-- Returns 1
-- Errors  NOQUEUE  the queue does not exist
local keep, what = ARGV[1], ARGV[2]
local s = redis.call('HMGET', K_STATE, 'generation', 'event', 'waiting', 'active')
local generation = tonumber(s[1])
if not generation then
    return redis.error_reply('NOQUEUE the queue does not exist')
end
local number = tonumber(s[2]) + 1
local event
if what == 'settings' then
    redis.call('HSET', K_CONFIG, unpack(ARGV, 3))
    event = { EVENT.config }
else
    redis.call('HSET', K_STATE, 'notice', ARGV[3])
    event = { EVENT.notice, ARGV[3] }
end
redis.call('HSET', K_STATE, 'event', int(number))
emit(number, generation, tonumber(s[3]), tonumber(s[4]), { event }, keep)
return 1
