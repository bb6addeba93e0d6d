-- SPDX-License-Identifier: Apache-2.0
-- head: the last event of a queue, from which a reader takes a snapshot and follows on. Changes nothing.
-- Flags: no-writes
--
-- ARGV     none
-- Returns  { generation, number of the last event, stream id of the last entry or '0-0', base_seq, found_seq,
--            the last seq used, the turns of the lanes (line/lanes.lua) or '' }
-- Errors   NOQUEUE  the queue does not exist
local state = redis.call('HMGET', K_STATE, 'generation', 'event', 'base_seq', 'found_seq', 'seq', 'turns')
if not state[1] then
    return no_queue()
end
local last = redis.call('XREVRANGE', K_EVENTS, '+', '-', 'COUNT', 1)[1]
return { state[1], state[2], last and last[1] or '0-0', state[3] or '0', state[4] or '0', state[5] or '0',
    state[6] or '' }
