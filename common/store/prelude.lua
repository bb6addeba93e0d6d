-- SPDX-License-Identifier: Apache-2.0
-- The prelude: put before every script when the programs are built, after the constants of common/wire/protocol.def.
-- Every script gets the state of one queue as its first key; the others have its hash tag. The only clock is the
-- server's.
local K_STATE = KEYS[1]
local QUEUE_KEYS = string.sub(K_STATE, 1, -6)
local K_CONFIG, K_WAITING, K_ACTIVE, K_SESSIONS = QUEUE_KEYS .. 'config', QUEUE_KEYS .. 'waiting',
    QUEUE_KEYS .. 'active', QUEUE_KEYS .. 'sessions'
local K_ENDED, K_EVENTS, K_INGEST, K_BATCHES = QUEUE_KEYS .. 'ended', QUEUE_KEYS .. 'events', QUEUE_KEYS .. 'ingest',
    QUEUE_KEYS .. 'batches'
local K_SEEN = QUEUE_KEYS .. 'seen:'

-- The field `about` of the state and the settings. A value of more than 64 bytes (hash-max-listpack-value) makes them
-- hash tables, in which Redis finds a field at once. Else it reads through all fields for each one, which is 10 % of a
-- join.
local ABOUT = 'Numbers or settings of a queue. So long a text makes Redis find fields by hash.'

-- The name of another key of the queue.
local function key_of(name)
    return QUEUE_KEYS .. name
end

local function now_ms()
    local t = redis.call('TIME')
    return t[1] * 1000 + math.floor(t[2] / 1000)
end

local format, type = string.format, type -- local variables are found faster

-- Exact decimal text of an integer below 2^53, on a server of 64 bits (ensure refuses others). A server itself may
-- write 100000000 as 1e+8; and '%.0f' takes twice as long as '%d'.
local function int(n)
    return format('%d', n)
end

-- The number of a counter of the state; nil for any other text, and for a missing one.
local function parse_counter(text)
    return text and #text <= 16 and string.find(text, '^%d+$') and text + 0 or nil
end

-- The same for a step that needs it. It fails, before the first write then, and mend writes the counter again.
local function read_counter(text)
    return parse_counter(text) or error('a counter of the state is no number')
end

local function no_queue()
    return redis.error_reply('NOQUEUE the queue does not exist')
end

---- numbers that are never used twice: `seq`, `event` and `fence` of a queue
--
-- A store can come back without the end of its history, or empty. Whatever was done in the lost part is forgotten, but
-- visitors and programs have seen its numbers. So each of these numbers starts at a base that grows with the server's
-- clock, faster than a queue can use numbers up: the base of now lies above every number that was ever given out. Where
-- a draw has opened, the seqs of its latecomers are DRAW_ROOM ahead of that (prelude.draw.lua).

local BASE_GAP = 67108864    -- 2^26: where the clock went back, at least
local DRAW_ROOM = 1073741824 -- 2^30: seqs between those of before the opening and those of after it

local function number_base(ms)
    return math.max(0, math.floor((ms - SEQ_EPOCH_MS) * SEQ_PER_MS))
end

-- The number to go on from when the store was found with this one. Where the clock went back, the gap still grows with
-- it: an incarnation that is lost itself must not be repeated.
local function number_after(found, base)
    return base > found and base or found + BASE_GAP + base % 2 ^ 32
end

-- By how much the seqs given out until now may be ahead of the base. draw: the record of the draw, as text or false. An
-- opening that is not in it may be in the lost end of the history.
local function seqs_ahead(draw, now)
    local opening, opens_at = unpack(redis.call('HMGET', K_CONFIG, 'opening', 'opens_at'))
    local drawn_at, phase, last = string.match(draw or '', '^(%d+):(%d):%d+:%d+:(%d+):')
    drawn_at, opens_at = tonumber(drawn_at), tonumber(opens_at or '') or math.huge
    local ahead = drawn_at and math.max(0, last - number_base(drawn_at)) or 0
    local is_known = drawn_at and (phase ~= '1' or drawn_at == opens_at)
    return opening == 'draw' and now >= opens_at and not is_known and ahead + DRAW_ROOM or ahead
end

-- Names the history of the store. It is another one after each start of the server and each promotion of a replica.
local function store_id(info)
    return string.match(info or redis.call('INFO', 'replication'), 'master_replid:(%x+)')
end

-- Fails with WRONGTYPE when a key is of another type. A script that writes more than the state calls it before its
-- first write, because nothing undoes a script that fails half-way; a step without work has no need of it.
--
-- set: the key of another sorted set that the script writes, or nil. A call for each of them: the commands that read
-- several sorted sets at once take sets, too. tests/component/test_wrong_types.c tries all keys.
local function check_types(set)
    redis.call('ZCARD', K_WAITING)
    redis.call('ZCARD', K_ACTIVE)
    redis.call('ZCARD', K_ENDED)
    if set then
        redis.call('ZCARD', set)
    end
    redis.call('XLEN', K_EVENTS)
    redis.call('HLEN', K_SESSIONS)
    redis.call('HLEN', K_BATCHES)
