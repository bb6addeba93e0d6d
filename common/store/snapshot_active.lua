-- SPDX-License-Identifier: Apache-2.0
-- snapshot_active: one page of the active sessions. Changes nothing.
-- Flags: no-writes
-- Parts: prelude.records
--
-- ARGV     1 cursor, 0 at first   2 about how many sessions
-- Returns  { next cursor (0: done), place, deadline ms, place, deadline ms, ... }, the deadlines as scores
local HMGET_MAX = 1000 -- unpack is limited by Lua's stack; a small sorted set comes back whole, whatever COUNT says

local scan = redis.call('ZSCAN', K_ACTIVE, ARGV[1], 'COUNT', ARGV[2])
local members, visitors, page = scan[2], {}, { scan[1] }
for i = 1, #members, 2 do
    visitors[#visitors + 1] = members[i]
end
for from = 1, #visitors, HMGET_MAX do
    local to = math.min(from + HMGET_MAX - 1, #visitors)
    local sessions = redis.call('HMGET', K_SESSIONS, unpack(visitors, from, to))
    for i = from, to do
        local place = session_place(sessions[i - from + 1])
        if place then
            page[#page + 1] = place
            page[#page + 1] = members[i * 2]
        end
    end
end
return page
