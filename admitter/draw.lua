-- SPDX-License-Identifier: Apache-2.0
-- draw: holds the draw of a queue, step by step. The admitter computes the order; common/store/prelude.draw.lua
-- explains.
-- Flags: allow-oom
-- Parts: prelude.records prelude.presence prelude.draw prelude.changes
--
-- ARGV     1 about how many events to keep   2 opens_at of the draw   3 hash of the seed   4 which step:
--          announce  5 salt: publishes the hash, unless one is published for this opening. Before the opening
--          begin     nobody whose seq is up to the cut joins any more: the caller reads the line now
--          number    5 the next seq, as the last step returned it; then visitor, draw id, ...: moves those who still
--                    wait at places of before the opening to the next seqs, in this order
--          finish    5 the seed: publishes it, if everyone is numbered; then visitors are admitted
--          and who (prelude.changes): the end of the draw is recorded
-- Returns  { OTHER_HASH }       another hash is published for this opening: the caller has another secret
--          { NOT_YET }          the opening has not come, the queue recovers, or joins of before are not applied yet,
--                               or may come back
--          { GONE }             there is no such draw any more: it is done, or the opening was moved
--          { MOVED, next }      the line must be read again: another process has numbered, or some are not numbered yet
--          { DONE, next, cut }  the step is done; of announce: { DONE, 1 when it was published now }
-- Errors   NOQUEUE  the queue does not exist
--
-- Invariants: nobody joins or leaves the line by a step, and no visitor changes lanes; whoever was numbered stands
-- before those who were not, and before those who came after the opening; a seq is given once. Work is bounded by the
-- number of visitors given.
local keep, opens_at, hash, step = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local OTHER_HASH, NOT_YET, GONE, MOVED, DONE = 0, 1, 2, 3, 4
local RETURN_MS = 5000 -- in which visitors come back whose joins the store has lost

local state, seq, record, announced, recover_until, marks, last_bucket, base_ms = open_state('seq', 'draw',
    'draw_hash', 'recover_until', 'marks', 'bucket', 'base_ms')
if not state then
    return no_queue()
end
local c = redis.call('HMGET', K_CONFIG, 'opening', 'opens_at', 'waiting_ttl')
local waiting_ttl = tonumber(c[3])
if not waiting_ttl then
    return redis.error_reply('NOQUEUE the queue has no settings')
end
if c[1] ~= 'draw' or tonumber(c[2]) ~= opens_at then
    return { GONE }
end
local now = now_ms()
DRAW.load()
local draw = DRAW.of(record, opens_at)
if draw and draw.phase == DRAW.done then
    return { GONE }
end

---- the hash: "opens_at:hash:salt"

local announced_at, announced_hash = string.match(announced or '', '^(%d+):(%x+):')
local is_announced = tonumber(announced_at) == opens_at
if is_announced and announced_hash ~= hash then
    return { OTHER_HASH }
elseif step == 'announce' then
    if not is_announced then
        check_types()
        commit(state, { 'draw_hash', int(opens_at) .. ':' .. hash .. ':' .. ARGV[5] }, { { EVENT.config } }, keep)
    end
    return { DONE, is_announced and 0 or 1 }
elseif not is_announced then
    return { NOT_YET }
end

---- begin

-- Is there an entry of the ingest stream from before the opening that is not applied?
local function joins_are_open()
    local before = int(opens_at - 1)
    local delivered
    for _, flat in ipairs(redis.call('XINFO', 'GROUPS', K_INGEST)) do
        local group = {}
        for i = 1, #flat, 2 do
            group[flat[i]] = flat[i + 1]
        end
        delivered = group.name == INGEST_GROUP and group['last-delivered-id'] or delivered
    end
    return not delivered or #redis.call('XPENDING', K_INGEST, INGEST_GROUP, '-', before, 1) > 0
        or #redis.call('XRANGE', K_INGEST, '(' .. delivered, before, 'COUNT', 1) > 0
end

-- Presence is recorded by seq. So who is numbered counts as one who joined just now: nobody is judged absent for that.
-- Where this bucket has its mark, all seqs after the cut lie behind it.
local function commit_fresh(changes)
    local bucket = bucket_at(now, waiting_ttl)
    if tonumber(last_bucket) ~= bucket then
        local n = #changes
        changes[n + 1], changes[n + 2], changes[n + 3] = 'bucket', bucket, 'marks'
        changes[n + 4] = add_mark(marks or '', bucket, int(draw.cut))
    end
    commit(state, changes, { { EVENT.config } }, keep)
