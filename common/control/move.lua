-- SPDX-License-Identifier: Apache-2.0
-- move: puts one waiting visitor into another lane, because the operator says so. The seq stays the same, so the
-- visitor stands there before everyone who joined later.
--
-- args     1 about how many events to keep   2 the visitor   3 the name of the lane   and who (line/changes.lua)
-- returns  { MOVED, name of the lane before } | { THERE } the visitor waits in that lane already | { NO_LANE } |
--          { ACTIVE } | { ENDED, score in tl:{q}:ended } | { NONE }; only the first changed something
--
-- Invariants: the visitor waits, once, with the same seq; sizes and totals stay as they are. A ticket of the old place
-- is one of the new place, by its seq.

local NONE, MOVED, ACTIVE, ENDED, THERE, NO_LANE = 0, 1, 2, 3, 4, 5
local FIELDS = state.fields({}, {})
local WRITES = { 'waiting', 'active', 'events' }

entry('move', { 'allow-oom' }, function(keys, args)
    local c, id, name = state.open(state.begin(keys, args[1]), FIELDS), args[2], args[3]
    local place = visitor.place(c, id)
    if not place then
        if call('ZSCORE', c.key.active, id) then return { ACTIVE } end
        local ended = call('ZSCORE', c.key.ended, id)
        return ended and { ENDED, ended } or { NONE }
    end
    local names, lane = settings.lanes(c), nil
    for i = 1, #names do
        if names[i] == name then lane = i - 1 end
    end
    local lane_now = floor(place / defs.LANE)
    if not lane then return { NO_LANE } end
    if lane == lane_now then return { THERE } end
    state.check(c, WRITES)
    local before = names[lane_now + 1] or ''
    changes.record(c, changes.actor(args), 'move', { visitor = id, lane = before }, { visitor = id, lane = name })
    visitor.move(c, id, place, lane)
    state.set(c, 'moved:' .. text.int(lane), c.now) -- an audit does not take those called there before for out of turn
    state.commit(c)
    return { MOVED, before }
end)
