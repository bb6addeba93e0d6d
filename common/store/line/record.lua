-- SPDX-License-Identifier: Apache-2.0
-- The record of a queue, tl:{q}:record: what happened to each visitor, for the archiver. A step notes what its verbs
-- do, and its commit writes one entry; docs/contributors/wire-format.md describes it. Nothing is noted where the state
-- has no field `archive`, which the archiver sets (archiver/archive.lua):
--
--   "ENTRIES BYTES MISSING SINCE": how much the record may still hold, until the archiver has acknowledged some of it;
--   how many notes were not written because there was no room, and since when, ms. While some are missing none is
--   written: then all who wait and are active are told again.
--
-- Field `standing` says how far that has come: "WHY SINCE MISSING STAGE CURSOR", or nothing when it is done.

local FORMAT = '%d %d %d %d'

-- The text of `standing` from which all are told, because of this GAP.
function record.from_start(c, why) return format('%d %d 0 begin 0', why, c.now) end

-- Notes what happened to visitors. Packs it at once: the lists may be changed afterwards.
function record.note(c, kind, detail, ids, spans)
    local notes = c.notes
    if not notes then
        notes = {}
        c.notes = notes
    end
    notes[#notes + 1] = '\148' .. pack(kind, detail, ids, spans) -- an array of four
end

-- The same for ends. Without their places nobody can tell which they were, so all who are left are told again.
function record.ended(c, reason, ids, spans)
    if #spans == 0 then return state.set(c, 'standing', record.from_start(c, defs.GAP.corrected)) end
    record.note(c, defs.NOTE.ended, reason, ids, spans)
end

-- The notes of a step as they are written, if there is room for them; else nil, and they are counted.
function record.take(c)
    local entries, bytes, missing, since = match(c.archive, '^(%d+) (%d+) (%d+) (%d+)$')
    if not entries then return nil end -- damaged: the archiver tells all again
    local notes = concat(c.notes)
    if c.is_urgent then return notes end -- whatever room there is
    entries, bytes, missing = entries - 1, bytes - #notes, missing + 0
    if entries >= 0 and bytes >= 0 and missing == 0 then
        state.set(c, 'archive', format(FORMAT, entries, bytes, 0, 0))
        return notes
    end
    if missing == 0 then since = c.now end
    state.set(c, 'archive', format(FORMAT, max(0, entries), max(0, bytes), missing + #c.notes, since))
end

-- Writes an entry: its head, an array of four, and the notes behind it. An unusable record stops no one: the
-- archiver looks at it, and complains.
function record.append(c, event, notes)
    pcall_redis('XADD', c.key.record, '*', 'd',
        '\148' .. pack(defs.RECORD_VERSION, c.generation, event, c.now) .. notes)
end
