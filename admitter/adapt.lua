-- SPDX-License-Identifier: Apache-2.0
-- adapt: steers the capacity of a queue with a `capacity.min` by what the protected site reports: a little up
-- while all is well, a good deal down at once when it is not.
-- args     1 keep   2 a report of the caller's own, as in tl:{q}:feedback; '' for none
-- returns  ADAPT
--
-- Invariants: by whatever program and however often it is called, the capacity is raised once in `adaptive.every`, and
-- cut once in `adaptive.hold`, by the server's clock; without a fresh report it is never raised, nor above what was
-- seen to be safe.

local int, number = text.int, text.number
local REPORTS_READ = 100
local ROOM = 0.9 -- the capacity is raised below this part of all limits; between it and the limits it stays
local FIELDS = state.fields({}, { 'capacity_now', 'capacity_safe', 'capacity_raised', 'capacity_cut', 'capacity_seen',
    'capacity_seen_ms', 'capacity_why' })
local SETTINGS = settings.list({ 'capacity', 'capacity.min', 'adaptive.load_max',
    'adaptive.latency_max', 'adaptive.errors_max', 'adaptive.every', 'adaptive.raise', 'adaptive.cut', 'adaptive.hold',
    'adaptive.fresh' })
local WRITES = { 'events' }
local WHY = defs.WHY

-- When something was done last; not in the future, also after the clock went back.
local function past(c, field)
    local ms = number(c[field]) or 0
    if ms > c.now then state.set(c, field, c.now) end
    return min(ms, c.now)
end

-- What the reports tell: worst load, latency and errors, -1 each where none tells; n, how many are judged; newest: when
-- the newest came, 0: none; id: its id. Judges those that are hardly older than the newest: several servers of one site
-- may report in turn, and each counts. Not those from before the last cut, which tell what it has answered.
local function read_reports(c, s, why, cut)
    local rows = call('XREVRANGE', c.key.feedback, '+', '-', 'COUNT', REPORTS_READ)
    local id, seen_ms = rows[1] and rows[1][1], min(number(c.capacity_seen_ms) or 0, c.now)
    local is_seen, r = id == c.capacity_seen, { worst = { -1, -1, -1 }, n = 0, newest = 0, id = id }
    if not id or is_seen and why == WHY.unreported then return r end -- it was old before the clock went back
    r.newest = text.id_ms(id)
    local since = max(r.newest - min(s['adaptive.every'], s['adaptive.hold']), cut + 1)
    if r.newest > c.now then -- the clock went back, and the ids of a stream do not: one is new when it is another
        rows, since, r.newest = { rows[1] }, 0, is_seen and seen_ms or c.now
        if not is_seen then
            state.set(c, 'capacity_seen', id)
            state.set(c, 'capacity_seen_ms', c.now)
        end
    elseif is_seen then
        r.newest = min(r.newest, seen_ms) -- it was first seen before the clock had reached its id
    end
    for i = 1, #rows do
        if text.id_ms(rows[i][1]) >= since then
            local texts = { match(rows[i][2][2] or '', '^(%S+) (%S+) (%S+)$') }
            for k = 1, 3 do r.worst[k] = max(r.worst[k], tonumber(texts[k]) or -1) end
            r.n = r.n + 1
        end
    end
    return r
end

---- one step: of a = { before, after, safe: capacities; because: why; raised, cut: when }

-- From those who are active: a capacity that nobody used says nothing.
local function cut_back(c, s, a, newest)
    if c.now < a.cut + s['adaptive.hold'] or newest <= a.cut then return end
    local least = settings.capacity(s, 0)
    a.after = max(least, min(a.before, floor(c.active * (100 - s['adaptive.cut']) / 100)))
    a.because = a.after < a.before and WHY.cut or a.after == least and WHY.lowest or a.because
    a.safe = min(a.safe, a.after)
    if a.after < a.before then state.set(c, 'capacity_cut', c.now) end
end

-- Only while the capacity is what limits: visitors wait, and it is used up, or nearly so at this moment. And not before
-- a report from after the last raise has told how that was taken.
local function keep_or_raise(c, s, a, newest, has_room)
    if a.because == WHY.unreported or a.because == WHY.lowest then a.because = WHY.steady end
    if c.now < a.raised + s['adaptive.every'] or c.now < a.cut + s['adaptive.hold'] then return end
    if newest <= a.raised then return end
    local limits = c.waiting > 0 and c.active >= 0.9 * a.before
    if limits then a.safe = max(a.safe, min(a.before, c.active)) end -- it was felt for a while
    if limits and has_room and a.before < s.capacity then
        a.after = min(s.capacity, a.before + max(1, floor(s.capacity * s['adaptive.raise'] / 100)))
        a.because = WHY.raised
        state.set(c, 'capacity_raised', c.now)
    end
end

entry('adapt', { 'allow-oom' }, function(keys, args)
    local c = state.open(state.begin(keys, args[1]), FIELDS)
    local s, own = settings.read(c, SETTINGS), args[2] or ''
    if s['capacity.min'] == 0 then return { 0, s.capacity, s.capacity, WHY.steady, -1, -1, -1 } end
    local why, before = number(c.capacity_why), settings.capacity(s, c.capacity_now)
    local a = { before = before, after = before, because = why or WHY.unreported,
        safe = settings.capacity(s, c.capacity_safe), raised = past(c, 'capacity_raised'),
        cut = past(c, 'capacity_cut') }
    if own ~= '' then
        state.check(c, WRITES)
        call('XADD', c.key.feedback, 'MAXLEN', defs.FEEDBACK_KEPT, '*', 'd', own)
    end
    local r, passed = read_reports(c, s, why, a.cut), -1
    -- By how much the worst report passes its limit: 1 is the limit itself; -1 when nothing was reported.
    for i, limit in ipairs({ 10 * s['adaptive.load_max'], s['adaptive.latency_max'], 10 * s['adaptive.errors_max'] }) do
        if limit > 0 and r.worst[i] >= 0 then passed = max(passed, r.worst[i] / limit) end
    end
    if c.now - r.newest > s['adaptive.fresh'] or r.n > 0 and passed < 0 then
        a.after, a.because = min(a.before, a.safe), WHY.unreported
        if r.id and r.id ~= c.capacity_seen then state.set(c, 'capacity_seen', r.id) end
    elseif passed > 1 then
        cut_back(c, s, a, r.newest)
    elseif passed >= 0 then
        keep_or_raise(c, s, a, r.newest, passed <= ROOM)
    end

    for field, value in pairs({ capacity_now = a.after, capacity_safe = a.safe, capacity_why = a.because }) do
        if int(value) ~= c[field] then state.set(c, field, value) end
    end
    if next(c.changes) then
        state.check(c, WRITES)
        -- Workers read what the state says when the number that counts has changed, or whether anything is reported.
        if a.after ~= before or (a.because == WHY.unreported) ~= (why == WHY.unreported) then
            state.event(c, defs.EVENT.config)
            settings.note_rules(c)
        end
        state.commit(c)
    end
    return { 1, before, a.after, a.because, unpack(r.worst) }
end)
