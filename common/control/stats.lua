-- SPDX-License-Identifier: Apache-2.0
-- stats: everything that the numbers of a queue are made of, as of one moment. Changes nothing.
-- Flags: no-writes
-- Parts: prelude.history prelude.hooks
--
-- ARGV     1... fields of the state to read
-- Returns  { now ms, fields, settings, lanes, leases, programs, waits, before, sizes, hooks, line, told }
--            fields    of the state, in the order of ARGV
--            settings  names and values in turn
--            lanes     for each lane: how many wait, when the first of them joined
--            leases    for dispatcher, admitter and expirer: the owner or '', ms left
--            programs  worker, when it last reported (ms), in turn; 50 at most
--            waits     of up to 64 of the active visitors, picked at random: how long each waited, ms, to 5 % of the
--                      time since the join
--            before    when the totals were those that follow, ms; the fields of the state as of then, '' for those
--                      that the history (expirer/history.lua) does not have. Empty: there is no history
--            sizes     entries of the ingest stream, entries set aside
--            hooks     as in prelude.hooks
--            line      how many of those who wait joined before the history began, and for how long is not known;
--                      then for each of some lengths of time: ms, how many have waited as long, those included
--            told      of the waits told that came true in the last hour, or since the history began: since when, ms;
--                      how many; of these, admitted before and after the range; distances in percent of the wait, added
--                      up
--          times and waits are -1 where the history does not reach back
-- Errors   NOQUEUE  the queue does not exist
--
-- Work is bounded: 16 lanes, 64 sessions, 50 workers, 20 hooks.
local SAMPLE, WORKERS, RATE_MS, TOLD_MS = 64, 50, 60000, 3600000
local K_HISTORY = key_of('history')

local fields = redis.call('HMGET', K_STATE, 'generation', unpack(ARGV))
if not fields[1] then
    return no_queue()
end
table.remove(fields, 1)
local now = now_ms()

local histories = both_histories()
local oldest = histories[1].oldest

local function joined_at(seq, coarse)
    local _, at = history_with(seq, now, histories, coarse)
    return at
end

local lanes, n_lanes = {}, 0
for _ in string.gmatch(redis.call('HGET', K_CONFIG, 'lanes') or '', '[^,]+') do
    local from, below = int(n_lanes * LANE), '(' .. int((n_lanes + 1) * LANE)
    local first = redis.call('ZRANGE', K_WAITING, from, below, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
    lanes[#lanes + 1] = redis.call('ZCOUNT', K_WAITING, from, below)
    lanes[#lanes + 1] = first[2] and int(joined_at(tonumber(first[2]) % LANE)) or '-1'
    n_lanes = n_lanes + 1
end

---- who waits how long

local function waiting_up_to(seq)
    local n = 0
    for lane = 0, n_lanes - 1 do
        n = n + redis.call('ZCOUNT', K_WAITING, int(lane * LANE), int(lane * LANE + seq))
    end
    return n
end

local bounds = { 60000, 300000, 600000, 1200000, 1800000, 3600000 }
local begun = oldest and oldest.at or now
local unknown = now - begun >= bounds[#bounds] and 0 or waiting_up_to(oldest and oldest.seq or LANE - 1)
local line = { unknown }
for _, bound in ipairs(bounds) do
    local entry = begun <= now - bound and redis.call('XREVRANGE', K_HISTORY, int(now - bound), '-', 'COUNT', 1)[1]
    line[#line + 1], line[#line + 2] = int(bound), entry and waiting_up_to(point_of(entry).seq) or unknown
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
    local joined = place and joined_at(tonumber(place) % LANE, true) or -1
    if joined >= 0 then
        waits[#waits + 1] = int(math.max(0, tonumber(admitted) - joined))
    end
end

-- The totals as they were so long ago, and since when they were that: a point holds until the next one.
local function totals_before(ms)
    local entry = redis.call('XREVRANGE', K_HISTORY, int(now - ms), '-', 'COUNT', 1)[1]
    local point = entry and point_of(entry) or oldest
    return point, point and math.max(point.at, now - ms)
end

local before = {}
local point, since = totals_before(RATE_MS)
if point then
    before[1] = int(since)
    for i, name in ipairs(ARGV) do
        before[i + 1] = point.values[name] and int(point.values[name]) or ''
    end
end

local function told_since(ms)
    local names = { 'eta_judged', 'eta_early', 'eta_late', 'eta_error' }
    local past, at = totals_before(ms)
    local told = redis.call('HMGET', key_of('promised'), unpack(names))
    for i, name in ipairs(names) do
        told[i] = (tonumber(told[i] or '') or 0) - (past and past.values[name] or 0)
    end
    if not past or told[1] < 0 or told[2] < 0 or told[3] < 0 or told[4] < 0 then -- lost, or created again
        return { int(at or now), 0, 0, 0, 0 }
    end
    return { int(at), told[1], told[2], told[3], told[4] }
end

return { int(now), fields, redis.call('HGETALL', K_CONFIG), lanes, leases, programs, waits, before,
    { redis.call('XLEN', K_INGEST), redis.call('XLEN', key_of('poison')) }, hooks_now(),
    line, told_since(TOLD_MS) }
