-- SPDX-License-Identifier: Apache-2.0
-- remove: takes one visitor out of the line, or ends the visitor's session, because the operator says so.
-- Flags: allow-oom
-- Parts: prelude.records prelude.called prelude.changes
--
-- ARGV     1 about how many events to keep   2 the visitor   and who (prelude.changes)
-- Returns  { FOUND_WAITING } | { FOUND_ACTIVE } | { FOUND_ENDED, score in tl:{q}:ended } | { FOUND_NONE }; only the
--          first two changed something
-- Errors   NOQUEUE  the queue does not exist
--
-- Invariants: the visitor is in neither set afterwards; the sizes in the state are those of the sets; the end counts as
-- expired, and is kept as long as any other, so that the ticket and the pass stay void.
local keep, visitor = ARGV[1], ARGV[2]
local FOUND_NONE, FOUND_WAITING, FOUND_ACTIVE, FOUND_ENDED = 0, 1, 2, 3

local state, expired, removed, called_before = open_state('expired', 'removed', 'called')
if not state then
    return no_queue()
end
local score = redis.call('ZSCORE', K_WAITING, visitor)
local is_active = not score and redis.call('ZSCORE', K_ACTIVE, visitor)
if not score and not is_active then
    local ended = redis.call('ZSCORE', K_ENDED, visitor)
    return ended and { FOUND_ENDED, ended } or { FOUND_NONE }
end
check_types()
local called = parse_called(called_before) -- where the queue is overbooked
load_called()
redis.call('ZCARD', held_key()) -- fails likewise
expired = read_counter(expired) + 1

record_change('remove', { visitor = visitor, state = score and 'waiting' or 'active' },
    { visitor = visitor, state = 'removed' })

-- Readers of older releases refuse the reason 6. These pairs of event and reason occur nowhere else: readers take them
-- for a removal, older ones for an end of another kind.
local kind, reason, place
if score then
    kind, reason, place = EVENT.removed, REASON.unclaimed, parse_place(score)
    redis.call('ZREM', K_WAITING, visitor)
    state.waiting = state.waiting - 1
else
    local admitted_ms, claimed
    kind, reason = EVENT.freed, REASON.absent
    place, admitted_ms, claimed = parse_session(redis.call('HGET', K_SESSIONS, visitor))
    if place and not claimed then
        end_unclaimed(called, visitor, admitted_ms)
    elseif called and not place then
        called.n = -1 -- a damaged session: counting begins again
    end
    redis.call('ZREM', K_ACTIVE, visitor)
    redis.call('HDEL', K_SESSIONS, visitor)
    state.active = state.active - 1
end
redis.call('ZADD', K_ENDED, end_score(now_ms(), REASON.removed), visitor)
-- The place of a damaged session is not known: readers find that the sizes differ, and rebuild.
local events = place and { { kind, { place, 1 }, reason } } or {}
local changes = { 'expired', expired, 'removed', (tonumber(removed) or 0) + 1 }
if called then
    changes[5], changes[6] = 'called', called_text(called)
end
commit(state, changes, events, keep)
return { score and FOUND_WAITING or FOUND_ACTIVE }
