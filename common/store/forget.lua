-- SPDX-License-Identifier: Apache-2.0
-- forget: erases what is kept of one visitor who is neither waiting nor active, in bounded steps. The caller goes on
-- with the step that each call names.
-- args     1 the visitor   2 the step
--          'sets'   3 keep    the end, the next turn, and entries that were set aside; tells the archiver
--          'spent'  3 cursor  a part of the keys: invites keep that they are spent, and no longer by whom
--          'look'   3 stream, 4 id       do entries of this stream ('journal', 'changes') after this id name the
--                                        visitor?
--          'copy'   3 stream, 4 id, 5 a random name   copies entries after this id, without the visitor; at the end,
--                                                     the copy takes the place of the stream
--          'record' 3 in how many places the id was erased: the record of changes says so, without the id
--          and who
-- returns  { how many places were erased, what follows: the next cursor or id; '' when the step is done; or 'found' }
-- fails    INLINE   the visitor waits or is active: nothing was changed
-- The ids of entries stay, so readers of a stream go on where they are.

local ENTRIES, KEYS_SCANNED = 50, 500 -- in one call

-- Erase the visitor from the fields of an entry of a stream. Return in how many places.
local ERASE = {
    -- `data` of an admission: ids, separated by spaces.
    journal = function(fields, id)
        local found = 0
        for i = 1, #fields, 2 do
            if fields[i] == 'data' and find(fields[i + 1], id, 1, true) then
                local others = {}
                for each in gmatch(fields[i + 1], '%S+') do
                    if each == id then found = found + 1 else others[#others + 1] = each end
                end
                fields[i + 1] = concat(others, ' ')
            end
        end
        return found
    end,
    -- JSON in which the id is a text, written by Lua or by C.
    changes = function(fields, id)
        local found = 0
        for i = 2, #fields, 2 do
            for _, quoted in ipairs({ cjson.encode(id), '"' .. id .. '"' }) do
                local from, to = find(fields[i], quoted, 1, true)
                while from do
                    fields[i] = sub(fields[i], 1, from - 1) .. '"(forgotten)"' .. sub(fields[i], to + 1)
                    found = found + 1
                    from, to = find(fields[i], quoted, from + 13, true) -- behind what stands there now
                end
            end
        end
        return found
    end,
}

local STEPS = {}

function STEPS.sets(c, id, args)
    local keys = { 'ended', 'sessions', 'held' }
    if call('HGET', c.key.state, 'archive') then -- a step of the queue, whose state must be sound
        c.keep, keys = args[3], { 'waiting', 'active', 'ended', 'sessions', 'held', 'events' }
        state.open(c, state.CORE)
    end
    state.check(c, keys)
    local set_aside = call('XRANGE', c.key.poison, '-', '+', 'COUNT', 200)
    local erased = visitor.forget(c, id)
    for _, one in ipairs(set_aside) do
        if find(concat(one[2], '\n'), id, 1, true) then erased = erased + call('XDEL', c.key.poison, one[1]) end
    end
    if c.archive then
        record.note(c, defs.NOTE.forgotten, 0, { id }, {})
        c.is_urgent, erased = true, erased + 1 -- what PostgreSQL has counts as one place
        state.commit(c)
    end
    return { erased, '' }
end

function STEPS.record(c, _, args)
    changes.record(c, changes.actor(args), 'forget', {}, { places = args[3] })
    return { 0, '' }
end

function STEPS.spent(c, id, args)
    local erased, cursor = invites.forget(c, id, args[3], KEYS_SCANNED)
    return { erased, cursor == '0' and '' or cursor }
end

-- The next entries of a stream, and the id of the last of them, or '' when no more follow.
local function entries_of(key, after)
    local entries = call('XRANGE', key, after == '' and '-' or '(' .. after, '+', 'COUNT', ENTRIES)
    return entries, #entries == ENTRIES and entries[#entries][1] or ''
end

function STEPS.look(c, id, args)
    local entries, last = entries_of(c.key[args[3]], args[4])
    for _, one in ipairs(entries) do
        if ERASE[args[3]](one[2], id) > 0 then return { 0, 'found' } end
    end
    return { 0, last }
end

function STEPS.copy(c, id, args)
    local key, copy, erased = c.key[args[3]], c.key.base .. 'forget:' .. args[5], 0
    local entries, last = entries_of(key, args[4])
    for _, one in ipairs(entries) do
        erased = erased + ERASE[args[3]](one[2], id)
        call('XADD', copy, one[1], unpack(one[2]))
    end
    local first = last == '' and call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
    if last ~= '' then
        call('PEXPIRE', copy, 60000) -- should the caller not come back
    elseif not first or call('EXISTS', copy) == 0 then
        call('UNLINK', copy)
    else -- the copy takes the place of the stream, and lives as long
        call('XTRIM', copy, 'MINID', '=', first[1]) -- what was trimmed meanwhile
        local live_ms = call('PTTL', key)
        call('RENAME', copy, key)
        if live_ms > 0 then call('PEXPIRE', key, live_ms) else call('PERSIST', key) end
    end
    return { erased, last }
end

entry('forget', { 'allow-oom' }, function(keys, args)
    local c, id = state.find(keys), args[1]
    if call('ZSCORE', c.key.waiting, id) or call('ZSCORE', c.key.active, id) then
        state.fail('INLINE', 'the visitor is in the queue: remove the visitor first')
    end
    return STEPS[args[2]](c, id, args)
end)
