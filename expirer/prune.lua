-- SPDX-License-Identifier: Apache-2.0
-- prune: drops what is kept for people and has become too old: signs of misuse, which name networks, and the record of
-- changes, which names operators and their addresses.
-- Flags: allow-oom
--
-- ARGV     1 how long signs are kept, ms   2 how long changes are kept, ms
-- Returns  Redis time ms
--
-- Invariants: nothing but these two streams changes; ids of their entries are times. Both are bounded by their length.
local now = now_ms()
redis.call('XTRIM', key_of('signs'), 'MINID', '=', int(math.max(0, now - ARGV[1])))
redis.call('XTRIM', key_of('changes'), 'MINID', '=', int(math.max(0, now - ARGV[2])))
return now
