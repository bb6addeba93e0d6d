-- SPDX-License-Identifier: Apache-2.0
-- archive: the archiver has written entries of the record where they last. Drops them, gives the record room again, and
-- tells all who wait and are active, in portions, where what was told before is not complete.
-- args     1 keep   2 most entries of the record, 0: the record ends   3 most units (RECORD_UNIT) of it
--          4 id of the last entry that was written, '': none   5 how many these were   6 their units
--          7 the generation of the last of them, as event: 8 PostgreSQL had before, '': not asked   9 the time of that,
--          ms   10 it has now
-- returns  ARCHIVE
--
-- Invariants: the record never holds more than it may; what is missing in it is told before what follows. Changes
-- nothing of the line. Work is bounded.

local NOTE, GAP = defs.NOTE, defs.GAP
local LANE, LANES, int, number = defs.LANE, defs.LANES_MAX, text.int, text.number
local PORTION = 500 -- visitors told in a call
-- archive_units: the most, at the last call
-- archived: the last event that PostgreSQL has said to have
local FIELDS = state.fields({}, { 'standing', 'restore', 'archive_units', 'archived' })

-- Drops what was written. Returns the units that are free by it.
local function acknowledge(c, args)
    local ms, nth = match(args[4], '^(%d+)-(%d+)$')
    if not ms then return 0 end
    local dropped = call('XTRIM', c.key.record, 'MINID', '=', ms .. '-' .. int(nth + 1))
    return dropped > 0 and floor(args[6] * min(1, dropped / args[5])) or 0 -- another archiver may have dropped some
end

-- One of them has gone back to an older copy: PostgreSQL lacks what it had, or has events that are still to come here,
-- as the clock went back too; it would skip them as known. Then all are told again, with other numbers.
local function compare(c, args)
    local known, at, written = tonumber(args[8]), args[9] + 0, args[10] + 0
    if args[7] + 0 ~= c.generation then return end
    if known and known < (tonumber(c.archived) or 0) then
        local missing = match(c.standing or '', '^%d %d+ (%d+) begin') or '0'
        local since = at > 0 and at or floor(c.generation / 1000)
        state.set(c, 'standing', concat({ GAP.archive, int(since), missing, 'begin', '0' }, ' '))
    elseif known and known > c.event then
        c.event, c.is_corrected = known + state.BASE_GAP, true
        state.set(c, 'standing', record.from_start(c, GAP.store, min(at, c.now)))
    end
    if written > 0 then state.set(c, 'archived', int(written)) end
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
        record.count_from_here(c)
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

-- 1: the archive may bring back what the store has lost; 2: it was asked to, or has begun (restore.lua). And whether
-- that is of the present generation.
local function restorable(c)
    local stage, of_present = match(c.restore or '', '^%a+') or '', rewind.stage(c, c.restore)
    if stage == 'asked' or stage == 'running' then return 2, of_present end
    if of_present then return recovery.recovers(c) and 1 or 0, of_present end
    return stage == '' and recovery.is_open(c) and 1 or 0
end

entry('archive', { 'allow-oom' }, function(keys, args)
    local c, most, most_units = state.open(state.begin(keys, args[1]), FIELDS), args[2] + 0, args[3] + 0
    state.check(c, { 'waiting', 'active', 'events', 'record' })
    local freed = acknowledge(c, args)
    local held = call('XLEN', c.key.record)
    if most == 0 then
        call('UNLINK', c.key.record)
        state.repair(c, { archive = false, archive_units = false, archived = false, standing = false,
            counted = false })
        return { 0, 0, 0, 0, 0, 0, 0, 0 }
    end
    local restore, of_present = restorable(c)
    local comes_back = of_present and restore > 0 -- only then those who are there are all who should be
    if comes_back then rewind.await(c) end
    local before, missing, since = match(c.archive or '', '^(%d+) ?(%d*) ?(%d*)$')
    local units = free_units(c, held, before, most_units, freed)
    local has_room = held <= most / 2 and units >= most_units / 2 -- half of it stays for what happens meanwhile
    local room = record.room(units, most - held)
    compare(c, args)
    if not before then
        state.set(c, 'standing', record.from_start(c, GAP.opened, floor(c.generation / 1000)))
    elseif missing ~= '' and has_room then
        state.set(c, 'standing', concat({ GAP.backlog, since, missing, 'begin', '0' }, ' '))
    elseif missing ~= '' then
        room = concat({ room, missing, since }, ' ')
    end
    state.set(c, 'archive', room)
    state.set(c, 'archive_units', int(most_units))
    local tells = has_room and not comes_back
    if tells and (c.standing or '') ~= '' then state.set(c, 'standing', tell(c)) end
    if c.notes or c.is_corrected then
        state.commit(c)
    else
        state.repair(c, c.changes)
    end
    local oldest = call('XRANGE', c.key.record, '-', '+', 'COUNT', 1)[1]
    return { call('XLEN', c.key.record), oldest and max(0, c.now - text.id_ms(oldest[1])) or 0,
        tonumber(match(c.archive, ' (%d+) ')) or 0, tells and (c.standing or '') ~= '' and 1 or 0, restore,
        comes_back and 1 or 0, c.generation, tonumber(c.archived) or 0 }
end)
