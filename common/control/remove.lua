-- SPDX-License-Identifier: Apache-2.0
-- remove: takes one visitor out of the line, or ends the visitor's session, because the operator says so.
--
-- args     1 about how many events to keep   2 the visitor   and who (line/changes.lua)
-- returns  { one of REMOVE: what the visitor was, of `ended` the score in tl:{q}:ended }; who was waiting or active is
--          not any more
--
-- Invariants: the visitor is in neither set afterwards; the end counts as expired, and is kept as long as any other, so
-- that the ticket and the pass stay void.

local WAS = defs.REMOVE
local FIELDS = state.fields({ 'expired' }, { 'removed', 'called' })
local FROM_LINE, FROM_SESSION = { 'waiting', 'active', 'ended', 'events' },
    { 'waiting', 'active', 'ended', 'events', 'sessions', 'held' }

entry('remove', { 'allow-oom' }, function(keys, args)
    local c, id = state.open(state.begin(keys, args[1]), FIELDS), args[2]
    local place = visitor.place(c, id)
    if not place and not call('ZSCORE', c.key.active, id) then
        local ended = call('ZSCORE', c.key.ended, id)
        return ended and { WAS.ended, ended } or { WAS.none }
    end
    state.check(c, place and FROM_LINE or FROM_SESSION)
    overbook.open(c)
    c.removed = text.number(c.removed) or 0 -- as mend restores it
    changes.record(c, changes.actor(args), 'remove', { visitor = id, state = place and 'waiting' or 'active' },
        { visitor = id, state = 'removed' })
    if place then
        visitor.drop(c, { id }, { place, 1 }, defs.REASON.removed)
    else
        visitor.revoke(c, id)
    end
    overbook.save(c)
    state.commit(c)
    return { place and WAS.waiting or WAS.active }
end)
