-- SPDX-License-Identifier: Apache-2.0
-- durable: a write of the caller's connection, for WAIT and WAITAOF, which wait for such a write and thereby for all
-- before it.
-- Flags: allow-oom
--
-- KEYS     1 a key of the caller's own (not the keys of the other scripts)
-- ARGV     1 milliseconds after which the key is gone
-- Returns  1
redis.call('SET', KEYS[1], '', 'PX', ARGV[1])
return 1
