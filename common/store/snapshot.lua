-- SPDX-License-Identifier: Apache-2.0
-- What a reader begins with, before it follows the events. Changes nothing.

-- head: the last event of a queue.
-- returns  HEAD
-- fails    DAMAGED  there is a part of the queue
entry('head', { 'no-writes' }, function(keys)
    local c = state.find(keys)
    local v = call('HMGET', c.key.state, 'generation', 'event', 'base_seq', 'found_seq', 'seq', 'turns', 'store',
        'waiting', 'active')
    c.store, c.waiting, c.active = v[7], tonumber(v[8]) or 0, tonumber(v[9]) or 0
    local part = state.find_part(c)
    if part then state.fail('DAMAGED', part) end
    local last = state.last_entry(c)
    return { v[1], v[2], last and last[1] or '0-0', v[3] or '0', v[4] or '0', v[5] or '0', v[6] or '' }
end)

local HMGET_MAX = 1000 -- unpack is limited by Lua's stack; a small sorted set comes back whole, whatever COUNT says

-- snapshot_active: one page of the active sessions.
-- args     1 cursor, 0 at first   2 about how many sessions
-- returns  { next cursor (0: done), place, deadline ms, place, deadline ms, ... }, the deadlines as scores
entry('snapshot_active', { 'no-writes' }, function(keys, args)
    local key = state.begin(keys).key
    local scan = call('ZSCAN', key.active, args[1], 'COUNT', args[2])
    local members, ids, page = scan[2], {}, { scan[1] }
    for i = 1, #members, 2 do ids[#ids + 1] = members[i] end
    for from = 1, #ids, HMGET_MAX do
        local to = min(from + HMGET_MAX - 1, #ids)
        local sessions = call('HMGET', key.sessions, unpack(ids, from, to))
        for i = from, to do
            local place = match(sessions[i - from + 1] or '', '^%d+')
            if place then page[#page + 1], page[#page + 2] = place, members[2 * i] end
        end
    end
    return page
end)
