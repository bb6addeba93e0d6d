-- SPDX-License-Identifier: Apache-2.0
-- unlist_queue: takes a deleted queue off tl:queues, and records that it is gone where the changes of no queue are. A
-- step of its own: these keys are in another slot than the queue's.
--
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
