-- snapshot_active: one page of the active sessions. Changes nothing.
--
-- ARGV  1 cursor (0 at first)   2 about how many
-- Returns { next cursor (0: done), place, deadline ms, place, deadline ms, ... }
local scan = redis.call('ZSCAN', K_ACTIVE, ARGV[1], 'COUNT', ARGV[2])
local members, visitors, result = scan[2], {}, { scan[1] }
for i = 1, #members, 2 do
    visitors[#visitors + 1] = members[i]
end
-- a small sorted set comes back whole, whatever COUNT says; unpack is bounded by Lua's stack
for from = 1, #visitors, 1000 do
    local to = math.min(from + 999, #visitors)
    local sessions = redis.call('HMGET', K_SESSIONS, unpack(visitors, from, to))
    for i = from, to do
        local place = string.match(sessions[i - from + 1] or '', '^%d+')
        if place then
            result[#result + 1] = place
            result[#result + 1] = members[i * 2]
        end
    end
end
return result
