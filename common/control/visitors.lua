-- SPDX-License-Identifier: Apache-2.0
-- What an operator does with visitors: move, remove and joins.

local FIELDS = state.fields({ 'expired' }, { 'removed', 'called' })
local FROM_LINE = { 'waiting', 'active', 'ended', 'events' }
local FROM_SESSION = { 'waiting', 'active', 'ended', 'events', 'sessions', 'held' }

-- Of a visitor who does not wait: active, ended with the score in tl:{q}:ended, or none. answers: MOVE or REMOVE.
local function elsewhere(c, id, answers)
    if call('ZSCORE', c.key.active, id) then return { answers.active } end
    local ended = call('ZSCORE', c.key.ended, id)
    return ended and { answers.ended, ended } or { answers.none }
end

-- move: puts one waiting visitor into another lane, with the same seq: before everyone who joined later.
-- args     1 keep   2 the visitor   3 the name of the lane   and who
-- returns  { one of MOVE, of `done` the name of the lane before, of `ended` the score in tl:{q}:ended }
entry('move', { 'allow-oom' }, function(keys, args)
    local MOVE, c, id, name = defs.MOVE, state.open(state.begin(keys, args[1]), state.CORE), args[2], args[3]
    local place = visitor.place(c, id)
    if not place then return elsewhere(c, id, MOVE) end
    local names, lane = settings.lanes(c), nil
    for i = 1, #names do
        if names[i] == name then lane = i - 1 end
    end
    local lane_now = floor(place / defs.LANE)
    if not lane then return { MOVE.no_lane } end
    if lane == lane_now then return { MOVE.there } end
    state.check(c, { 'waiting', 'active', 'events', 'lost' })
    local before = names[lane_now + 1] or ''
    changes.record(c, changes.actor(args), 'move', { visitor = id, lane = before }, { visitor = id, lane = name })
    visitor.move(c, id, place, lane)
    recovery.note_move(c, place)
    state.set(c, 'moved:' .. text.int(lane), c.now) -- an audit does not take those called there before for out of turn
    state.commit(c)
    return { MOVE.done, before }
end)

-- remove: takes one visitor out of the line, or ends the visitor's session. The end counts as expired.
-- args     1 keep   2 the visitor   and who
-- returns  { one of REMOVE: what the visitor was, of `ended` the score in tl:{q}:ended }
entry('remove', { 'allow-oom' }, function(keys, args)
    local c, id = state.open(state.begin(keys, args[1]), FIELDS), args[2]
    local place = visitor.place(c, id)
    local was = place and { defs.REMOVE.waiting } or elsewhere(c, id, defs.REMOVE)
    if not place and was[1] ~= defs.REMOVE.active then return was end
    state.check(c, place and FROM_LINE or FROM_SESSION)
    overbook.open(c)
    c.removed = text.number(c.removed) or 0 -- as mend restores it
    changes.record(c, changes.actor(args), 'remove', { visitor = id, state = place and 'waiting' or 'active' },
        { visitor = id, state = 'removed' })
    if place then
        visitor.drop(c, { id }, { place, 1 }, defs.REASON.removed)
    else
        visitor.revoke(c, { id }, defs.REASON.removed)
    end
    overbook.save(c)
    state.commit(c)
    return was
end)

-- joins: appends a batch of joins to the ingest stream, and records how many.
-- args     1 the batch   2 how many joins it has   and who
-- returns  the stream id of the last event before, or '0-0': the outcome comes after it
-- fails    OOM      the store is at its memory limit, where joins end: nothing was changed
entry('joins', {}, function(keys, args)
    local c = state.find(keys)
    if call('EXISTS', c.key.ingest) == 0 then state.no_queue() end
    call('XLEN', c.key.ingest) -- fails when it is of another type, before anything is written
    local last = state.last_entry(c)
    changes.record(c, changes.actor(args), 'join', {}, { visitors = args[2] })
    call('XADD', c.key.ingest, 'NOMKSTREAM', '*', 'd', args[1])
    return last and last[1] or '0-0'
end)
