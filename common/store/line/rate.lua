-- SPDX-License-Identifier: Apache-2.0
-- The rate budget: when the policies `rate` and `both` admit the next visitors. docs/contributors/wire-format.md
-- describes the field `budget` of the state, periods and their slots, and says why no window of `every` ms holds more
-- than `admit` visitors, or `burst` more.

local STEP_MS = 20        -- at least, between two groups of slots
local CATCH_UP_MS = 100   -- slots not taken for longer, and for an interval, lapse: unused ones must not add up
local CLOCK_JUMP_MS = 100 -- the server's clock may run ahead of the caller's by less
local RULE = '^(%d+):(%d+):(%d+):(%l+)$' -- in the budget: admit, every, burst, shape

-- A rule by its four texts; nil when it is none: the queue has no rate.
local function rule_of(admit, every, burst, shape)
    local t = (admit or '') .. ':' .. (every or '') .. ':' .. (burst or '0')
    if not find(t, '^[1-9]%d*:[1-9]%d*:%d+$') then return nil end
    local slots, ms, batches = admit + 0, every + 0, shape == 'batches'
    local group = batches and slots or ceil(slots * min(STEP_MS, ms) / ms)
    local interval = ceil(group * ms / slots) -- between two groups, ms
    return { admit = slots, every = ms, batches = batches, burst = batches and 0 or (burst or 0) + 0,
        text = t .. (batches and ':batches' or ':smooth'), group = group, interval = interval,
        catch_up = max(min(CATCH_UP_MS, floor(ms / 10)), interval - 1) }
end

-- When a slot is due, ms after the start of the period. Slots from `admit` on are those of the next periods. All
-- products stay below 2^53, where a double is exact.
local function offset_of(rule, slot)
    local periods = slot < rule.admit and 0 or floor(slot / rule.admit)
    local group = floor((slot - periods * rule.admit) / rule.group)
    return periods * rule.every + ceil(group * rule.group * rule.every / rule.admit)
end

-- How many slots of a period are due `elapsed` ms after its start.
local function slots_due(rule, elapsed)
    if elapsed < 0 then return 0 end
    if elapsed >= rule.every then return rule.admit end
    local groups = floor(elapsed * rule.admit / (rule.every * rule.group)) + 1
    return min(rule.admit, groups * rule.group)
end

-- nil for a missing or damaged text.
local function parse(t)
    local from, used, late, last, base_seq, rule = match(t or '', '^(%d+):(%d+):(%d+):(%d+):(%d+):(%d+:%d+:%d+:%l+)$')
    return from and { from = from + 0, used = used + 0, late = late + 0, last = last + 0, base_seq = base_seq,
        rule_text = rule } or nil
end

function rate.text(b)
    return format('%d:%d:%d:%d:%s:%s', b.from, b.used, b.late, b.last, b.base_seq, b.rule_text)
end

local function next_period(b) b.from, b.used, b.late = b.from + b.rule.every + b.late, 0, 0 end

-- Slots that were due before this moment, and not taken, are lost.
local function lapse(b, rule, before)
    if b.from + rule.every + b.late < before then
        next_period(b)
        b.from = b.from + floor((before - 1 - b.from) / rule.every) * rule.every
    end
    b.used = max(b.used, slots_due(rule, before - 1 - b.from))
    if b.used >= rule.admit then next_period(b) end
end

-- The budget at this moment, by its field in the state and the settings rate.admit, rate.every, rate.burst and
-- rate.shape, as texts; nil where the queue has no rate. record: what the state must keep even if no visitor is
-- admitted; nil: what it has. clock: by how many ms the server's clock is `ahead` of what the caller expects, and
-- `jumped` before, as the caller saw, up to `jumped_to`.
function rate.open(c, texts, clock)
    local rule = rule_of(texts[1], texts[2], texts[3], texts[4])
    if not rule then return nil end
    local b = parse(c.budget)
    local old = b and (b.rule_text == rule.text and rule or rule_of(match(b.rule_text, RULE)))
    if not old or b.base_seq ~= c.base_seq then
        -- As after an admission of all that was allowed, just now.
        b = { from = c.now + min(rule.every, rule.catch_up + 4 * rule.interval), used = 0, late = 0, last = c.now,
            base_seq = c.base_seq, rule_text = rule.text, rule = rule }
        b.record = rate.text(b)
        return b
    end
    -- Time that did not pass grants nothing: when the server's clock jumped since the last admission, the budget goes
    -- with it. A step of another caller may have moved it along already, unless it admitted nobody since: then time is
    -- lost, not gained.
    local ahead = clock.ahead > CLOCK_JUMP_MS and clock.ahead or 0
    local missed = b.last < clock.jumped_to and clock.jumped or 0
    local jump = c.now < b.last and c.now - b.last or min(ahead + missed, c.now - b.last)
    b.from, b.last, b.rule = b.from + jump, b.last + jump, rule
    if jump ~= 0 then b.record = rate.text(b) end -- without what follows from the time: the next step sees it again
    if old ~= rule then
        -- A new period, in the middle of one that was planned under `old`. It starts after the last slot taken, by as
        -- much as makes up for what was taken late and for the two periods not fitting together; never later than
        -- `every` after the last admission, which leaves no window with visitors of both. Batches start then.
        local next_slot = min(old.admit, ceil(b.used / old.group) * old.group)
        local from, latest = b.from + offset_of(old, next_slot) + b.late + rule.interval, b.last + rule.every
        b.from, b.used, b.late, b.rule_text = rule.batches and latest or min(from, latest), 0, 0, rule.text
    end
    if not rule.batches then lapse(b, rule, c.now - rule.catch_up - ceil(rule.burst * rule.every / rule.admit)) end
    return b
