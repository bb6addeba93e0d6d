-- The prelude: put before every script when the programs are built.
-- Every script but lease.lua gets all keys of one queue, in the order of common/store/keys.h. The only clock is the server's.
local K_STATE, K_CONFIG, K_WAITING, K_ACTIVE, K_SESSIONS, K_ENDED, K_EVENTS, K_INGEST, K_BATCHES, K_SEEN = unpack(KEYS)

local INGEST_GROUP = 'dispatchers' -- consumer group of the ingest stream; TL_INGEST_GROUP in C
local LANE = 281474976710656 -- 2^48: place = lane * LANE + seq

local EVENTS_VERSION = 1 -- TL_EVENTS_VERSION in C
local EVENT = { applied = 1, joined = 2, admitted = 3, removed = 4, freed = 5, renewed = 6, config = 7, notice = 8 }
local REASON = { completed = 1, left = 2, expired = 3, unclaimed = 4, absent = 5 }

-- The name of another key of the queue.
local function key_of(name)
    return string.gsub(K_STATE, 'state$', '') .. name
end

local function now_ms()
    local t = redis.call('TIME')
    return t[1] * 1000 + math.floor(t[2] / 1000)
end

local format, type = string.format, type -- local variables are found faster

-- Exact decimal text of an integer below 2^53. A server itself may write 100000000 as 1e+8.
local function int(n)
    return format('%.0f', n)
end

local function no_queue()
    return redis.error_reply('NOQUEUE the queue does not exist')
end

-- Reads tl:{q}:state. Returns what commit needs, { generation, event, waiting, active } by name, then the texts of the
-- named fields; nil if the queue does not exist.
local function read_state(...)
    local values = redis.call('HMGET', K_STATE, 'generation', 'event', 'waiting', 'active', ...)
    if not values[1] then
        return nil
    end
    return { generation = tonumber(values[1]), event = tonumber(values[2]), waiting = tonumber(values[3]),
        active = tonumber(values[4]) }, unpack(values, 5)
end

-- Ends a step that changed the queue: the only place where the state of a queue changes. (Besides, ensure creates the
-- state and lease counts its fence.) Writes the sizes, the number of the new event and the changed fields, and appends one
-- entry with these events to the events stream.
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
    redis.call('HSET', K_STATE, 'event', int(event), 'waiting', int(waiting), 'active', int(active), unpack(changes))
    redis.call('XADD', K_EVENTS, 'MAXLEN', '~', keep, '*', 'd',
        cmsgpack.pack({ EVENTS_VERSION, event, state.generation, waiting, active, events }))
end

