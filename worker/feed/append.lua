-- SPDX-License-Identifier: Apache-2.0
-- append: appends a batch without joins to the ingest stream, at the memory limit too.
-- Flags: allow-oom
--
-- KEYS     tl:{q}:state alone: a worker may declare no other (deploy/redis/users.acl)
-- ARGV     1 the batch
-- Returns  the entry's id; nothing if the queue does not exist
return redis.call('XADD', K_INGEST, 'NOMKSTREAM', '*', 'd', ARGV[1])
