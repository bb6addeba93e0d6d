-- SPDX-License-Identifier: Apache-2.0
-- move: puts one waiting visitor into another lane, because the operator says so. The seq stays the same, so the
-- visitor stands there before everyone who joined later.
-- Flags: allow-oom
-- Parts: prelude.records prelude.changes
--
-- ARGV     1 about how many events to keep   2 the visitor   3 the name of the lane
--          and who (prelude.changes)
-- Returns  { MOVED, name of the lane before } | { THERE } the visitor waits in that lane already | { NO_LANE } |
--          { ACTIVE } | { ENDED, score in tl:{q}:ended } | { NONE }; only the first changed something
-- Errors   NOQUEUE  the queue does not exist
--
-- Invariants: the visitor waits, once, with the same seq; sizes and totals stay as they are. Readers are told that the
-- old place is gone by a move, which is no end, and that somebody joined at the new one. A ticket of the old place is
-- one of the new place, by its seq.
local keep, visitor, lane_name = ARGV[1], ARGV[2], ARGV[3]
local NONE, MOVED, ACTIVE, ENDED, THERE, NO_LANE = 0, 1, 2, 3, 4, 5

-- The number of the lane with this name, and the names of all by number.
local function find_lane(name)
    local found, names, n = nil, {}, 0
    for each in string.gmatch(redis.call('HGET', K_CONFIG, 'lanes') or '', '[^,]+') do
        if each == name then
            found = n
        end
        names[n], n = each, n + 1
    end
    return found, names
end

local state = open_state()
if not state then
    return no_queue()
end
local score = redis.call('ZSCORE', K_WAITING, visitor)
if not score then
    if redis.call('ZSCORE', K_ACTIVE, visitor) then
        return { ACTIVE }
    end
    local ended = redis.call('ZSCORE', K_ENDED, visitor)
    return ended and { ENDED, ended } or { NONE }
end
local lane, names = find_lane(lane_name)
if not lane then
    return { NO_LANE }
end
local place = parse_place(score)
local seq = place % LANE
local moved = lane * LANE + seq
if moved == place then
    return { THERE }
end
check_types()
local lane_before = names[(place - seq) / LANE] or ''
record_change('move', { visitor = visitor, lane = lane_before }, { visitor = visitor, lane = lane_name })
redis.call('ZADD', K_WAITING, int(moved), visitor)
-- An audit does not take those called in that lane before for called out of turn.
commit(state, { 'moved:' .. int(lane), now_ms() },
    { { EVENT.removed, { place, 1 }, REASON.moved }, { EVENT.joined, { moved, 1 } } }, keep)
return { MOVED, lane_before }
