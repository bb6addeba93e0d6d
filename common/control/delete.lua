-- SPDX-License-Identifier: Apache-2.0
-- delete: takes a queue away for good, because the operator says so. The memory is freed in the background.
-- args     1 how long the record of changes is kept, ms   2 1: it is listed, so it is a queue, even if it has no keys
--          3 how long the mark of the deletion is kept, ms; 0: for good   and who
-- returns  { 1 there was a queue | 0 there was none, its generation or '0' }
--
-- Invariants: no program creates the queue again by itself, until an operator does (ensure.lua); the places and passes
-- of its generation never mean anything again (line/recovery.lua). What stays is `kept` in protocol.def. The record of
-- changes follows in unlist_queue, because it no longer belongs to a queue; until then tl:{q}:retired says who it was.

local UNREAD_MS = 86400000 -- a day, in which the archiver has to come back

entry('delete', { 'allow-oom' }, function(keys, args)
    local c, actor, all = state.begin(keys), changes.actor(args), {}
    for _, each in ipairs(defs.KEY) do
        if each.whose ~= 'kept' then all[#all + 1] = c.key[each.name] end
    end
    local found = call('HMGET', c.key.state, 'generation', 'event', 'archive')
    local generation, event = found[1], text.number(found[2])
    if call('EXISTS', unpack(all)) == 0 and args[2] ~= '1' then return { 0, '0' } end
    local retired = call('HGET', c.key.retired, 'generation')
    call('HSET', c.key.retired, 'generation', generation or retired or '0', 'away', '1', 'at', text.int(c.now), 'who',
        actor.by, 'from', actor.from)
    if args[3] ~= '0' then call('PEXPIRE', c.key.retired, args[3]) end
    if found[3] and text.number(generation) and event then
        c.generation, c.event = generation + 0, event
        record.note(c, defs.NOTE.deleted, 0, {}, {})
        record.append(c, record.entry(c))
        pcall_redis('PEXPIRE', c.key.record, UNREAD_MS)
    end
    call('UNLINK', unpack(all))
    call('PEXPIRE', c.key.changes, args[1])
    return { 1, generation or '0' }
end)

-- unlist_queue: takes a deleted queue off tl:queues, and records that it is gone where the changes of no queue are. A
-- step of its own: these keys are in another slot than the queue's.
-- keys     1 tl:queues   2 tl:changes
-- args     1 name of the queue   2 its generation   and who
-- returns  1 it was listed; 0 it was not: nothing was changed
entry('unlist_queue', { 'allow-oom' }, function(keys, args)
    call('XLEN', keys[2]) -- fails when it is of another type, before anything is written
    if call('SISMEMBER', keys[1], args[1]) == 0 then return 0 end
    local now, actor = floor(state.now_us() / 1000), changes.actor(args)
    changes.record_in(keys[2], now, actor, 'delete', { generation = args[2] }, {}, args[1])
    return call('SREM', keys[1], args[1])
end)
