-- SPDX-License-Identifier: Apache-2.0
-- unlist_queue: takes a deleted queue off tl:queues, and records that it is gone where the changes of no queue are. A
-- step of its own: these keys are in another slot than the queue's.
-- Flags: allow-oom
-- Parts: prelude.changes
--
-- KEYS     1 tl:queues   2 tl:changes      (not the keys of the other scripts)
-- ARGV     1 name of the queue   2 its generation
--          and who (prelude.changes)
-- Returns  1 it was listed; 0 it was not: nothing was changed
redis.call('XLEN', KEYS[2]) -- fails when it is of another type, before anything is written
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 0 then
    return 0
end
record_change_in(KEYS[2], 'delete', { generation = ARGV[2] }, {}, ARGV[1])
return redis.call('SREM', KEYS[1], ARGV[1])
