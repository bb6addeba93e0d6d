-- SPDX-License-Identifier: Apache-2.0
-- The hooks of a queue, as operators see them: from tl:{q}:hooks, which the notifier keeps, and the journal.

-- What the command reads, or nothing where the key has another type: the other numbers of a queue are worth having.
local function read_or(nothing, ...)
    local value = redis.pcall(...)
    return type(value) == 'table' and value.err and nothing or value
end

-- { who holds the lease of the notifier or '', then for each hook: name, cursor "EVENT-NTH N", state (JSON, '': nothing
-- was told yet), how many entries of the journal wait for it, when the oldest of them was written (ms, -1: none waits),
-- how many were trimmed before it was told }. At most 20 hooks: the notifier drops those that are gone.
local function hooks_now()
    local found = read_or({}, 'HGETALL', key_of('hooks'))
    local fields, list = {}, { read_or('', 'GET', key_of('notifier')) or '' }
    for i = 1, #found, 2 do
        fields[found[i]] = found[i + 1]
    end
    local journaled = tonumber(fields.journaled) or 0
    for field, cursor in pairs(fields) do
        local name = string.match(field, '^cursor:(.*)')
        local id, n = string.match(cursor, '^(%d+%-%d+) (%d+)$')
        if name and id then
            local behind, oldest, gone = math.max(0, journaled - tonumber(n)), -1, 0
            local entry = behind > 0 and read_or({}, 'XRANGE', key_of('journal'), '(' .. id, '+', 'COUNT', 1)[1]
            if entry then -- its fields in turn: n, at, what, data
                gone = math.min(behind, math.max(0, tonumber(entry[2][2]) - tonumber(n) - 1))
                oldest = tonumber(entry[2][4])
            else
                gone = behind
            end
            local state = fields['state:' .. name] or ''
            for _, value in ipairs({ name, cursor, state, int(behind - gone), int(oldest), int(gone) }) do
                list[#list + 1] = value
            end
        end
    end
    return list
end
