-- The draw: who joined before the opening of a queue with `opening: draw` stands in the order of a draw, which the
-- admitter holds (admitter/draw.lua). docs/contributors/wire-format.md describes the records.
--
-- state.draw is "opens_at:phase:cut:next:last:block:base_seq:drawn:event". Seqs up to `cut` were given before the
-- opening. The drawn get new ones, from the region between `cut` and `last`, in the order of the draw; who comes after
-- the opening gets a seq after `last`, and so stands behind.
--
-- `cut` and the region are fixed once, by the first script that looks after the opening. Both lie where every program
-- can find them again: the numbers of any history of this queue before the opening are below number_base(opens_at).
--
-- A store that comes back without its last second may have lost steps of the draw, and with them who left since. The
-- same numbers could then go to others. So each incarnation that numbers goes on in a new block of the region; those
-- who were numbered before keep theirs, and stand in front, where the draw put them.

local DRAW = { cut = 1, drawing = 2, done = 3 } -- the phases (TL_DRAW_* in C), and functions

-- Makes the functions: only queues with a draw need them.
function DRAW.load()

local BLOCKS, BLOCK_MIN = 8, 4096
local FIELDS = '^(%d+):([123]):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+):(%d+)$'

-- nil for a missing or damaged text.
function DRAW.parse(text)
    local v = { string.match(text or '', FIELDS) }
    if v[1] then
        return { opens_at = tonumber(v[1]), phase = tonumber(v[2]), cut = tonumber(v[3]), next = tonumber(v[4]),
            last = tonumber(v[5]), block = tonumber(v[6]), base_seq = v[7], drawn = tonumber(v[8]),
            event = tonumber(v[9]) }
    end
end

function DRAW.text(draw)
    return int(draw.opens_at) .. ':' .. int(draw.phase) .. ':' .. int(draw.cut) .. ':' .. int(draw.next) .. ':'
        .. int(draw.last) .. ':' .. int(draw.block) .. ':' .. draw.base_seq .. ':' .. int(draw.drawn) .. ':'
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

-- Where numbers go on in a new region, behind `seq`.
function DRAW.open_region(draw, seq)
    draw.next, draw.last = seq + 1, seq + BLOCKS * draw.block
end

-- Fixes what is before the opening. seq: the last one used. Returns the draw; seqs go on after draw.last.
--
-- A generation, or an incarnation, that began after the opening knows the seqs before it by found_seq. A list that is
-- there already is that of a draw whose record was lost with the state: who waits is drawn.
function DRAW.fix_cut(state, seq, opens_at)
    local found_seq, lost_size = unpack(redis.call('HMGET', K_STATE, 'found_seq', 'lost_size'))
    local base, base_seq = number_base(opens_at), tonumber(state.base_seq) or 0
    local cut = math.max(base, base_seq > base and (tonumber(found_seq) or 0) or seq)
    local is_done = redis.call('EXISTS', DRAW.key()) == 1
        and redis.call('GETRANGE', DRAW.key(), 0, DRAW.ID - 1) == DRAW.head(state.generation)
    local draw = { opens_at = opens_at, phase = is_done and DRAW.done or DRAW.cut, cut = cut, base_seq = state.base_seq,
        block = math.max(BLOCK_MIN, 2 * (state.waiting + (tonumber(lost_size) or 0))), drawn = 0,
        event = 0 }
    DRAW.open_region(draw, math.max(seq, cut))
    return draw
end

-- Is `held` the place that a visitor with this place of before the opening was drawn to?
function DRAW.is_drawn_to(draw, place, held)
    local seq = held % LANE
    return draw.phase ~= DRAW.cut and place % LANE <= draw.cut and seq > draw.cut and seq <= draw.last
end

end
