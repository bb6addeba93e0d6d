-- SPDX-License-Identifier: Apache-2.0
-- stats: everything that the numbers of a queue are made of, as of one moment. Changes nothing.
-- args     1... fields of the state to read
-- returns  STATS. Work is bounded: 16 lanes, 64 sessions, 50 workers, 20 hooks

local int, LANE = text.int, defs.LANE
local SAMPLE, WORKERS, RATE_MS, TOLD_MS = 64, 50, 60000, 3600000
local BOUNDS = { 60000, 300000, 600000, 1200000, 1800000, 3600000 }

-- The lanes, and how many there are.
local function lanes_of(c, both)
    local list, n_lanes = {}, #settings.lanes(c)
    for n = 0, n_lanes - 1 do
        local from, below = int(n * LANE), '(' .. int((n + 1) * LANE)
        local first = call('ZRANGE', c.key.waiting, from, below, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]
        list[2 * n + 1] = call('ZCOUNT', c.key.waiting, from, below)
        list[2 * n + 2] = first and int((history.joined_at(both, first % LANE, c.now))) or '-1'
    end
    return list, n_lanes
end

local function waiting_up_to(c, n_lanes, seq)
    local n = 0
    for lane = 0, n_lanes - 1 do n = n + call('ZCOUNT', c.key.waiting, int(lane * LANE), int(lane * LANE + seq)) end
    return n
end

-- The last point of the history that is so old, or nil.
local function point_before(c, ms)
    local one = call('XREVRANGE', c.key.history, int(c.now - ms), '-', 'COUNT', 1)[1]
    return one and history.point(one)
end

-- Who waits how long.
local function line_of(c, oldest, n_lanes)
    local began = oldest and oldest.at or c.now
    local unknown = c.now - began >= BOUNDS[#BOUNDS] and 0
        or waiting_up_to(c, n_lanes, oldest and oldest.seq or LANE - 1)
    local list = { unknown }
    for i, bound in ipairs(BOUNDS) do
        local point = began <= c.now - bound and point_before(c, bound)
        list[2 * i], list[2 * i + 1] = int(bound), point and waiting_up_to(c, n_lanes, point.seq) or unknown
    end
    return list
end

local function leases_of(c)
    local list = {}
    for i, role in ipairs({ 'dispatcher', 'admitter', 'expirer' }) do
        list[2 * i - 1], list[2 * i] = call('GET', c.key[role]) or '', call('PTTL', c.key[role])
    end
    return list
end

local function programs_of(c)
    local list, reports = {}, call('ZRANGE', c.key.reports, 0, WORKERS - 1, 'REV', 'WITHSCORES')
    for i = 1, #reports, 2 do
        if sub(reports[i], 1, 8) ~= 'silence:' then
            list[#list + 1], list[#list + 2] = reports[i], int(tonumber(reports[i + 1]))
        end
    end
    return list
end

local function waits_of(c, both)
    local list, sessions = {}, both[1].oldest and call('HRANDFIELD', c.key.sessions, SAMPLE, 'WITHVALUES') or {}
    for i = 2, #sessions, 2 do
        local session = text.parse_session(sessions[i])
        local joined = session and history.joined_at(both, session.place % LANE, c.now, true) or -1
        if joined >= 0 then list[#list + 1] = int(max(0, session.admitted - joined)) end
    end
    return list
end

-- The totals as they were so long ago, and since when they were that: a point holds until the next one.
local function totals_before(c, oldest, ms)
    local point = point_before(c, ms) or oldest
    return point and point.values, point and int(max(point.at, c.now - ms))
end

local function before_of(c, oldest)
    local past, since = totals_before(c, oldest, RATE_MS)
    local list = { since or nil }
    for i, total in ipairs(past and defs.TOTAL or {}) do list[i + 1] = int(past[total] or 0) end
    return list
end

local function told_of(c, oldest)
    local past, since = totals_before(c, oldest, TOLD_MS)
    local told, is_known = call('HMGET', c.key.promised, unpack(defs.PROMISED)), past
    for i, name in ipairs(defs.PROMISED) do
        told[i] = (tonumber(told[i]) or 0) - (past and past[name] or 0)
        is_known = is_known and told[i] >= 0 -- else lost, or created again
    end
    if not is_known then told = { 0, 0, 0, 0 } end
    return { since or int(c.now), unpack(told) }
end

entry('stats', { 'no-writes' }, function(keys, args)
    local c = state.find(keys)
    local both = history.both(c)
    local lanes_now, n_lanes = lanes_of(c, both)
    local oldest = both[1].oldest
    return { int(c.now), call('HMGET', c.key.state, unpack(args)), call('HGETALL', c.key.config), lanes_now,
        leases_of(c), programs_of(c), waits_of(c, both), before_of(c, oldest),
        { call('XLEN', c.key.ingest), call('XLEN', c.key.poison) }, hooks.of(c), line_of(c, oldest, n_lanes),
        told_of(c, oldest) }
end)

-- hooks: how far the hooks were told what happened to a queue.
-- returns  { now ms, the hooks as in line/hooks.lua }
entry('hooks', { 'no-writes' }, function(keys)
    local c = state.find(keys)
    return { text.int(c.now), hooks.of(c) }
end)
