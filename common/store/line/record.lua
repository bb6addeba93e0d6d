-- SPDX-License-Identifier: Apache-2.0
-- The record of a queue, tl:{q}:record: what happened to each visitor, for the archiver. A step notes what its verbs
-- do, and its commit writes one entry; docs/contributors/wire-format.md describes it. Nothing is noted where the state
-- has no field `archive`, which the archiver sets (archiver/archive.lua):
--
--   "ROOM": what the record may still hold, until the archiver has acknowledged some of it, as one number, which costs
--   less than two: units of RECORD_UNIT bytes * 2^24 + entries. Each entry takes whole units.
--   "ROOM MISSING SINCE": MISSING notes were not written because there was no room, since then, ms. None is written
--   then, until all who wait and are active are told again.
--
-- Field `standing` says how far that has come: "WHY SINCE MISSING STAGE CURSOR", or nothing when it is done. Field
-- `counted`, "EVENT:MS:TOTAL:...": what the totals of ends were then; each end since is in the record.
--
-- Msgpack that is not made of tables is written as bytes: 148 an array of four, 146 of two; 207 and 205 a number of
-- eight bytes and of two; 219 a text, after the four bytes of its length.

local ENTRIES, UNIT = 16777216, defs.RECORD_UNIT
local HEAD, ONE, LIST = 'I3I8BI8BI8', 'BBBI8BI4c0I2I8B', 'BBBI8BI4'
local FIRST_ONE, NEXT_ONE, FIRST_LIST, NEXT_LIST = '>' .. HEAD .. ONE, '>' .. ONE, '>' .. HEAD .. LIST, '>' .. LIST
local BEGIN, SPAN = 148 * 65536 + defs.RECORD_VERSION * 256 + 207, 146 * 256 + 207 -- several bytes at once

-- The room as a number, and its units.
function record.room(units, entries) return text.int(max(0, units) * ENTRIES + max(0, entries)) end
function record.units(room) return floor(room / ENTRIES) end

-- The text of `standing` from which all are told, because of this GAP, since then, ms, or now. One that has not begun
-- stays: it may be about notes that are missing.
function record.from_start(c, why, since)
    local standing = call('HGET', c.key.state, 'standing') or ''
    return match(standing, '^%d %d+ %d+ begin') and standing or format('%d %d 0 begin 0', why, since or c.now)
end

-- The totals of ends, in the order of their REASON, as this step leaves them; nil: one is damaged.
local ENDS = { 'completed', 'left', 'expired', 'unclaimed', 'absent', 'removed' }

local function ends_of(c)
    local n = call('HMGET', c.key.state, unpack(ENDS))
    for i = 1, #ENDS do
        n[i] = tonumber(c.changes[ENDS[i]] or n[i])
        if not n[i] then return end
    end
    n[3] = n[3] - n[4] - n[5] - n[6]
    return n
end

-- Before the commit of a step after which the record has all ends again that the totals count.
function record.count_from_here(c)
    local n = c.archive and ends_of(c)
    if n then state.set(c, 'counted', format('%d:%d:%d:%d:%d:%d:%d:%d', c.event + 1, c.now, unpack(n))) end
end

-- How many have ended since, by REASON, as texts: event, age in ms, completed, left, ...; {}: it cannot be told.
function record.ended_since(c)
    local event, ms, rest = match(call('HGET', c.key.state, 'counted') or '', '^(%d+):(%d+)([:%d-]+)$')
    local n, i = event and ends_of(c), 0
    if not n then return {} end
    local list = { event, text.int(max(0, c.now - ms)) }
    for before in gmatch(rest, '-?%d+') do
        i = i + 1
        list[i + 2] = format('%d', (n[i] or 0) - before)
    end
    return i == #ENDS and list or {}
end

-- The parts of the entry as a list, before another one is added. The first one is alone most of the time.
local function parts_of(c)
    if type(c.notes) == 'string' then c.notes = { c.notes } end
    return c.notes
end

-- Notes what happened to one visitor at a place.
function record.one(c, kind, detail, id, place)
    c.noted = c.noted + 1
    if not c.notes then
        c.notes = pack_bytes(FIRST_ONE, BEGIN, c.generation, 207, c.event + 1, 207, c.now,
            148, kind, 207, detail, 219, #id, id, SPAN, place, 1)
    else
        local parts = parts_of(c)
        parts[#parts + 1] = pack_bytes(NEXT_ONE, 148, kind, 207, detail, 219, #id, id, SPAN, place, 1)
    end
end

-- The same of visitors; without any, spans are other numbers. Copies the lists: they may be changed afterwards.
function record.note(c, kind, detail, ids, spans)
    if #ids == 1 and #spans == 2 then return record.one(c, kind, detail, ids[1], spans[1]) end
    local all, is_one = concat(ids, ' '), #ids > 0 and #spans == 2
    local ends = is_one and pack_bytes('>I2I8BH', SPAN, spans[1], 205, spans[2]) or pack(spans)
    c.noted = c.noted + 1
    if not c.notes then
        c.notes = { pack_bytes(FIRST_LIST, BEGIN, c.generation, 207, c.event + 1, 207, c.now,
            148, kind, 207, detail, 219, #all), all, ends }
    else
        local parts = parts_of(c)
        local n = #parts
        parts[n + 1], parts[n + 2], parts[n + 3] = pack_bytes(NEXT_LIST, 148, kind, 207, detail, 219, #all), all, ends
    end
end

-- The same for ends. Without their places nobody can tell which they were, so all who are left are told again.
function record.ended(c, reason, ids, spans)
    if #spans == 0 then return state.set(c, 'standing', record.from_start(c, defs.GAP.corrected)) end
    record.note(c, defs.NOTE.ended, reason, ids, spans)
end

-- The entry of this step, with what was noted.
function record.entry(c) return type(c.notes) == 'string' and c.notes or concat(c.notes) end

-- There is no room: counts the notes. nil: `archive` is damaged, and the archiver tells all again.
local function count_missing(c)
    local room, missing, since = match(c.archive, '^(%d+) ?(%d*) ?(%d*)$')
    if not room then return end
    missing = (tonumber(missing) or 0) + c.noted
    state.set(c, 'archive', format('%s %d %d', room, missing, tonumber(since) or c.now))
end

-- The entry of this step, if there is room for it; else nil.
function record.take(c)
    local entry, room = c.notes, tonumber(c.archive)
    if type(entry) ~= 'string' then entry = concat(entry) end
    local taken = ceil(#entry / UNIT) * ENTRIES
    if room and room > taken and room % ENTRIES > 0 then
        state.set(c, 'archive', format('%d', room - taken - 1))
        return entry
    end
    if c.is_urgent then return entry end -- whatever room there is
    count_missing(c)
end

-- Writes an entry. An unusable record stops no one: the archiver looks at it, complains, and tells all again.
function record.append(c, entry)
    if type(pcall_redis('XADD', c.key.record, '*', 'd', entry)) == 'table' then
        call('HSET', c.key.state, 'standing', record.from_start(c, defs.GAP.damaged))
    end
end
