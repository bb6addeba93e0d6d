-- SPDX-License-Identifier: Apache-2.0
-- What operators are told of a queue: stats, hooks and joined. Changes nothing.

local int, LANE = text.int, defs.LANE
local SAMPLE, WORKERS, RATE_MS, TOLD_MS = 64, 50, 60000, 3600000
local BOUNDS = { 60000, 300000, 600000, 1200000, 1800000, 3600000 }

---- when a place got its number, from the history of the queue (expirer/history.lua): each point has the last one given

-- A point as { at = ms, values, seq }.
local function point_of(one)
    local values = text.fields(one[2])
    for name, value in pairs(values) do values[name] = tonumber(value) end
    return { at = text.id_ms(one[1]), values = values, seq = values.seq or 0 }
end

-- The first point at this time or later, or false.
local function point_from(h, ms)
    if h.probes[ms] == nil then
        local one = call('XRANGE', h.key, text.int(ms), '+', 'COUNT', 1)[1]
        h.probes[ms] = one and point_of(one) or false
    end
    return h.probes[ms]
end

-- Those with a point every 10 s for a day, and every minute for a week, or fewer while nothing changes. probes:
-- searches begin alike.
local function histories_of(c)
    local both = { { key = c.key.history, step = defs.HISTORY_STEP_MS, probes = {} },
        { key = c.key['history:minutes'], step = defs.HISTORY_MINUTE_MS, probes = {} } }
    for _, h in ipairs(both) do h.oldest = point_from(h, 0) end
    return both
end

-- When a seq was given, ms: the time of the first point that knows it, or now. -1: before the history began. coarse:
-- may be later by a 20th of the time from then to now, which a search for many seqs finds sooner.
local function search(h, seq, now, coarse)
    if not h.oldest or h.oldest.seq >= seq then return -1 end
    -- The point at low is before it; between high and found there is none.
    local low, high, found = h.oldest.at, now, now
    while high - low > h.step and not (coarse and high - low < (now - high) / 20) do
        local middle = floor((low + high) / 2)
        local point = point_from(h, middle)
        if point and point.at < high and point.seq < seq then
            low = point.at
        else
            found = point and point.at < high and point.at or found
            high = middle
        end
    end
    return found
end

-- When this seq was given, as above, and the history that reaches back to it, the exacter one if it does; -1 alone if
-- none does. both: of histories_of.
local function joined_at(both, seq, now, coarse)
    for _, h in ipairs(both) do
        local at = search(h, seq, now, coarse)
        if at >= 0 then return at, h end
    end
    return -1
end

---- the hooks

-- What the command reads, or nothing where the key has another type: the other numbers of a queue are worth having.
local function read_or(nothing, ...)
    local value = pcall_redis(...)
    return type(value) == 'table' and value.err and nothing or value
end

-- How many entries of the journal wait after this one, when the oldest of them was written (ms, -1: none waits), and
-- how many were trimmed before the hook was told. journaled: the number of the last entry.
local function behind(c, id, n, journaled)
    local all = max(0, journaled - n)
    local first = all > 0 and read_or({}, 'XRANGE', c.key.journal, '(' .. id, '+', 'COUNT', 1)[1]
    if not first then return 0, -1, all end
    local gone = min(all, max(0, first[2][2] - n - 1)) -- its fields in turn: n, at, what, data
    return all - gone, first[2][4] + 0, gone
end

-- { who holds the lease of the notifier or '', then for each hook: name, cursor "EVENT-NTH N", state (JSON, '': nothing
-- was told yet), and the three of `behind` }. At most 20 hooks: the notifier drops those that are gone.
local function hooks_of(c)
    local fields, list = text.fields(read_or({}, 'HGETALL', c.key.hooks)), { read_or('', 'GET', c.key.notifier) or '' }
    for field, cursor in pairs(fields) do
        local name = match(field, '^cursor:(.*)')
        local id, n = match(cursor, '^(%d+%-%d+) (%d+)$')
        if name and id then
            local waiting, oldest, gone = behind(c, id, n + 0, tonumber(fields.journaled) or 0)
            local last = #list
            list[last + 1], list[last + 2], list[last + 3] = name, cursor, fields['state:' .. name] or ''
            list[last + 4], list[last + 5], list[last + 6] = int(waiting), int(oldest), int(gone)
        end
    end
    return list
