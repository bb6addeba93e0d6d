-- SPDX-License-Identifier: Apache-2.0
-- adapt: steers the capacity of a queue with `capacity_mode: auto` by what the protected site reports: a little up
-- while all is well, a good deal down at once when it is not.
-- Flags: allow-oom
-- Parts: prelude.capacity
--
-- ARGV     1 about how many events to keep   2 a report of the caller's own, as in tl:{q}:feedback; '' for none
-- Returns  { 1 (0: the capacity is fixed), capacity before, capacity now, why (WHY), the worst of the reports: load in
--            thousandths, latency ms, errors in thousandths; -1 where none tells }
-- Errors   NOQUEUE  the queue does not exist
--
-- Invariants: whoever calls it, and however often, the capacity is raised once in `adaptive_every`, and cut once in
-- `adaptive_hold`, by the server's clock; it stays between capacity_min and capacity; without a fresh report it is
-- never raised, nor above what was seen to be safe. Work is bounded by REPORTS_READ reports.
local keep, own = ARGV[1], ARGV[2] or ''
local K_FEEDBACK = key_of('feedback')
local REPORTS_READ = 100
local ROOM = 0.9 -- the capacity is raised below this part of all limits; between it and the limits it stays

-- unreported: no fresh report; lowest: a limit is passed, but the capacity is as low as it may be.
local WHY = { steady = 0, raised = 1, cut = 2, unreported = 3, lowest = 4 }

local state, now_text, safe_text, raised_text, cut_text, seen_id, seen_ms, why = open_state('capacity_now',
    'capacity_safe', 'capacity_raised', 'capacity_cut', 'capacity_seen', 'capacity_seen_ms', 'capacity_why')
if not state then
    return no_queue()
end
local c = redis.call('HMGET', K_CONFIG, 'capacity', 'capacity_mode', 'capacity_min', 'adaptive_load_max',
    'adaptive_latency_max', 'adaptive_errors_max', 'adaptive_every', 'adaptive_raise', 'adaptive_cut', 'adaptive_hold',
    'adaptive_fresh')
local most = tonumber(c[1] or '')
if c[2] ~= 'auto' or not most then
    return { 0, most or 0, most or 0, WHY.steady, -1, -1, -1 }
end
local rule = { load = 10 * (tonumber(c[4]) or 80), latency = tonumber(c[5]) or 0, errors = 10 * (tonumber(c[6]) or 5),
    every = tonumber(c[7]) or 5000, raise = tonumber(c[8]) or 2, cut = tonumber(c[9]) or 30,
    hold = tonumber(c[10]) or 15000, fresh = tonumber(c[11]) or 15000 }

local now = now_ms()
local before = capacity_now('auto', most, c[3], now_text)
local least = capacity_now('auto', most, c[3], '0')
local safe = capacity_now('auto', most, c[3], safe_text)

local changed = {} -- fields of the state

