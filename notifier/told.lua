-- SPDX-License-Identifier: Apache-2.0
-- told: a webhook got entries of the journal, or failed. Moves its cursor on, keeps its state for operators,
-- and trims what every webhook was told of, when all cursors are past it.
-- args     1 name of the webhook   2 its cursor, "ID N", or '': it stays   3 how many events it was told of
--          4 how many were lost to it   5 HTTP status of its last answer, 0: none   6 what went wrong, or ''
-- returns  { Redis time ms, since when it fails, ms, or 0 }
--
-- Invariants: a cursor never goes back, so a process that lost its lease undoes nothing.

-- The parts of the id that a cursor begins with, as numbers.
local function parts(cursor)
    local event, nth = match(cursor or '', '^(%d+)-(%d+) ')
    return tonumber(event), tonumber(nth)
end

local function is_before(a, b)
    local event_a, nth_a = parts(a)
    local event_b, nth_b = parts(b)
    return event_a < event_b or event_a == event_b and nth_a < nth_b
end

entry('told', { 'allow-oom' }, function(keys, args)
    local c, webhook, cursor, problem = state.read(state.begin(keys), state.CORE), args[1], args[2], args[6]
    call('XLEN', c.key.journal) -- fails when it is of another type
    local found = call('HMGET', c.key.webhooks, 'cursor:' .. webhook, 'state:' .. webhook)
    if not parts(found[1]) then return { c.now, 0 } end -- a webhook that is gone
    local old = text.object(found[2]) or {}
    local new = { at = c.now, status = tonumber(args[5]), told = (tonumber(old.told) or 0) + args[3],
        lost = (tonumber(old.lost) or 0) + args[4] }
    if problem ~= '' then new.problem, new.since = problem, tonumber(old.since) or c.now end
    call('HSET', c.key.webhooks, 'state:' .. webhook, cjson.encode(new))
    if parts(cursor) and is_before(found[1], cursor) then
        call('HSET', c.key.webhooks, 'cursor:' .. webhook, cursor)
        local least = cursor -- what all cursors are past is trimmed
        for field, other in pairs(text.fields(call('HGETALL', c.key.webhooks))) do
            if sub(field, 1, 7) == 'cursor:' and parts(other) and is_before(other, least) then least = other end
        end
        local event, nth = parts(least)
        call('XTRIM', c.key.journal, 'MINID', '=', text.int(event) .. '-' .. text.int(nth + 1))
    end
    return { c.now, new.since or 0 }
end)
