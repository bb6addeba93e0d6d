-- SPDX-License-Identifier: Apache-2.0
-- The record of changes: who changed what, when and from where. The step that changes something writes the entry, as
-- its first write: were the key of another type, nothing would be changed.

-- By the last arguments of a function with a record: who, from where, and about how many changes are kept.
function changes.actor(args)
    local n = #args
    return { by = args[n - 2], from = args[n - 1], kept = args[n] }
end

-- Appends an entry to this stream and returns { before, after } as texts; writes nothing when nothing differs. before,
-- after: the members that changed, name -> text; queue: of an entry in tl:changes, the one it concerns, or nil.
function changes.record_in(stream, now, actor, what, before, after, queue)
    local old, new = cjson.encode(before), cjson.encode(after)
    if next(before) or next(after) then
        call('XADD', stream, 'MAXLEN', '~', actor.kept, '*', 'at', text.int(now), 'who', actor.by, 'from', actor.from,
            'what', what, 'before', old, 'after', new, unpack(queue and { 'queue', queue } or {}))
    end
    return { old, new }
end

-- The same for a change of the queue of this step.
function changes.record(c, actor, what, before, after)
    return changes.record_in(c.key.changes, c.now, actor, what, before, after)
end
