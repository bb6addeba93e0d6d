-- SPDX-License-Identifier: Apache-2.0
-- history: notes the numbers of a queue as a point of its history, for graphs and reports.
-- Flags: allow-oom
-- Parts: prelude.capacity
--
-- ARGV     none
-- Returns  ms until the next point may be due
-- Errors   NOQUEUE  the queue does not exist
--
-- Invariants: at most one point in each 10 s and one in each minute, whoever calls it and however often; times never go
-- back. Points older than a day (10 s) or a week (minutes) are dropped. While nothing changes, a point is written every
-- ten minutes only, so that an idle queue costs nearly nothing. Nothing but the two histories changes.
local KEPT_MS, MINUTES_KEPT_MS = 86400000, 604800000
local UNCHANGED_MS = 600000
local CLOCK_BACK_MAX_MS = 3600000

local now = now_ms()
local fields = { 'waiting', 'active', 'seq', 'joined', 'admitted', 'completed', 'expired', 'unclaimed', 'left',
    'absent', 'removed' }
local values = redis.call('HMGET', K_STATE, unpack(fields))
if not values[1] then
    return no_queue()
end
local told = { 'eta_judged', 'eta_early', 'eta_late', 'eta_error' }
local told_values = redis.call('HMGET', key_of('promised'), unpack(told))
for i, field in ipairs(told) do
    fields[#fields + 1], values[#fields + 1] = field, told_values[i]
end
local c = redis.call('HMGET', K_CONFIG, 'capacity', 'capacity_mode', 'capacity_min', 'mode', 'paused')
local capacity_text = redis.call('HGET', K_STATE, 'capacity_now')
local capacity = capacity_now(c[2], tonumber(c[1] or '') or 0, c[3], capacity_text or '')
local mode = (not c[4] or c[4] == 'open') and c[5] == 'true' and 'paused' or c[4] or 'open'

-- The point as XADD takes it: name, value, name, value, ...
local point = { 'capacity', int(capacity), 'mode', mode }
for i, field in ipairs(fields) do
    point[#point + 1], point[#point + 2] = field, values[i] or '0'
end

local function same(old)
    for i = 2, #point, 2 do
        if old[i] ~= point[i] then
            return false
        end
    end
    return true
end

local function note(key, step, kept)
    local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
    local last_ms = last and tonumber(string.match(last[1], '^%d+')) or 0
    if last_ms > now + CLOCK_BACK_MAX_MS then -- the clock went back for good: what is kept has no place on it
        redis.call('DEL', key)
        last, last_ms = nil, 0
    end
    local due = now - now % step
    if due <= last_ms or last and due - last_ms < UNCHANGED_MS and same(last[2]) then
        return
    end
    redis.call('XADD', key, 'MINID', '~', int(now - kept), int(due) .. '-0', unpack(point))
end

note(key_of('history'), HISTORY_STEP_MS, KEPT_MS)
note(key_of('history:minutes'), HISTORY_MINUTE_MS, MINUTES_KEPT_MS)
return HISTORY_STEP_MS - now % HISTORY_STEP_MS