end

---- the numbers

-- The lanes, and how many there are.
local function lanes_of(c, both)
    local list, n_lanes = {}, #settings.lanes(c)
    for n = 0, n_lanes - 1 do
        local from, below = int(n * LANE), '(' .. int((n + 1) * LANE)
        local first = call('ZRANGE', c.key.waiting, from, below, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]
        list[2 * n + 1] = call('ZCOUNT', c.key.waiting, from, below)
        list[2 * n + 2] = first and int((joined_at(both, first % LANE, c.now))) or '-1'
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
    return one and point_of(one)
end

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
        local joined = session and joined_at(both, session.place % LANE, c.now, true) or -1
        if joined >= 0 then list[#list + 1] = int(max(0, session.admitted - joined)) end
    end
    return list
end

-- The totals as they were so long ago, and since when they were that: a point holds until the next one.
local function totals_before(c, oldest, ms)
    local point = point_before(c, ms) or oldest
    return point and point.values, point and int(max(point.at, c.now - ms))
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

-- stats: everything that the numbers of a queue are made of, as of one moment.
-- args     1... fields of the state to read
-- returns  STATS. Work is bounded: 16 lanes, 64 sessions, 50 workers, 20 hooks
entry('stats', { 'no-writes' }, function(keys, args)
    local c = state.find(keys)
    local both = histories_of(c)
    local lanes_now, n_lanes = lanes_of(c, both)
    local oldest = both[1].oldest
    local past, since = totals_before(c, oldest, RATE_MS)
    local leases, before = {}, { since or nil }
    for i, role in ipairs({ 'dispatcher', 'admitter', 'expirer' }) do
        leases[2 * i - 1], leases[2 * i] = call('GET', c.key[role]) or '', call('PTTL', c.key[role])
    end
    for i, total in ipairs(past and defs.TOTAL or {}) do before[i + 1] = int(past[total] or 0) end
    return { int(c.now), call('HMGET', c.key.state, unpack(args)), call('HGETALL', c.key.config), lanes_now,
        leases, programs_of(c), waits_of(c, both), before,
        { call('XLEN', c.key.ingest), call('XLEN', c.key.poison) }, hooks_of(c), line_of(c, oldest, n_lanes),
        told_of(c, oldest) }
end)

-- hooks: how far the hooks were told what happened to a queue. Returns { now ms, the hooks as hooks_of says }.
entry('hooks', { 'no-writes' }, function(keys)
    local c = state.find(keys)
    return { text.int(c.now), hooks_of(c) }
end)

-- joined: what tells when places got their numbers: the points of the history that know their seqs.
-- args     1 a seq   2 a later one, or the same   3 how many points at most
-- returns  { now ms, whether the first is known: 1, or 0: it was given before the history began, time, seq, ... }
--            points in turn, from the first that knows the first seq to the first that knows the last, or none does.
--            Work is bounded: two searches, and up to twice as many points
entry('joined', { 'no-writes' }, function(keys, args)
    local c, first, last, most = state.find(keys), args[1] + 0, args[2] + 0, args[3] + 0
    local both = histories_of(c)
    local at, known = joined_at(both, first, c.now)
    local from = known or both[1] -- those behind it may be known
    if not known then at = from.oldest and from.oldest.at or c.now end
    local list, after, portion, seq = { int(c.now), known and 1 or 0 }, int(at), 2, nil
    repeat
        seq = last
        for _, one in ipairs(call('XRANGE', from.key, after, '+', 'COUNT', portion)) do
            local point = point_of(one)
            after, seq = '(' .. one[1], point.seq
            list[#list + 1], list[#list + 2] = int(point.at), int(seq)
            if seq >= last then break end
        end
        portion = min(2 * portion, most)
    until seq >= last or #list >= 2 * most
    return list
end)
