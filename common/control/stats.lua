-- SPDX-License-Identifier: Apache-2.0
-- What operators are told of a queue: stats, webhooks and joined. Changes nothing.

local int, LANE = text.int, defs.LANE
local SAMPLE, WORKERS, RATE_MS, TOLD_MS = 64, 50, 60000, 3600000
local BOUNDS = { 60000, 300000, 600000, 1200000, 1800000, 3600000 }

---- when a place got its number, from the history of the queue (expirer/history.lua): each point has the last one given

-- A point as { at = ms, values, seq }.
local function point_of(one)
    local values = text.fields(one[2])
    for name, value in pairs(values) do values[name] = text.number(value) end
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
    -- The point at `low` does not know the seq yet; none is between `high` and `found`.
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

---- the webhooks

-- What the command reads, or nothing where the key has another type: the other numbers of a queue are worth having.
local function read_or(nothing, ...)
    local value = pcall_redis(...)
    return type(value) == 'table' and value.err and nothing or value
end

-- How many entries of the journal wait after this one, when the oldest of them was written (ms, 0: none waits), and
-- how many were trimmed before the webhook was told. journaled: the number of the last entry.
local function behind(c, id, n, journaled)
    local all = max(0, journaled - n)
    local first = all > 0 and read_or({}, 'XRANGE', c.key.journal, '(' .. id, '+', 'COUNT', 1)[1]
    if not first then return 0, 0, all end
    local gone = min(all, max(0, first[2][2] - n - 1)) -- its fields in turn: n, at, what, data
    return all - gone, first[2][4] + 0, gone
end