local function set(field, value)
    changed[#changed + 1], changed[#changed + 2] = field, value
end

-- When something was done last; not in the future, also after the clock went back.
local function past(field, text)
    local ms = tonumber(text or '') or 0
    if ms > now then
        ms = now
        set(field, ms)
    end
    return ms
end

local raised, cut = past('capacity_raised', raised_text), past('capacity_cut', cut_text)

---- the reports

if own ~= '' then
    check_types()
    redis.call('XADD', K_FEEDBACK, 'MAXLEN', FEEDBACK_KEPT, '*', 'd', own)
end

local worst = { -1, -1, -1 } -- load, latency, errors
local judged = 0             -- reports that count for it

local function judge(row)
    local texts = { string.match(row[2][2] or '', '^(%S+) (%S+) (%S+)$') }
    for i = 1, 3 do
        worst[i] = math.max(worst[i], tonumber(texts[i] or '') or -1)
    end
    judged = judged + 1
end

local function row_ms(row)
    return tonumber(string.match(row[1], '^%d+'))
end

-- Judges the reports that are hardly older than the newest: several servers of one site may report in turn, and each
-- counts. Not those from before the last cut, which tell what it has answered. Returns when the newest came, 0: none,
-- and its id.
local function read_reports()
    local rows = redis.call('XREVRANGE', K_FEEDBACK, '+', '-', 'COUNT', REPORTS_READ)
    local id = rows[1] and rows[1][1]
    if not id or (id == seen_id and tonumber(why or '') == WHY.unreported) then -- it was old before the clock went back
        return 0, id
    end
    local newest = row_ms(rows[1])
    if newest > now then -- the clock went back, and the ids of a stream do not: one is new when it is another
        judge(rows[1])
        if id ~= seen_id then
            set('capacity_seen', id)
            set('capacity_seen_ms', now)
            return now, id
        end
        return math.min(tonumber(seen_ms or '') or 0, now), id
    end
    local since = math.max(newest - math.min(rule.every, rule.hold), cut + 1)
    for _, row in ipairs(rows) do
        if row_ms(row) >= since then
            judge(row)
        end
    end
    if id == seen_id then -- it was first seen before the clock had reached its id
        newest = math.min(newest, tonumber(seen_ms or '') or 0)
    end
    return newest, id
end

-- By how much the worst report passes its limit: 1 is the limit itself; -1 when nothing was reported.
local function burden()
    local found = -1
    for i, limit in ipairs({ rule.load, rule.latency, rule.errors }) do
        if limit > 0 and worst[i] >= 0 then
            found = math.max(found, worst[i] / limit)
        end
    end
    return found
end

---- one step

local after, because = before, tonumber(why or '') or WHY.unreported

local function fall_back(newest_id)
    after, because = math.min(before, safe), WHY.unreported
    if newest_id and newest_id ~= seen_id then
        set('capacity_seen', newest_id)
    end
end

-- From those who are active: a capacity that nobody used says nothing.
local function cut_back(newest)
    if now < cut + rule.hold or newest <= cut then
        return
    end
    after = math.max(least, math.min(before, math.floor(state.active * (100 - rule.cut) / 100)))
    because = after < before and WHY.cut or after == least and WHY.lowest or because
    safe = math.min(safe, after)
    if after < before then
        set('capacity_cut', now)
    end
end

-- Only while the capacity is what limits: visitors wait, and it is used up, or nearly so at this moment. And not before
-- a report from after the last raise has told how that was taken.
local function keep_or_raise(newest, has_room)
    if because == WHY.unreported or because == WHY.lowest then
        because = WHY.steady
    end
    if now < raised + rule.every or now < cut + rule.hold or newest <= raised then
        return
    end
    local limits = state.waiting > 0 and state.active >= 0.9 * before
    if limits then
        safe = math.max(safe, math.min(before, state.active)) -- it was felt for a while
    end
    if limits and has_room and before < most then
        after, because = math.min(most, before + math.max(1, math.floor(most * rule.raise / 100))), WHY.raised
        set('capacity_raised', now)
    end
end

local newest, newest_id = read_reports()
local passed = burden()
if now - newest > rule.fresh or (judged > 0 and passed < 0) then
    fall_back(newest_id)
elseif passed > 1 then
    cut_back(newest)
elseif passed >= 0 then
    keep_or_raise(newest, passed <= ROOM)
end

if int(after) ~= now_text then
    set('capacity_now', after)
end
if int(safe) ~= safe_text then
    set('capacity_safe', safe)
end
if tonumber(why or '') ~= because then
    set('capacity_why', because)
end
if #changed > 0 then
    check_types()
    -- Workers read what the state says when the number that counts has changed, or whether anything is reported.
    local tells = after ~= before or (because == WHY.unreported) ~= (tonumber(why or '') == WHY.unreported)
    commit(state, changed, tells and { { EVENT.config } } or {}, keep)
end
return { 1, before, after, because, worst[1], worst[2], worst[3] }
