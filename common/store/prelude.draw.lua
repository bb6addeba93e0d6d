-- SPDX-License-Identifier: Apache-2.0
-- The draw: who joined before the opening of a queue with `opening: draw` stands in the order of a draw, which the
-- admitter holds (admitter/draw.lua). docs/contributors/wire-format.md describes the records.
--
-- state.draw is "opens_at:phase:cut:next:last:first:base_seq:drawn:event". Seqs up to `cut` were given before the
-- opening. The drawn get new ones between `cut` and `last`, in the order of the draw; who comes after the opening gets
-- a seq after `last`, and so stands behind.
--
-- `cut` and `last` are fixed once, by the first script that looks after the opening. Both lie where any history of this
-- queue finds them again: the seqs of before the opening are below number_base(opens_at), and the room between them
-- always has the same size. So latecomers stand behind the drawn also if the opening itself was lost and comes again.
--
-- A store that comes back without its last second may have lost steps of the draw, and with them who left since. The
-- same numbers could then go to others. So each incarnation goes on at the base of its time, which grows faster than
-- steps give numbers; who was numbered before keeps the own, and stands in front, where the draw put them.

local DRAW = { cut = 1, drawing = 2, done = 3 } -- the phases (TL_DRAW_* in C), and functions

-- Makes the functions: only queues with a draw need them.
function DRAW.load()

local FIELDS = '^(%d+):([123]):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+)$'

-- nil for a missing or damaged text.
function DRAW.parse(text)
    local v = { string.match(text or '', FIELDS) }
    if v[1] then
        return { opens_at = tonumber(v[1]), phase = tonumber(v[2]), cut = tonumber(v[3]), next = tonumber(v[4]),
            last = tonumber(v[5]), first = tonumber(v[6]), base_seq = v[7], drawn = tonumber(v[8]),
            event = tonumber(v[9]) }
    end
end

function DRAW.text(draw)
    return int(draw.opens_at) .. ':' .. int(draw.phase) .. ':' .. int(draw.cut) .. ':' .. int(draw.next) .. ':'
        .. int(draw.last) .. ':' .. int(draw.first) .. ':' .. draw.base_seq .. ':' .. int(draw.drawn) .. ':'
        .. int(draw.event)
end

-- The draw of the present opening. One whose opening was moved before it began does not count.
function DRAW.of(text, opens_at)
    local draw = DRAW.parse(text)
    return draw and (draw.phase ~= DRAW.cut or draw.opens_at == opens_at) and draw or nil
end

-- tl:{q}:drawn: the generation, 16 digits, then the draw ids of the drawn, 16 bytes each, in their order.

DRAW.ID = 16 -- bytes

function DRAW.key()
    return key_of('drawn')
end

function DRAW.head(generation)
    return format('%016.0f', generation)
end

-- Fixes what is before the opening. seq: the last one used. Returns the draw; seqs go on after draw.last.
--
-- A generation, or an incarnation, that began after the opening knows the seqs before it by found_seq. A list that is
-- there already is that of a draw whose record was lost with the state: who waits is drawn.
function DRAW.fix_cut(state, seq, opens_at)
    local found_seq, base_ms = unpack(redis.call('HMGET', K_STATE, 'found_seq', 'base_ms'))
    local began = tonumber(base_ms) or state.generation / 1000
    local cut = math.max(number_base(opens_at), began > opens_at and (tonumber(found_seq) or 0) or seq)
    local is_done = redis.call('EXISTS', DRAW.key()) == 1
        and redis.call('GETRANGE', DRAW.key(), 0, DRAW.ID - 1) == DRAW.head(state.generation)
    local last = cut + DRAW_ROOM
    return { opens_at = opens_at, phase = is_done and DRAW.done or DRAW.cut, cut = cut, next = cut + 1, last = last,
        first = is_done and last + 1 or cut + 1, base_seq = state.base_seq, drawn = 0, event = 0 }
end

-- The numbers go on at the base of now. Half of the room is for steps so late that this would be outside.
function DRAW.go_on(draw, base_seq, now)
    local base, late = number_base(now), draw.last - DRAW_ROOM / 2
    draw.next = base < late and math.max(draw.next, base) or math.max(draw.next + DRAW_ROOM / 128, late)
    draw.base_seq = base_seq
end

-- Is `held` the place that a visitor with this place of before the opening was drawn to?
function DRAW.is_drawn_to(draw, place, held)
    local seq = held % LANE
    return draw.phase ~= DRAW.cut and place % LANE <= draw.cut and seq > draw.cut and seq <= draw.last
end

-- Both were given for the draw, or before it: so the visitor who stands at `held` has no other claim by `place`, which
-- is older, or was given by a step that the store has lost.
function DRAW.stands_at(draw, place, held)
    return draw.phase ~= DRAW.cut and place % LANE <= draw.last and held % LANE <= draw.last
end

-- Where a visitor is drawn again whom a lost step had drawn to this place, in a lost history of this opening, and whose
-- own place of before is lost, too. Other places stay as they are.
function DRAW.place_of_before(draw, place)
    local cut, seq = number_base(DRAW.opens_at), place % LANE
    return (not draw or draw.phase == DRAW.cut) and seq > cut and seq <= cut + DRAW_ROOM and place - 2 * (seq - cut)
        or place
end

end
