-- SPDX-License-Identifier: Apache-2.0
-- draw: holds the draw of a queue, step by step. The admitter computes the order; common/store/line/draw.lua explains.
-- args     1 keep   2 opens_at of the draw   3 hash of the seed   4 which step:
--          announce  5 salt: publishes the hash, unless one is published for this opening. Before the opening
--          begin     from now on nobody joins with a seq up to the cut: the caller reads the line now
--          number    5 the next seq, as the last step returned it; then visitor, draw id, ...: moves those who still
--                    wait at places from before the opening to the next seqs, in this order
--          finish    5 the seed: publishes it, if everyone is numbered; then visitors are admitted
--          and who: the end of the draw is recorded
-- returns  DRAWN
--
-- Invariants: nobody joins or leaves the line by a step, and no visitor changes lanes; those who were numbered are
-- before those who were not, and before those who came after the opening; a seq is given once. Work is bounded by the
-- number of visitors given.

local ANSWER = defs.DRAW_ANSWER
local RETURN_MS = 5000 -- in which visitors come back whose joins the store has lost
local LANE, EVENT, int = defs.LANE, defs.EVENT, text.int
local FIELDS = state.fields({ 'seq' }, { 'draw', 'draw_hash', 'recover_until', 'marks', 'base_ms' })
local SETTINGS = settings.list({ 'order', 'opens_at', 'waiting_ttl' })
local WRITES = { 'waiting', 'active', 'events', 'serials', 'drawn' }

local function commit(c, d)
    state.set(c, 'draw', draw.text(d))
    state.commit(c)
end

-- Presence is recorded by seq. So who is numbered counts as one who joined just now: nobody is judged absent for that.
-- Where this bucket has its mark, all seqs after the cut lie behind it.
local function commit_fresh(c, d, waiting_ttl)
    presence.note_joins(c, int(d.cut), waiting_ttl)
    state.event(c, EVENT.config)
    commit(c, d)
end

local function begin(c, d, opens_at, waiting_ttl)
    -- Has the opening not come, does the queue recover, or may there be earlier joins that are not applied?
    local recovers = c.recover_until and c.recover_until ~= '0'
    local is_lost = not (d and d.phase == draw.DRAWING) and c.now < (text.number(c.base_ms) or 0) + RETURN_MS
    if c.now < opens_at or recovers or is_lost then return { ANSWER.not_yet } end
    local oldest, group = ingest.oldest_unapplied(c)
    if not group or oldest and text.id_ms(oldest) < opens_at then return { ANSWER.not_yet } end
    if not d or d.phase == draw.CUT then
        state.check(c, WRITES)
        d = d or draw.fix_cut(c, opens_at)
        if d.phase == draw.CUT then
            d.phase = draw.DRAWING
            draw.go_on(d, c.base_seq, c.now)
            d.first = d.next
            call('SET', c.key.drawn, draw.head(c.generation))
        end
        commit_fresh(c, d, waiting_ttl)
    end
    return { ANSWER.done, d.next, d.cut }
end

local function number(c, d, args)
    local ids, listed = {}, {}
    for i = 6, #args - 3, 2 do ids[#ids + 1] = args[i] end
    state.check(c, WRITES)
    if c.base_seq ~= d.base_seq then
        draw.go_on(d, c.base_seq, c.now)
        commit(c, d)
        return { ANSWER.moved, d.next }
    elseif tonumber(args[5]) ~= d.next or #ids == 0 then
        return { ANSWER.moved, d.next }
    end
    for i, which in ipairs(visitor.renumber(c, ids, d.cut, d.next)) do listed[i] = args[5 + 2 * which] end
    if #listed > 0 then
        call('APPEND', c.key.drawn, concat(listed))
        d.next, d.drawn = d.next + #listed, d.drawn + #listed
        commit(c, d)
    end
    return { ANSWER.done, d.next, d.cut }
end

local function finish(c, d, seed, actor, waiting_ttl)
    for lane = 0, defs.LANES_MAX - 1 do
        local before = call('ZCOUNT', c.key.waiting, int(lane * LANE), int(lane * LANE + d.cut))
        if before > 0 then return { ANSWER.moved, d.next } end
    end
    state.check(c, WRITES)
    c.event = c.event + 1 -- a gap in the numbers: every reader reads the line again
    d.phase, d.event = draw.DONE, c.event + 1
    local hash = match(c.draw_hash, '^%d+:(%x+):')
    changes.record(c, actor, 'draw', {}, { opens_at = int(d.opens_at), drawn = int(d.drawn), hash = hash })
    state.set(c, 'draw_seed', seed)
    commit_fresh(c, d, waiting_ttl)
    return { ANSWER.done, d.next, d.cut }
end

entry('draw', { 'allow-oom' }, function(keys, args)
    local c, opens_at, hash, step = state.open(state.begin(keys, args[1]), FIELDS), args[2] + 0, args[3], args[4]
    local s, d = settings.read(c, SETTINGS), draw.of(c.draw, opens_at)
    if s.order ~= 'draw' or s.opens_at ~= opens_at or d and d.phase == draw.DONE then return { ANSWER.gone } end
    -- "opens_at:hash:salt"
    local announced_at, announced = match(c.draw_hash or '', '^(%d+):(%x+):')
    local is_announced = tonumber(announced_at) == opens_at
    if is_announced and announced ~= hash then
        return { ANSWER.other_hash }
    elseif step == 'announce' then
        if is_announced then return { ANSWER.done, 0 } end
        state.check(c, WRITES)
        state.set(c, 'draw_hash', int(opens_at) .. ':' .. hash .. ':' .. args[5])
        state.commit_config(c)
        return { ANSWER.done, 1 }
    elseif not is_announced then
        return { ANSWER.not_yet }
    elseif step == 'begin' then
        return begin(c, d, opens_at, s.waiting_ttl)
    elseif not d or d.phase ~= draw.DRAWING then
        return { ANSWER.moved, 0 }
    elseif step == 'number' then
        return number(c, d, args)
    end
    return finish(c, d, args[5], changes.actor(args), s.waiting_ttl)
end)
