-- head: where the events of a queue stand, so that a reader can take a snapshot and follow on. Changes nothing.
--
-- No ARGV. Returns { generation, number of the last event, stream id of the last entry }
-- Errors  NOQUEUE  the queue does not exist
local s = redis.call('HMGET', K_STATE, 'generation', 'event')
if not s[1] then
    return redis.error_reply('NOQUEUE the queue does not exist')
end
local last = redis.call('XREVRANGE', K_EVENTS, '+', '-', 'COUNT', 1)[1]
return { s[1], s[2], last and last[1] or '0-0' }
