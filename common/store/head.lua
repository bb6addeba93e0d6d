-- SPDX-License-Identifier: Apache-2.0
-- head: the last event of a queue, from which a reader takes a snapshot and follows on. Changes nothing.
--
-- args     none
-- returns  { generation, number of the last event, stream id of the last entry or '0-0', base_seq, found_seq,
--            the last seq used, the turns of the lanes (line/lanes.lua) or '' }
entry('head', { 'no-writes' }, function(keys)
    local c = state.find(keys)
    local v = call('HMGET', c.key.state, 'generation', 'event', 'base_seq', 'found_seq', 'seq', 'turns')
    local last = call('XREVRANGE', c.key.events, '+', '-', 'COUNT', 1)[1]
    return { v[1], v[2], last and last[1] or '0-0', v[3] or '0', v[4] or '0', v[5] or '0', v[6] or '' }
end)
