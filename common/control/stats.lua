-- stats: everything that the numbers of a queue are made of, as of one moment. Changes nothing.
--
-- ARGV     1... fields of the state to read
-- Returns  { now ms, fields, settings, lanes, leases, programs, waits, before, sizes }
--            fields    of the state, in the order of ARGV
--            settings  names and values in turn
--            lanes     for each lane: how many wait, when the first of them joined
--            leases    for dispatcher, admitter and expirer: the owner or '', ms left
--            programs  worker, when it last reported (ms), in turn; 50 at most
--            waits     of up to 16 of the active visitors, picked at random: how long each waited, ms
--            before    when the totals were those that follow, ms; the fields of the state as of then, '' for those that
--                      the history (expirer/history.lua) does not have. Empty: there is no history
--            sizes     entries of the ingest stream, entries set aside
--          times and waits are -1 where the history does not reach back
-- Errors   NOQUEUE  the queue does not exist
--
-- Work is bounded: 16 lanes, 16 sessions, 50 workers.
local SAMPLE, WORKERS, RATE_MS, STEP_MS = 16, 50, 60000, 10000
local K_HISTORY = key_of('history')

local fields = redis.call('HMGET', K_STATE, 'generation', unpack(ARGV))
if not fields[1] then
    return no_queue()
end
table.remove(fields, 1)
local now = now_ms()

---- the history: the numbers of the queue every 10 s

-- Of the first point at this time or later: its time, and a function of the name of a value.
local function point_of(entry)
    local values = {}
    for i = 1, #entry[2], 2 do
        values[entry[2][i]] = tonumber(entry[2][i + 1])
    end
    return { at = tonumber(string.match(entry[1], '^%d+')), values = values }
end

local probes = {} -- searches begin alike
local function point_from(ms)
    if probes[ms] == nil then
        local entry = redis.call('XRANGE', K_HISTORY, int(ms), '+', 'COUNT', 1)[1]
        probes[ms] = entry and point_of(entry) or false
    end
    return probes[ms]
end

local oldest = point_from(0)

-- When a seq was given, ms: the time of the first point that knows it. -1: before the history began.
local function joined_at(seq)
    if not oldest or oldest.values.seq >= seq then
        return -1
    end
    local low, high, found = oldest.at, now, now -- the point at low is before it; between high and found there is none
    while high - low > STEP_MS do
        local middle = math.floor((low + high) / 2)
        local point = point_from(middle)
        if point and point.at < high and point.values.seq < seq then
            low = point.at
        else
            found = point and point.at < high and point.at or found
            high = middle
        end
    end
    return found
end

local lanes, n_lanes = {}, 0
for _ in string.gmatch(redis.call('HGET', K_CONFIG, 'lanes') or '', '[^,]+') do
    local from, below = int(n_lanes * LANE), '(' .. int((n_lanes + 1) * LANE)
    local first = redis.call('ZRANGE', K_WAITING, from, below, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
    lanes[#lanes + 1] = redis.call('ZCOUNT', K_WAITING, from, below)
    lanes[#lanes + 1] = first[2] and int(joined_at(tonumber(first[2]) % LANE)) or '-1'
    n_lanes = n_lanes + 1
end

local leases = {}
for _, role in ipairs({ 'dispatcher', 'admitter', 'expirer' }) do
    leases[#leases + 1] = redis.call('GET', key_of(role)) or ''
    leases[#leases + 1] = redis.call('PTTL', key_of(role))
end

local programs = {}
local reports = redis.call('ZRANGE', key_of('reports'), 0, WORKERS - 1, 'REV', 'WITHSCORES')
for i = 1, #reports, 2 do
    if string.sub(reports[i], 1, 8) ~= 'silence:' then
        programs[#programs + 1], programs[#programs + 2] = reports[i], int(tonumber(reports[i + 1]))
    end
end

local waits = {}
local sessions = oldest and redis.call('HRANDFIELD', K_SESSIONS, SAMPLE, 'WITHVALUES') or {}
for i = 2, #sessions, 2 do
    local place, admitted = string.match(sessions[i], '^(%d+):(%d+):')
    local joined = place and joined_at(tonumber(place) % LANE) or -1
    if joined >= 0 then
        waits[#waits + 1] = int(math.max(0, tonumber(admitted) - joined))
    end
end

-- The totals as they were a minute ago: a point holds until the next one.
local before = {}
local entry = redis.call('XREVRANGE', K_HISTORY, int(now - RATE_MS), '-', 'COUNT', 1)[1]
local point = entry and point_of(entry) or oldest
if point then
    before[1] = int(math.max(point.at, now - RATE_MS))
    for i, name in ipairs(ARGV) do
        before[i + 1] = point.values[name] and int(point.values[name]) or ''
    end
end
return { int(now), fields, redis.call('HGETALL', K_CONFIG), lanes, leases, programs, waits, before,
    { redis.call('XLEN', K_INGEST), redis.call('XLEN', key_of('poison')) } }
