-- SPDX-License-Identifier: Apache-2.0
-- list_queue: adds a queue to tl:queues. A step of its own: that key is in another slot than the queue's.
--
-- keys     1 tl:queues      (not the keys of the other functions)
-- args     1 name of the queue
-- returns  1 added, 0 was listed
entry('list_queue', { 'allow-oom' }, function(keys, args) return call('SADD', keys[1], args[1]) end)
