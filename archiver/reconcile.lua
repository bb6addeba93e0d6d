-- SPDX-License-Identifier: Apache-2.0
-- What the archiver compares with PostgreSQL, a portion in each call: reconcile_sessions and reconcile_line. All of it
-- is of one moment, which has the number of an event. Changes nothing.
-- returns  RECONCILE

local LANE, int = defs.LANE, text.int
local HEAD = 29 -- bytes of an entry of the record before its notes: [version, generation, event, ms]
local FIELDS = state.fields({ 'joined' }, { 'standing' })

-- The event of the last entry of the record, 0: PostgreSQL has them all; nil: it cannot be told.
local function last_noted(c)
    local last = call('XREVRANGE', c.key.record, '+', '-', 'COUNT', 1)[1]
    if not last then return 0 end
    local is_read, head = pcall(unpack_message, sub(last[2][2] or '', 1, HEAD))
    if not is_read or type(head) ~= 'table' or head[1] ~= defs.RECORD_VERSION or head[2] ~= c.generation then return end
    return head[3]
end

local function begin(keys)
    local c = state.read(state.begin(keys), FIELDS)
    c.noted_up_to = last_noted(c)
    return c
end

-- The record tells all that happened only where nothing is missing in it, and nobody is still to be told. rows: lists
-- of texts, as they are.
local function answer(c, following, rows, ended)
    local is_whole = c.noted_up_to and match(c.archive or '', '^%d+$') and (c.standing or '') == ''
    return { is_whole and 1 or 0, c.generation, c.event, c.noted_up_to or 0, c.store or '',
        floor(c.joined / 10) + c.waiting + c.active, following, is_whole and rows or {}, is_whole and ended or {} }
end

-- reconcile_sessions: who is active.
-- args     1 cursor of the scan, '0' at the start   2 about how many
-- rows     visitor, place, deadline, ...; next: the cursor that follows, '0' after the last; ended: with the first ones
entry('reconcile_sessions', { 'no-writes' }, function(keys, args)
    local c = begin(keys)
    local scan, ids, rows, n = call('ZSCAN', c.key.active, args[1], 'COUNT', args[2]), {}, {}, 0
    for i = 1, #scan[2], 2 do ids[(i + 1) / 2] = scan[2][i] end
    local sessions = #ids > 0 and call('HMGET', c.key.sessions, unpack(ids)) or {}
    for i = 1, #ids do
        local place = match(sessions[i] or '', text.SESSION)
        if place then rows[n + 1], rows[n + 2], rows[n + 3], n = ids[i], place, scan[2][2 * i], n + 3 end
    end
    return answer(c, scan[1], { rows }, args[1] == '0' and record.ended_since(c))
end)

-- reconcile_line: who waits with a seq above `from`, up to `past`, in any lane.
-- args     1 from   2 past   3 the most visitors of a lane
-- rows     visitor, place, ...; next: the seq up to which that is all of them
entry('reconcile_line', { 'no-writes' }, function(keys, args)
    local c = begin(keys)
    local from, past, most, rows = args[1] + 0, args[2] + 0, args[3] + 0, {}
    for lane = 0, defs.LANES_MAX - 1 do
        local first = lane * LANE
        local found = call('ZRANGE', c.key.waiting, '(' .. int(first + from), int(first + past), 'BYSCORE', 'LIMIT', 0,
            most, 'WITHSCORES')
        if #found == 2 * most then past = max(from + 1, floor(found[2 * most]) - first - 1) end -- more may stand there
        rows[lane + 1] = found
    end
    for lane = 0, defs.LANES_MAX - 1 do
        local found = rows[lane + 1]
        for i = #found, 2, -2 do
            if found[i] - lane * LANE <= past then break end
            found[i], found[i - 1] = nil, nil
        end
    end
    return answer(c, int(past), rows)
end)
