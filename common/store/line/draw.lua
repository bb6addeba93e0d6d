-- SPDX-License-Identifier: Apache-2.0
-- The draw: who joined before the opening of a queue with `order: draw` stands in the order of a draw, which the
-- admitter holds (admitter/draw.lua). Its records, and what makes them safe: docs/contributors/wire-format.md.
--
-- Seqs up to `cut` were given before the opening. The drawn get new ones between `cut` and `last`; who comes after the
-- opening gets a seq after `last`, and so stands behind. Both are fixed once, where any history of this queue finds
-- them again: cut by number_base(opens_at), and the room between them always has the same size.

local LANE, WANTED, int = defs.LANE, defs.WANTED, text.int
local ROOM = defs.DRAW_ROOM
local FIELDS = '^(%d+):([123]):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+)$'

draw.CUT, draw.DRAWING, draw.DONE = defs.DRAW.cut, defs.DRAW.drawing, defs.DRAW.done -- the phases

-- The draw of the present opening, by its record; nil for a missing or damaged text. One whose opening was moved before
-- it began does not count.
function draw.of(t, opens_at)
    local opened_at, phase, cut, next_seq, last, first, base_seq, drawn, event = match(t or '', FIELDS)
    if not opened_at or phase + 0 == draw.CUT and opened_at + 0 ~= opens_at then return nil end
    return { opens_at = opened_at + 0, phase = phase + 0, cut = cut + 0, next = next_seq + 0, last = last + 0,
        first = first + 0, base_seq = base_seq, drawn = drawn + 0, event = event + 0 }
end

-- Reads the draw of the queue into c: opens_at, or nil; drawn, once it is fixed who came before the opening, or nil.
function draw.open(c)
    local found = call('HMGET', c.key.config, 'order', 'opens_at')
    c.is_draw_open, c.opens_at = true, found[1] == 'draw' and tonumber(found[2]) or nil
    c.drawn = c.opens_at and draw.of(call('HGET', c.key.state, 'draw'), c.opens_at)
end

function draw.text(d)
    return format('%d:%d:%d:%d:%d:%d:%s:%d:%d', d.opens_at, d.phase, d.cut, d.next, d.last, d.first, d.base_seq,
        d.drawn, d.event)
end

-- By how much the seqs given out until now may be ahead of the base. t: the record of the draw, as text or false. An
-- opening that is not in it may be in the lost end of the history.
function draw.seqs_ahead(c, t)
    local found = call('HMGET', c.key.config, 'order', 'opens_at')
    local drawn_at, phase, last = match(t or '', '^(%d+):(%d):%d+:%d+:(%d+):')
    local opens_at = tonumber(found[2]) or 1 / 0
    drawn_at = tonumber(drawn_at)
    local ahead = drawn_at and max(0, last - state.number_base(drawn_at)) or 0
    local is_known = drawn_at and (phase + 0 ~= draw.CUT or drawn_at == opens_at)
    return found[1] == 'draw' and c.now >= opens_at and not is_known and ahead + ROOM or ahead
end

-- The first 16 bytes of tl:{q}:drawn; as many are the draw ids of the drawn that follow, in their order.
function draw.head(generation) return format('%016.0f', generation) end

-- Fixes what is before the opening. Returns the draw; seqs go on after its `last`. A generation, or an incarnation,
-- that began after the opening knows the seqs before it by found_seq. A list that is there already is that of a draw
-- whose record was lost with the state: who waits is drawn.
function draw.fix_cut(c, opens_at)
    local found = call('HMGET', c.key.state, 'found_seq', 'base_ms')
    local began = tonumber(found[2]) or c.generation / 1000
    local cut = max(state.number_base(opens_at), began > opens_at and (tonumber(found[1]) or 0) or c.seq)
    local is_done = call('GETRANGE', c.key.drawn, 0, 15) == draw.head(c.generation)
    local last = cut + ROOM
    state.set(c, 'seq', max(c.seq, last))
    return { opens_at = opens_at, phase = is_done and draw.DONE or draw.CUT, cut = cut, next = cut + 1, last = last,
        first = is_done and last + 1 or cut + 1, base_seq = c.base_seq or '0', drawn = 0, event = 0 }
end

-- A store that comes back may have lost steps of the draw, and that visitors left since. So that their numbers do not
-- go to others, they go on at the base of now. Half of the room is for steps so late that this would be outside.
function draw.go_on(d, base_seq, now)
    local base, late = state.number_base(now), d.last - ROOM / 2
    d.next = base < late and max(d.next, base) or max(d.next + ROOM / 128, late)
    d.base_seq = base_seq
end

-- Is `held` the place that a visitor with this place from before the opening was drawn to?
function draw.is_drawn_to(d, place, held)
    local seq = held % LANE
    return d.phase ~= draw.CUT and place % LANE <= d.cut and seq > d.cut and seq <= d.last
end

-- Both were given for the draw, or before it: so the visitor who stands at `held` has no other claim by `place`, which
-- is older, or was given by a step that the store has lost.
function draw.stands_at(d, place, held)
    return d.phase ~= draw.CUT and place % LANE <= d.last and held % LANE <= d.last
end

-- Where a visitor is drawn again whom a lost step had drawn to this place, in a lost history of this opening, and whose
-- own earlier place is lost, too. Other places stay as they are. d: the draw, or nil.
function draw.place_of_before(d, place, opens_at)
    local cut, seq = state.number_base(opens_at), place % LANE
    return (not d or d.phase == draw.CUT) and seq > cut and seq <= cut + ROOM and place - 2 * (seq - cut) or place
end

-- What the admitter is to do about the draw of a queue that has one (WANTED: announce its hash, or hold it), and
-- whether nobody is admitted before it is done. c: with the fields draw and draw_hash.
function draw.wanted(c, opens_at)
    if (draw.of(c.draw, opens_at) or {}).phase == draw.DONE then return WANTED.nothing, false end
    if c.now >= opens_at then return WANTED.hold, true end
    return match(c.draw_hash or '', '^%d+') ~= int(opens_at) and WANTED.announce or WANTED.nothing, true
end
