-- SPDX-License-Identifier: Apache-2.0
-- list_queue: adds a queue to tl:queues. A step of its own: that key is in another slot than the queue's.
-- Flags: allow-oom
--
-- KEYS     1 tl:queues      (not the keys of the other scripts)
-- ARGV     1 name of the queue
-- Returns  1 added, 0 was listed
return redis.call('SADD', KEYS[1], ARGV[1])
