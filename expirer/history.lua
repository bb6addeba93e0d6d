-- SPDX-License-Identifier: Apache-2.0
-- history: notes the numbers of a queue as a point of its history, for graphs and reports. Returns ms until the next
-- point may be due.
--
-- Invariants: at most one point in each 10 s and one in each minute, however often it is called; times never go back.
-- Points older than a day (10 s) or a week (minutes) are dropped. While nothing changes, a point is written every ten
-- minutes only, so that an idle queue costs nearly nothing.

local int = text.int
local KEPT_MS, MINUTES_KEPT_MS = 86400000, 604800000
local UNCHANGED_MS = 600000
local CLOCK_BACK_MAX_MS = 3600000
local TEXTS = { 'capacity_now', 'seq' }
for i = 1, #defs.TOTAL do TEXTS[i + 2] = defs.TOTAL[i] end
local FIELDS = state.fields({}, TEXTS)
local SETTINGS = settings.list({ 'capacity', 'capacity.min', 'mode' })

-- The point as XADD takes it: name, value, name, value, ...
local function point_of(c)
    local s, told = settings.read(c, SETTINGS), call('HMGET', c.key.promised, unpack(defs.PROMISED))
    local point = { 'capacity', int(settings.capacity(s, c.capacity_now)),
        'mode', s.mode,
        'waiting', int(c.waiting), 'active', int(c.active) }
    local function add(name, value) point[#point + 1], point[#point + 2] = name, value or '0' end
    for i = 2, #TEXTS do add(TEXTS[i], c[TEXTS[i]]) end
    for i, name in ipairs(defs.PROMISED) do add(name, told[i]) end
    return point
end

local function is_same(point, old)
    for i = 2, #point, 2 do
        if old[i] ~= point[i] then return false end
    end
    return true
end

local function note(c, key, point, step, kept)
    local last = call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
    local last_ms = last and text.id_ms(last[1]) or 0
    if last_ms > c.now + CLOCK_BACK_MAX_MS then -- the clock went back for good: what is kept has no place on it
        call('DEL', key)
        last, last_ms = nil, 0
    end
    local due = c.now - c.now % step
    if due <= last_ms or last and due - last_ms < UNCHANGED_MS and is_same(point, last[2]) then return end
    call('XADD', key, 'MINID', '~', int(c.now - kept), int(due) .. '-0', unpack(point))
end

entry('history', { 'allow-oom' }, function(keys)
    local c = state.read(state.begin(keys), FIELDS)
    local point = point_of(c)
    note(c, c.key.history, point, defs.HISTORY_STEP_MS, KEPT_MS)
    note(c, c.key['history:minutes'], point, defs.HISTORY_MINUTE_MS, MINUTES_KEPT_MS)
    return defs.HISTORY_STEP_MS - c.now % defs.HISTORY_STEP_MS
end)

-- prune: drops what is kept for people and has become too old: signs of misuse, which name networks, and the record of
-- changes, which names operators and their addresses. Returns Redis time ms.
-- args     1 how long signs are kept, ms   2 how long changes are kept, ms
entry('prune', { 'allow-oom' }, function(keys, args)
    local c = state.begin(keys)
    call('XTRIM', c.key.signs, 'MINID', '=', text.int(max(0, c.now - args[1])))
    call('XTRIM', c.key.changes, 'MINID', '=', text.int(max(0, c.now - args[2])))
    return c.now
end)
