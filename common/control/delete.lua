-- SPDX-License-Identifier: Apache-2.0
-- delete: takes a queue away for good, because the operator says so. Everything goes in one step; the memory is freed
-- in the background.
-- Flags: allow-oom
-- Parts: prelude.changes
--
-- ARGV     1 how long the record of changes is kept, ms (retention.changes)   2 1: it is listed, so it is a queue, even
--          if it has no keys   then who (prelude.changes)
-- Returns  { 1 there was a queue | 0 there was none, its generation or '0' }
--
-- The entry of the record of changes follows in a step of its own, unlist_queue, because it belongs to no queue any
-- more; until then tl:{q}:retired says who it was.
--
-- Invariants: no program creates the queue again by itself, until an operator does (ensure.lua); the places and passes
-- of its generation never mean anything again (prelude.recovery.lua). What stays: the record of changes, for as long as
-- the setting says; the answers to repeated calls, for a day; presence and spent invites, until they expire.
local kept_ms = tonumber(ARGV[1])
local K_RETIRED = key_of('retired')
local generation = redis.call('HGET', K_STATE, 'generation')
local keys = { K_STATE, K_CONFIG, K_WAITING, K_ACTIVE, K_SESSIONS, K_ENDED, K_EVENTS, K_INGEST, K_BATCHES }
for _, name in ipairs({ 'reports', 'lost', 'drawn', 'poison', 'signs', 'feedback', 'held', 'serials', 'promised',
    'history', 'history:minutes', 'journal', 'dispatcher', 'admitter', 'expirer', 'notifier' }) do
    keys[#keys + 1] = key_of(name)
end
if redis.call('EXISTS', unpack(keys)) == 0 and ARGV[2] ~= '1' then
    return { 0, '0' }
end
-- Fails when it is of another type, before anything is written.
local retired = redis.call('HGET', K_RETIRED, 'generation')
redis.call('HSET', K_RETIRED, 'generation', generation or retired or '0', 'away', '1', 'at', int(now_ms()), 'who',
    CHANGED_BY, 'from', CHANGED_FROM)
redis.call('UNLINK', unpack(keys))
redis.call('PEXPIRE', key_of('changes'), int(kept_ms))
return { 1, generation or '0' }
