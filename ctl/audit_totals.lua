-- Reads, at one moment, what the audit compares: the counters of the state and the sizes of the sets.
-- Out: nil when the queue does not exist, else
--   { waiting, active, joined, completed, expired, left, admit_capacity (texts, nil when absent),
--     size of waiting, size of active, size of sessions, policy, capacity }
-- Changes nothing.
if redis.call('EXISTS', K_STATE) == 0 then
    return nil
end
local out = redis.call('HMGET', K_STATE, 'waiting', 'active', 'joined', 'completed', 'expired', 'left', 'admit_capacity')
out[8] = redis.call('ZCARD', K_WAITING)
out[9] = redis.call('ZCARD', K_ACTIVE)
out[10] = redis.call('HLEN', K_SESSIONS)
local settings = redis.call('HMGET', K_CONFIG, 'policy', 'capacity')
out[11], out[12] = settings[1], settings[2]
return out
