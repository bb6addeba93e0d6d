-- SPDX-License-Identifier: Apache-2.0
-- The record of changes: who changed what, when and from where. The step that changes something writes the entry.
--
-- The last three arguments of each script with this part are: who, from where, and about how many changes are kept.
-- They are taken off ARGV here, so that the script counts its own arguments as if there were no more.

local CHANGES_KEPT, CHANGED_FROM, CHANGED_BY = table.remove(ARGV), table.remove(ARGV), table.remove(ARGV)

-- Appends an entry to this stream and returns { before, after } as texts; writes nothing when nothing differs.
--   what           create, set, mode, notice, remove, move, recover, draw, delete, forget, restore, ...
--   before, after  the members that changed, name -> text
--   queue          of an entry in tl:changes: the queue that it concerns, or nil
local function record_change_in(stream, what, before, after, queue)
    local old, new = cjson.encode(before), cjson.encode(after)
    if next(before) or next(after) then
        redis.call('XADD', stream, 'MAXLEN', '~', CHANGES_KEPT, '*', 'at', int(now_ms()), 'who', CHANGED_BY, 'from',
            CHANGED_FROM, 'what', what, 'before', old, 'after', new, unpack(queue and { 'queue', queue } or {}))
    end
    return { old, new }
end

-- The same for a change of this script's queue.
local function record_change(what, before, after)
    return record_change_in(key_of('changes'), what, before, after)
end
