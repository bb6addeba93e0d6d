-- What all scripts share; put before each of them when the programs are built.
-- Every script receives the same KEYS (common/store/keys.h) and uses only the Redis server's clock.
local K_STATE, K_CONFIG, K_WAITING, K_ACTIVE, K_SESSIONS = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local K_ENDED, K_EVENTS, K_INGEST, K_BATCHES, K_SEEN = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]

local LANE = 281474976710656 -- 2^48: place = lane * LANE + seq

local WIRE_VERSION = 1
local EVENT = { applied = 1, joined = 2, admitted = 3, removed = 4, freed = 5, renewed = 6, config = 7, notice = 8 }
local REASON = { completed = 1, left = 2, expired = 3, unclaimed = 4, absent = 5 }

local function now_ms()
    local t = redis.call('TIME')
    return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- Exact decimal text of an integer below 2^53.
local function int(n)
    return string.format('%.0f', n)
end

-- The places in ascending order; may sort the list it is given. Visitors who were admitted together end together, in the
-- order of their ids: their places lie close, and to tick them off takes half as long as table.sort.
local function ascending(places)
    local n, in_order = #places, true
    for i = 2, n do
        if places[i] < places[i - 1] then
            in_order = false
            break
        end
    end
    if in_order then
        return places
    end
    local low, high = places[1], places[1]
    for i = 2, n do
        local place = places[i]
        if place < low then
            low = place
        elseif place > high then
            high = place
        end
    end
    if high - low > 4 * n then
        table.sort(places)
        return places
    end
    local before, ticked, sorted = low - 1, {}, {}
    for i = 1, high - before do
        ticked[i] = false -- filled in order it is a list, otherwise Lua would make it a hash
    end
    for i = 1, n do
        ticked[places[i] - before] = true
    end
    local nth = 0
    for i = 1, #ticked do
        if ticked[i] then
            nth = nth + 1
            sorted[nth] = before + i
        end
    end
    return sorted
end

-- Numbers as [first, count, gap, count, ...], ascending; may sort the list it is given.
local function runs_of(places)
    places = ascending(places)
    local runs, n, past = {}, 0, 0 -- past: the number after the last run
    for i = 1, #places do
        local place = places[i]
        if place == past and n > 0 then
            runs[n] = runs[n] + 1
        else
            runs[n + 1] = place - past
            runs[n + 2] = 1
            n = n + 2
        end
        past = place + 1
    end
    return runs
end

-- Appends one numbered entry to the events stream. `number` is the value of state.event after this step.
local function emit(number, generation, waiting, active, events, keep)
    redis.call('XADD', K_EVENTS, 'MAXLEN', '~', keep, '*', 'd',
        cmsgpack.pack({ WIRE_VERSION, number, generation, waiting, active, events }))
end

-- The length of a presence bucket: four whole ones make up waiting_ttl.
local function bucket_length(waiting_ttl)
    return math.max(250, math.floor(waiting_ttl / 4))
end
