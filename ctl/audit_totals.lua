-- audit_totals: the counters of the state and the sizes of the sets at one moment, for the audit. Changes nothing.
--
-- ARGV     none
-- Returns  nil when the queue does not exist, else
--          { waiting, active, joined, completed, expired, left, admit_capacity (texts, nil when absent),
--            size of waiting, size of active, size of sessions, policy, capacity }
if redis.call('EXISTS', K_STATE) == 0 then
    return nil
end
local totals = redis.call('HMGET', K_STATE, 'waiting', 'active', 'joined', 'completed', 'expired', 'left', 'admit_capacity')
totals[8] = redis.call('ZCARD', K_WAITING)
totals[9] = redis.call('ZCARD', K_ACTIVE)
totals[10] = redis.call('HLEN', K_SESSIONS)
local settings = redis.call('HMGET', K_CONFIG, 'policy', 'capacity')
totals[11], totals[12] = settings[1], settings[2]
return totals
