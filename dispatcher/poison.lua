-- SPDX-License-Identifier: Apache-2.0
-- poison: sets an entry that cannot be decoded aside, so that it does not stop the queue.
-- Flags: allow-oom
--
-- ARGV     1 fence   2 stream id of the entry   3 why it is set aside   4 its payload
-- Returns  1 set aside in tl:{q}:poison, which keeps the last 100 entries; 0 the entry was no longer pending
-- Errors   STALE  the fence is out of date: another dispatcher holds the lease
local _, fence = open_state('fence')
if fence ~= ARGV[1] then
    return redis.error_reply('STALE another dispatcher holds the lease')
end
redis.call('XLEN', key_of('poison')) -- fails before the first write if it is no stream
if redis.call('XACK', K_INGEST, INGEST_GROUP, ARGV[2]) == 0 then
    return 0
end
redis.call('XADD', key_of('poison'), 'MAXLEN', 100, '*', 'entry', ARGV[2], 'why', ARGV[3], 'd', ARGV[4])
return 1