end

local function begin()
    local recovers = recover_until and recover_until ~= '0'
    local is_lost = not (draw and draw.phase == DRAW.drawing) and now < (tonumber(base_ms) or 0) + RETURN_MS
    if now < opens_at or recovers or is_lost or redis.call('EXISTS', K_INGEST) == 0 or joins_are_open() then
        return { NOT_YET }
    end
    if not draw or draw.phase == DRAW.cut then
        check_types()
        local is_new = not draw
        seq = read_counter(seq)
        draw = draw or DRAW.fix_cut(state, seq, opens_at)
        if draw.phase == DRAW.cut then
            draw.phase = DRAW.drawing
            DRAW.go_on(draw, state.base_seq, now)
            draw.first = draw.next
            redis.call('SET', DRAW.key(), DRAW.head(state.generation))
        end
        commit_fresh({ 'draw', DRAW.text(draw), 'seq', math.max(seq, is_new and draw.last or 0) })
    end
    return { DONE, draw.next, draw.cut }
end

if step == 'begin' then
    return begin()
elseif not draw or draw.phase ~= DRAW.drawing then
    return { MOVED, 0 }
end

---- number

-- A place that was handed over to another device keeps its serial under the new number. moves: old seq, new seq, ...
local function move_serials(moves)
    local key, old = key_of('serials'), {}
    for i = 1, #moves, 2 do
        old[#old + 1] = moves[i]
    end
    for i, serial in ipairs(redis.call('HMGET', key, unpack(old))) do
        if serial then
            redis.call('HDEL', key, old[i])
            redis.call('HSET', key, moves[2 * i], serial)
        end
    end
end

local function number()
    local visitors, ids = {}, {}
    for i = 6, #ARGV, 2 do
        visitors[i / 2 - 2], ids[i / 2 - 2] = ARGV[i], ARGV[i + 1]
    end
    if state.base_seq ~= draw.base_seq then
        DRAW.go_on(draw, state.base_seq, now)
        check_types()
        commit(state, { 'draw', DRAW.text(draw) }, {}, keep)
        return { MOVED, draw.next }
    elseif tonumber(ARGV[5]) ~= draw.next or #visitors == 0 then
        return { MOVED, draw.next }
    end
    check_types()
    redis.call('STRLEN', DRAW.key()) -- fails likewise
    local has_serials = redis.call('HLEN', key_of('serials')) > 0
    local places = redis.call('ZMSCORE', K_WAITING, unpack(visitors))
    local scored, listed, moves, n, first, cut = {}, {}, {}, 0, draw.next, draw.cut
    for i = 1, #visitors do
        local place = tonumber(places[i])
        local seq = place and place % LANE
        if seq and seq <= cut then
            scored[2 * n + 1], scored[2 * n + 2] = int(place - seq + first + n), visitors[i]
            if has_serials then
                moves[2 * n + 1], moves[2 * n + 2] = int(seq), int(first + n)
            end
            n = n + 1
            listed[n] = ids[i]
        end
    end
    if n > 0 then
        redis.call('ZADD', K_WAITING, 'XX', unpack(scored))
        redis.call('APPEND', DRAW.key(), table.concat(listed))
        if has_serials then
            move_serials(moves)
        end
        draw.next, draw.drawn = first + n, draw.drawn + n
        commit(state, { 'draw', DRAW.text(draw) }, {}, keep)
    end
    return { DONE, draw.next, draw.cut }
end

if step == 'number' then
    return number()
end

---- finish

for lane = 0, 15 do
    if redis.call('ZCOUNT', K_WAITING, int(lane * LANE), int(lane * LANE + draw.cut)) > 0 then
        return { MOVED, draw.next }
    end
end
check_types()
state.event = state.event + 1 -- a gap in the numbers: every reader reads the line again
draw.phase, draw.event = DRAW.done, state.event + 1
record_change('draw', {}, { opens_at = int(opens_at), drawn = int(draw.drawn), hash = hash })
commit_fresh({ 'draw', DRAW.text(draw), 'draw_seed', ARGV[5] })
return { DONE, draw.next, draw.cut }
