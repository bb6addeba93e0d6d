-- SPDX-License-Identifier: Apache-2.0
-- head: the last event of a queue, from which a reader takes a snapshot and follows on. Changes nothing.
--
-- args     none
-- returns  HEAD: the fields of the state, `event` the number of the last event and `turns` those of the lanes
--          (line/lanes.lua), '0' or '' for a missing one; id of the last entry of the events, '0-0': none

local HEAD = defs.HEAD

entry('head', { 'no-writes' }, function(keys)
    local c = state.find(keys)
    local v = call('HMGET', c.key.state, 'generation', 'event', 'base_seq', 'found_seq', 'seq', 'turns')
    local last = call('XREVRANGE', c.key.events, '+', '-', 'COUNT', 1)[1]
    return { [HEAD.generation] = v[1], [HEAD.event] = v[2], [HEAD.id] = last and last[1] or '0-0',
        [HEAD.base_seq] = v[3] or '0', [HEAD.found_seq] = v[4] or '0', [HEAD.seq] = v[5] or '0',
        [HEAD.turns] = v[6] or '' }
end)
