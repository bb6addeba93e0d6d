-- SPDX-License-Identifier: Apache-2.0
-- The hooks of a queue, as operators see them. Writes nothing.

local int = text.int

-- What the command reads, or nothing where the key has another type: the other numbers of a queue are worth having.
local function read_or(nothing, ...)
    local value = pcall_redis(...)
    return type(value) == 'table' and value.err and nothing or value
end

-- How many entries of the journal wait after this one, when the oldest of them was written (ms, -1: none waits), and
-- how many were trimmed before the hook was told. journaled: the number of the last entry.
local function behind(c, id, n, journaled)
    local all = max(0, journaled - n)
    local first = all > 0 and read_or({}, 'XRANGE', c.key.journal, '(' .. id, '+', 'COUNT', 1)[1]
    if not first then return 0, -1, all end
    local gone = min(all, max(0, first[2][2] - n - 1)) -- its fields in turn: n, at, what, data
    return all - gone, first[2][4] + 0, gone
end

-- { who holds the lease of the notifier or '', then for each hook: name, cursor "EVENT-NTH N", state (JSON, '': nothing
-- was told yet), and the three of `behind` }. At most 20 hooks: the notifier drops those that are gone.
function hooks.of(c)
    local fields, list = text.fields(read_or({}, 'HGETALL', c.key.hooks)), { read_or('', 'GET', c.key.notifier) or '' }
    for field, cursor in pairs(fields) do
        local name = match(field, '^cursor:(.*)')
        local id, n = match(cursor, '^(%d+%-%d+) (%d+)$')
        if name and id then
            local waiting, oldest, gone = behind(c, id, n + 0, tonumber(fields.journaled) or 0)
            local last = #list
            list[last + 1], list[last + 2], list[last + 3] = name, cursor, fields['state:' .. name] or ''
            list[last + 4], list[last + 5], list[last + 6] = int(waiting), int(oldest), int(gone)
        end
    end
    return list
end
