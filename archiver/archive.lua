-- SPDX-License-Identifier: Apache-2.0
-- archive: the archiver has written entries of the record where they last. Drops them, gives the record room again, and
-- tells all who wait and are active, in portions, where what was told before is not complete.
-- args     1 keep   2 most entries of the record, 0: the record ends   3 most units (RECORD_UNIT) of it
--          4 id of the last entry that was written, '': none   5 how many these were   6 their units
-- returns  ARCHIVE
--
-- Invariants: the record never holds more than it may; what is missing in it is told before what follows. Changes
-- nothing of the line. Work is bounded.

local NOTE, GAP = defs.NOTE, defs.GAP
local LANE, LANES, int, number = defs.LANE, defs.LANES_MAX, text.int, text.number
local PORTION = 500 -- visitors told in a call
-- archive_units: the most, at the last call
local FIELDS = state.fields({}, { 'standing', 'restore', 'archive_units' })

-- Drops what was written. Returns the units that are free by it.
local function acknowledge(c, args)
    local ms, nth = match(args[4], '^(%d+)-(%d+)$')
    if not ms then return 0 end
    local dropped = call('XTRIM', c.key.record, 'MINID', '=', ms .. '-' .. int(nth + 1))
    return dropped > 0 and floor(args[6] * min(1, dropped / args[5])) or 0 -- another archiver may have dropped some
end

-- The units that are free. before: what `archive` said, or nil: then nobody knows how large the entries are that are
-- there, and there is no room until they are gone.
local function free_units(c, held, before, most, freed)
    if held == 0 then return most end
    local units = before and record.units(before) or 0
    return min(most, max(0, units + freed + most - (tonumber(c.archive_units) or most)))
end

-- The next portion of the line. Returns where the one after it begins, '' behind the last.
local function tell_waiting(c, cursor)
    local found = call('ZRANGE', c.key.waiting, '(' .. cursor, int(LANE * LANES), 'BYSCORE', 'LIMIT', 0, PORTION,
        'WITHSCORES')
    local ids, spans = {}, {}
    for i = 1, #found, 2 do
        local place = number(found[i + 1])
        if place then ids[#ids + 1], spans[#spans + 1], spans[#spans + 2] = found[i], place, 1 end
    end
    if #ids > 0 then record.note(c, NOTE.waits, 0, ids, spans) end
    return #found == 2 * PORTION and int(spans[#spans - 1]) or ''
end

-- The same of sessions. A scan names each that is there from its first call to its last.
local function tell_active(c, cursor)
    local scan = call('ZSCAN', c.key.active, cursor, 'COUNT', PORTION)
    for i = 1, #scan[2], 2 do
        local id, session = scan[2][i], visitor.session(c, scan[2][i])
        if session then
            record.note(c, NOTE.stays, tonumber(scan[2][i + 1]), { id },
                { session.place, 1, session.admitted, session.claimed and 1 or 0 })
        end
    end
    return scan[1] == '0' and '' or scan[1]
end

-- Goes on to tell all. Returns `standing` as it is then, '' when everybody was told.
local function tell(c)
    local why, since, missing, stage, cursor = match(c.standing, '^(%d) (%d+) (%d+) (%a+) (%d+)$')
    if stage ~= 'waiting' and stage ~= 'active' then
        why, since, missing = why or GAP.corrected, since or int(c.now), missing or '0'
        record.note(c, NOTE.begins, missing + 0, {}, { why + 0, since + 0 })
        settings.note_rules(c)
        stage, cursor = 'waiting', '0'
    end
    local following = (stage == 'waiting' and tell_waiting or tell_active)(c, cursor)
    if following == '' and stage == 'active' then
        record.note(c, NOTE.all, 0, {}, {})
        return ''
    elseif following == '' then
        stage, following = 'active', '0'
    end
    return concat({ why, since, missing, stage, following }, ' ')
end

-- 1: the archive may bring back what the store has lost; 2: it was asked to, or has begun (restore.lua).
local function restorable(c)
    local stage = match(c.restore or '', '^%a+') or ''
    if stage == 'asked' or stage == 'running' then return 2 end
    return stage == '' and recovery.is_open(c) and 1 or 0
end

entry('archive', { 'allow-oom' }, function(keys, args)
    local c, most, most_units = state.open(state.begin(keys, args[1]), FIELDS), args[2] + 0, args[3] + 0
    state.check(c, { 'waiting', 'active', 'events', 'record' })
    local freed = acknowledge(c, args)
    local held = call('XLEN', c.key.record)
    if most == 0 then
        call('UNLINK', c.key.record)
        state.repair(c, { archive = false, archive_units = false, standing = false })
        return { 0, 0, 0, 0, 0 }
    end
    local restore = restorable(c)
    local before, missing, since = match(c.archive or '', '^(%d+) ?(%d*) ?(%d*)$')
    local units = free_units(c, held, before, most_units, freed)
    local has_room = held <= most / 2 and units >= most_units / 2 -- half of it stays for what happens meanwhile
    local room = record.room(units, most - held)
    if not before then
        state.set(c, 'standing', record.from_start(c, GAP.opened))
    elseif missing ~= '' and has_room then
        state.set(c, 'standing', concat({ GAP.backlog, since, missing, 'begin', '0' }, ' '))
    elseif missing ~= '' then
        room = concat({ room, missing, since }, ' ')
    end
    state.set(c, 'archive', room)
    state.set(c, 'archive_units', int(most_units))
    if (c.standing or '') ~= '' and has_room then state.set(c, 'standing', tell(c)) end
    if c.notes or c.is_corrected then
        state.commit(c)
    else
        state.repair(c, c.changes)
    end
    local oldest = call('XRANGE', c.key.record, '-', '+', 'COUNT', 1)[1]
    return { call('XLEN', c.key.record), oldest and max(0, c.now - text.id_ms(oldest[1])) or 0,
        tonumber(match(c.archive, ' (%d+) ')) or 0, c.standing and c.standing ~= '' and has_room and 1 or 0, restore }
end)