end

-- The store was restarted, or is another server: its last entries may be missing. Moves the numbers on, and appends one
-- entry without events, so that every reader finds a gap in the numbers and rebuilds.
local function begin_incarnation(store)
    check_types()
    local found = redis.call('HMGET', K_STATE, 'generation', 'seq', 'event', 'fence', 'incarnation', 'waiting',
        'active')
    for i = 1, #found do
        found[i] = tonumber(found[i]) or 0
    end
    local generation, seq, event, fence, incarnation, waiting, active = unpack(found)
    local now = now_ms()
    local base, ahead = number_base(now), seqs_ahead(redis.call('HGET', K_STATE, 'draw'), now)
    local base_seq, base_event = int(number_after(seq, base + ahead)), number_after(event, base)
    redis.call('HSET', K_STATE, 'store', store, 'incarnation', int(incarnation + 1), 'found_seq', int(seq), 'seq',
        base_seq, 'base_seq', base_seq, 'base_ms', int(now), 'found_event', int(event), 'event', int(base_event),
        'fence', int(number_after(fence, base)))
    redis.call('XADD', K_EVENTS, '*', 'd',
        cmsgpack.pack({ EVENTS_VERSION, base_event, generation, waiting, active, {} }))
end

local function read_fields(...)
    return redis.call('HMGET', K_STATE, 'generation', 'event', 'waiting', 'active', 'store', 'base_seq', ...)
end

local function parse_state(values)
    if values[1] then
        -- Adding 0 makes a number of a text in a third of the time of tonumber. It fails for any other text.
        return { generation = values[1] + 0, event = values[2] + 0, waiting = values[3] + 0, active = values[4] + 0,
            base_seq = values[6] or '0' }, unpack(values, 7)
    end
end

-- Reads tl:{q}:state. Returns what commit needs, { generation, event, waiting, active } by name, with base_seq, a text
-- that tells one incarnation from another; then the texts of the named fields. nil if the queue does not exist.
local function read_state(...)
    return parse_state(read_fields(...))
end

-- The same for a script that writes: first begins a new incarnation if the store is not the one of the last write.
-- The script calls check_types before its own first write.
local function open_state(...)
    local values, info = read_fields(...), redis.call('INFO', 'replication')
    if values[1] and not (values[5] and string.find(info, 'master_replid:' .. values[5], 1, true)) then
        if values[5] then
            begin_incarnation(store_id(info))
        else -- the last write was by a release that did not note the store: nothing tells whether it lost anything
            redis.call('HSET', K_STATE, 'store', store_id(info))
        end
        values = read_fields(...)
    end
    return parse_state(values)
end

-- tl:{q}:serials: seq -> "serial:device:visitor" of places that were handed over to another device
-- (line/visitor.lua). Removes those of places that end with these events. A key of another type must not stop a step
-- half-way.
local function forget_serials(events)
    local key, is_checked = key_of('serials'), false
    for _, event in ipairs(events) do
        if (event[1] == EVENT.removed or event[1] == EVENT.freed) and event[3] ~= REASON.moved then
            if not is_checked and redis.call('EXISTS', key) == 0 then
                return
            end
            is_checked = true
            local runs, past = event[2], 0
            for i = 1, #runs, 2 do
                local first = past + runs[i]
                past = first + runs[i + 1]
                for place = first, past - 1 do
                    redis.pcall('HDEL', key, int(place % LANE))
                end
            end
        end
    end
end

-- Ends a step that changed the queue: the only place where the state of a queue changes. (Besides, ensure creates the
-- state, mend writes a lost one or its counters again, lease counts its fence, and begin_incarnation moves its numbers
-- on.) Writes the sizes, the number of the new event and the changed fields, and appends one entry with these events to
-- the events stream.
--   state    as read_state returned it, with waiting and active as they are after the step
--   changes  the other fields that change, as name, new value, name, new value, ...
--   keep     about how many entries of the events stream are kept
local function commit(state, changes, events, keep)
    local event, waiting, active = state.event + 1, state.waiting, state.active
    for i = 2, #changes, 2 do
        if type(changes[i]) == 'number' then
            changes[i] = int(changes[i])
        end
    end
    forget_serials(events)
    redis.call('HSET', K_STATE, 'event', int(event), 'waiting', int(waiting), 'active', int(active), unpack(changes))
    redis.call('XADD', K_EVENTS, 'MAXLEN', '~', keep, '*', 'd',
        cmsgpack.pack({ EVENTS_VERSION, event, state.generation, waiting, active, events }))
end

