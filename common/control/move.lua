-- SPDX-License-Identifier: Apache-2.0
-- move: puts one waiting visitor into another lane, because the operator says so. The seq stays the same, so the
-- visitor stands there before everyone who joined later.
--
-- args     1 about how many events to keep   2 the visitor   3 the name of the lane   and who (line/changes.lua)
-- returns  { one of MOVE, of `done` the name of the lane before, of `ended` the score in tl:{q}:ended }; only `done`
--          changed something
--
-- Invariants: the visitor waits, once, with the same seq; sizes and totals stay as they are. A ticket of the old place
-- is one of the new place, by its seq.

local MOVE = defs.MOVE
local FIELDS = state.fields({}, {})
local WRITES = { 'waiting', 'active', 'events' }

entry('move', { 'allow-oom' }, function(keys, args)
    local c, id, name = state.open(state.begin(keys, args[1]), FIELDS), args[2], args[3]
    local place = visitor.place(c, id)
    if not place then
        if call('ZSCORE', c.key.active, id) then return { MOVE.active } end
        local ended = call('ZSCORE', c.key.ended, id)
        return ended and { MOVE.ended, ended } or { MOVE.none }
    end
    local names, lane = settings.lanes(c), nil
    for i = 1, #names do
        if names[i] == name then lane = i - 1 end
    end
    local lane_now = floor(place / defs.LANE)
    if not lane then return { MOVE.no_lane } end
    if lane == lane_now then return { MOVE.there } end
    state.check(c, WRITES)
    local before = names[lane_now + 1] or ''
    changes.record(c, changes.actor(args), 'move', { visitor = id, lane = before }, { visitor = id, lane = name })
    visitor.move(c, id, place, lane)
    state.set(c, 'moved:' .. text.int(lane), c.now) -- an audit does not take those called there before for out of turn
    state.commit(c)
    return { MOVE.done, before }
end)