-- WEBHOOKS. At most 20 of them: the notifier drops those that are gone.
local function webhooks_of(c)
    local fields, list = text.fields(read_or({}, 'HGETALL', c.key.webhooks)), {}
    for field, cursor in pairs(fields) do
        local name = match(field, '^cursor:(.*)')
        local id, n = match(cursor, '^(%d+%-%d+) (%d+)$')
        if name and id then
            local waiting, oldest, gone = behind(c, id, n + 0, tonumber(fields.journaled) or 0)
            list[#list + 1] = { name, cursor, fields['state:' .. name] or '', int(waiting), int(oldest), int(gone) }
        end
    end
    return { int(c.now), read_or('', 'GET', c.key.notifier) or '', list }
end

---- signs of misuse: what the workers saw (worker/api/misuse.c)

local NETWORKS, SIGNS = 3, 256 -- named of each kind; entries of a queue

-- Those with most of { network = number }, as the same.
local function most_of(counts)
    local names, most = {}, {}
    for name in pairs(counts) do names[#names + 1] = name end
    sort(names, function(a, b) return counts[a] > counts[b] end)
    for i = 1, min(#names, NETWORKS) do most[names[i]] = counts[names[i]] end
    return most
end

-- What came in the last minute, added up; null where the key has another type. What makes no sense is left out.
local function signs_of(c)
    local entries = pcall_redis('XREVRANGE', c.key.signs, '+', int(c.now - RATE_MS), 'COUNT', SIGNS)
    local failed, shared, fast, of = 0, 0, 0, { joins = {}, failed = {} }
    if entries.err then return cjson.null end
    for _, one in ipairs(entries) do
        local n, n_shared, n_fast, rest = match(one[2][2], '^(%d+) (%d+) (%d+)(.*)')
        failed, shared = failed + (text.number(n) or 0), shared + (text.number(n_shared) or 0)
        fast = fast + (text.number(n_fast) or 0)
        for kind, network, more in gmatch(rest or '', ' (%l+) ([%x:./]+) (%d+)') do
            if of[kind] then of[kind][network] = (of[kind][network] or 0) + (text.number(more) or 0) end
        end
    end
    return { checks_failed = failed, sessions_shared = shared, sessions_fast = fast, joins = most_of(of.joins),
        failures = most_of(of.failed) }
end

---- the numbers, as the members of the answer; null: not known. What is damaged must not be infinite: JSON has no such
---- number.

-- How long ago that was, ms; ms: -1 for a time that is not known.
local function ago(c, ms) return ms >= 0 and max(0, c.now - ms) or cjson.null end

-- The lanes, and when the first of all those who wait joined, or -1.
local function lanes_of(c, both)
    local list, names, oldest = {}, settings.lanes(c), -1
    if #names == 0 then names[1] = '' end -- the setting is damaged
    for i, name in ipairs(names) do
        local from, below = int((i - 1) * LANE), '(' .. int(i * LANE)
        local first = call('ZRANGE', c.key.waiting, from, below, 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]
        local since = first and joined_at(both, first % LANE, c.now) or -1
        list[i] = { name = name, waiting = call('ZCOUNT', c.key.waiting, from, below), oldest_wait_ms = ago(c, since) }
        if since >= 0 and (oldest < 0 or since < oldest) then oldest = since end
    end
    return list, oldest
end

-- How many wait at a place up to this seq.
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

-- How long some of those who are active waited, picked at random, ascending; to 5 % of the time since they joined.
local function sample_of(c, both)
    local list, sessions = {}, both[1].oldest and call('HRANDFIELD', c.key.sessions, SAMPLE, 'WITHVALUES') or {}
    for i = 2, #sessions, 2 do
        local session = text.parse_session(sessions[i])
        local joined = session and joined_at(both, session.place % LANE, c.now, true) or -1
        if joined >= 0 then list[#list + 1] = max(0, min(session.admitted, c.now) - joined) end
    end
    sort(list)
    return list
end

local function waited_of(sample)
    local n = #sample
    return n > 0 and { sample = n, p50_ms = sample[floor(n / 2) + 1], p90_ms = sample[floor(n * 9 / 10) + 1] }
        or cjson.null
end

-- How long the visitors wait, and how long those of the sample waited: how many under each of the bounds, and beyond
-- the last one. not_known: how many joined before the history began, unless that is beyond all bounds.
local function waits_of(c, oldest, n_lanes, waiting, sample)
    local began, more, at, of = oldest and oldest.at or c.now, waiting, 0, { waiting = {}, admitted = {} }
    local unknown = c.now - began >= BOUNDS[#BOUNDS] and 0
        or waiting_up_to(c, n_lanes, oldest and oldest.seq or LANE - 1)
    for i = 1, #BOUNDS + 1 do
        local bound = BOUNDS[i] or 1 / 0
        local point = BOUNDS[i] and began <= c.now - bound and point_before(c, bound)
        local longer, from = point and waiting_up_to(c, n_lanes, point.seq) or unknown, at
        while sample[at + 1] and sample[at + 1] < bound do at = at + 1 end
        of.waiting[i], of.admitted[i], more = max(0, more - longer), at - from, longer
    end
    of.bounds_ms, of.not_known = BOUNDS, unknown
    return of
end

-- The holders of the leases, and the workers that report.
local function programs_of(c)
    local list, reports = {}, call('ZRANGE', c.key.reports, 0, WORKERS - 1, 'REV', 'WITHSCORES')
    for i, role in ipairs({ 'dispatcher', 'admitter', 'expirer' }) do
        local owner = call('GET', c.key[role])
        list[i] = { role = role, id = owner or cjson.null, serves = owner and true, reported_ago_ms = cjson.null }
    end
    for i = 1, #reports, 2 do
        if sub(reports[i], 1, 8) ~= 'silence:' then
            list[#list + 1] = { role = 'worker', id = reports[i], serves = cjson.null,
                reported_ago_ms = ago(c, reports[i + 1] + 0) }
        end
    end
    return list
end

-- The totals of `ms` ago, and since when: a point holds until the next one.
local function totals_before(c, oldest, ms)
    local point = point_before(c, ms) or oldest
    return point and point.values, point and max(point.at, c.now - ms)
end

-- By the totals about a minute ago. Fewer than then: the queue was created again.
local function per_minute_of(c, totals, oldest)
    local past, since = totals_before(c, oldest, RATE_MS)
    local span = past and c.now - since or 0
    if span < 1000 then return cjson.null end
    local rates = { span_ms = span }
    for name, n in pairs(totals) do rates[name] = max(0, n - (past[name] or 0)) * 60000 / span end
    return rates
end

-- What came true of the waits told in the last hour, or since the history began.
local function eta_of(c, oldest)
    local past, since = totals_before(c, oldest, TOLD_MS)
    local told = call('HMGET', c.key.promised, unpack(defs.PROMISED))
    for i, name in ipairs(defs.PROMISED) do
        told[i] = (text.number(told[i]) or 0) - (past and past[name] or 0)
        if not past or told[i] < 0 then return cjson.null end -- lost, or created again
    end
    local judged, early, late, off = unpack(told)
    return judged > 0 and { since = since, judged = judged, early = early, late = late,
        inside_percent = 100 * (judged - early - late) / judged, error_percent = off / judged } or cjson.null
end

-- stats: everything that the numbers of a queue are made of, as of one moment.
-- args     1... fields of the state to read
-- returns  STATS. Work is bounded: 16 lanes, 64 sessions, 50 workers, 20 webhooks, 256 signs
entry('stats', { 'no-writes' }, function(keys, args)
    local c, totals = state.find(keys), {}
    for i, n in ipairs(call('HMGET', c.key.state, unpack(defs.TOTAL))) do
        totals[defs.TOTAL[i]] = text.number(n) or 0
    end
    local waiting, active, called = unpack(call('HMGET', c.key.state, 'waiting', 'active', 'called'))
    -- As line/overbook.lua counts them.
    local unclaimed, both = text.number(match(called or '', '^%d+:(%d+):')), histories_of(c)
    local oldest, sample, lanes_now, since = both[1].oldest, sample_of(c, both), lanes_of(c, both)
    return { int(c.now), call('HMGET', c.key.state, unpack(args)), call('HGETALL', c.key.config), webhooks_of(c),
        cjson.encode({ totals = totals, per_minute = per_minute_of(c, totals, oldest),
            claimed = unclaimed and (text.number(active) or 0) - unclaimed or cjson.null,
            lanes = lanes_now, oldest_wait_ms = ago(c, since), waited = waited_of(sample),
            waits = waits_of(c, oldest, #lanes_now, text.number(waiting) or 0, sample), eta = eta_of(c, oldest),
            programs = programs_of(c), ingest = call('XLEN', c.key.ingest),
            signs = signs_of(c), set_aside = call('XLEN', c.key.poison) }) }
end)

-- webhooks: how far they were told what happened to a queue. Returns WEBHOOKS.
entry('webhooks', { 'no-writes' }, function(keys) return webhooks_of(state.find(keys)) end)

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