end

-- How many visitors the budget allows now.
function rate.left(b, now) return max(0, slots_due(b.rule, now - b.from) - b.used) end

-- Takes n slots. closes: a batch is over, and what is left of it lapses. Returns whether the next period follows now.
function rate.spend(b, now, n, closes)
    local rule = b.rule
    if n > 0 then
        b.late = max(b.late, now - b.from - offset_of(rule, b.used + rule.burst))
        b.used, b.last = b.used + n, now
    end
    if b.used < rule.admit and not closes then return false end
    next_period(b)
    return true
end

-- After how many ms the next slot is due; 0 when it is.
function rate.wait(b, now) return max(0, b.from + offset_of(b.rule, b.used) - now) end

---- of an audit: is the record possible, and do the last events keep the rate?

local LOOK_BACK = 500     -- entries of the events stream
local CORRECTED_MS = 5000 -- a budget ahead of the clock: an idle admitter calls its step that often

-- The last admissions as { ms, how many }, the newest first, back to where the settings changed or the budget began
-- again. An admission set its deadline from the time of its step, ttl before.
local function last_admissions(c, ttl)
    local list = {}
    for _, written in ipairs(audit.entries(c, LOOK_BACK)) do
        if #written.events == 0 then return list end
        for _, event in ipairs(written.events) do
            if event[1] == defs.EVENT.admitted then
                local n, ms = 0, event[3] - ttl
                for i = 2, #event[2], 2 do n = n + event[2][i] end
                if list[1] and ms > list[#list][1] then return list end -- the clock went back meanwhile
                list[#list + 1] = { ms, n }
            end
        end
    end
    return list
end

local function check_window(c, rule, list)
    local sum, oldest = 0, 0
    for newest = 1, #list do
        while oldest < #list and list[oldest + 1][1] > list[newest][1] - rule.every do
            oldest = oldest + 1
            sum = sum + list[oldest][2]
        end
        if sum > rule.admit + rule.burst then
            audit.found(c, 2, 'rate', 'are all admitters of this version? Report how it came to this',
                '%.0f were admitted within %.0f ms, but the rate allows %.0f', sum, rule.every, rule.admit + rule.burst)
            return
        end
        sum = sum - list[newest][2]
    end
end

function rate.check(c)
    local v = call('HMGET', c.key.config, 'policy', 'claim_ttl', 'session_ttl', 'rate.admit', 'rate.every',
        'rate.burst', 'rate.shape')
    local rule, t = rule_of(unpack(v, 4)), audit.record(c, 'budget')
    if not rule or v[1] ~= 'rate' and v[1] ~= 'both' or not t then return end
    local b = parse(t)
    local written, after = b and rule_of(match(b.rule_text, RULE)), 'the admitter begins with a spent one'
    if not written then
        audit.found_record(c, 2, 'budget', 'budget', after, 'the rate budget cannot be read: %s', t)
    elseif b.last > c.now + CORRECTED_MS then
        audit.found(c, 2, 'budget clock',
            'did the clock of Redis go back? The admitter corrects it with its next step; is one running?',
            'the last admission by rate was %.0f ms ahead of the clock', b.last - c.now)
    elseif b.used >= written.admit or b.from > b.last + written.every or b.used > 0 and b.from + b.late > b.last then
        audit.found_record(c, 2, 'budget', 'budget bounds', after, 'the rate budget is out of its bounds: %s', t)
    end
    check_window(c, rule, last_admissions(c, min(tonumber(v[2]) or 0, tonumber(v[3]) or 0)))
end
