-- SPDX-License-Identifier: Apache-2.0
-- The rate budget: when the policies `rate` and `both` admit the next visitors.
--
-- A period of `every` ms has a slot for each of `admit` visitors, at an offset from its start: all at its start
-- (lumps), or spread evenly over it, in groups STEP_MS apart (smooth). A visitor takes the next slot, when it is due or
-- later. The period after it starts `every` after this one, and later by the most that a slot was taken late in this
-- one: so the same slot is due again `every` after it was taken. Hence no window of `every` ms holds more than `admit`
-- visitors, and a delay costs its length once in a period. A burst of b: slot j may be taken as late as slot j + b is
-- due without moving the next period, so a window holds b more.
--
-- Field `budget` of the state: "from:used:late:last:base_seq:admit:every:burst:shape"; missing or '': none.
--   from      when the period starts, ms          used   slots taken in it, below admit
--   late      by how much the next one starts later, ms
--   last      the last admission, ms; or when the budget began
--   base_seq  of the incarnation that wrote it    and the rule it was written under

-- Makes the functions, as a table: only queues with a rate need them, and making them takes time at each step.
local function load_budget()

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min -- local variables are found faster

local STEP_MS = 20        -- at least, between two groups of slots
local CATCH_UP_MS = 100   -- slots not taken for longer, and for an interval, lapse: unused ones must not add up
local CLOCK_JUMP_MS = 100 -- the server's clock may run ahead of the caller's by less

-- A rule by its four texts; nil when it is none: the queue has no rate.
local function rate_rule(admit, every, burst, shape)
    local text = (admit or '') .. ':' .. (every or '') .. ':' .. (burst or '0')
    local lumps = shape == 'lumps'
    if not string.find(text, '^[1-9]%d*:[1-9]%d*:%d+$') then
        return nil
    end
    local slots, ms = admit + 0, every + 0 -- adding 0 makes a number of a text in a third of the time of tonumber
    local group = lumps and slots or ceil(slots * min(STEP_MS, ms) / ms)
    local interval = ceil(group * ms / slots) -- between two groups, ms
    -- A table is faster to make at once than to fill.
    return { admit = slots, every = ms, lumps = lumps, burst = lumps and 0 or (burst or 0) + 0,
        text = text .. (lumps and ':lumps' or ':smooth'), group = group, interval = interval,
        catch_up = max(min(CATCH_UP_MS, floor(ms / 10)), interval - 1) }
end

-- When a slot is due, ms after the start of the period. Slots from `admit` on are those of the next periods. All
-- products stay below 2^53, where a double is exact.
local function slot_offset(rule, slot)
    local periods = slot < rule.admit and 0 or floor(slot / rule.admit)
    local group = floor((slot - periods * rule.admit) / rule.group)
    return periods * rule.every + ceil(group * rule.group * rule.every / rule.admit)
end

-- How many slots of a period are due so many ms after its start.
local function slots_due(rule, elapsed)
    if elapsed < 0 then
        return 0
    elseif elapsed >= rule.every then
        return rule.admit
    end
    local groups = floor(elapsed * rule.admit / (rule.every * rule.group)) + 1
    return min(rule.admit, groups * rule.group)
end

local function parse_budget(text)
    local from, used, late, last, base_seq, rule = string.match(text or '',
        '^(%d+):(%d+):(%d+):(%d+):(%d+):(%d+:%d+:%d+:%l+)$')
    if from then
        return { from = tonumber(from), used = tonumber(used), late = tonumber(late), last = tonumber(last),
            base_seq = base_seq, rule = rule }
    end
end

-- The same for what was written in this incarnation under this rule, which it nearly always was: what follows the
-- numbers need not be parsed.
local function parse_own_budget(text, base_seq, rule)
    local tail = ':' .. base_seq .. ':' .. rule.text
    if text and string.sub(text, -#tail) == tail then
        local from, used, late, last, past = string.match(text, '^(%d+):(%d+):(%d+):(%d+)()')
        if from and past + #tail == #text + 1 then
            return { from = from + 0, used = used + 0, late = late + 0, last = last + 0, base_seq = base_seq,
                rule = rule.text }
        end
    end
end

local function budget_text(budget)
    return format('%d:%d:%d:%d:%s:%s', budget.from, budget.used, budget.late, budget.last, budget.base_seq, budget.rule)
end

-- A budget as after an admission of all that was allowed, just now.
local function spent_budget(rule, now, base_seq)
    return { from = now + min(rule.every, rule.catch_up + 4 * rule.interval), used = 0, late = 0, last = now,
        base_seq = base_seq, rule = rule.text }
end

-- A new period under `rule`, in the middle of one that was planned under `old`. It starts after the last slot taken, by
-- as much as makes up for what was taken late and for the two periods not fitting together; never later than `every`
-- after the last admission, which leaves no window with visitors of both. Lumps start then.
local function begin_period(budget, old, rule)
    local next_slot = min(old.admit, ceil(budget.used / old.group) * old.group)
    local from = budget.from + slot_offset(old, next_slot) + budget.late + rule.interval
    local latest = budget.last + rule.every
    budget.from, budget.used, budget.late = rule.lumps and latest or min(from, latest), 0, 0
    budget.rule = rule.text
end

local function next_period(budget, rule)
    budget.from, budget.used, budget.late = budget.from + rule.every + budget.late, 0, 0
end

-- Slots that were due before this moment, and not taken, are lost.
local function lapse_slots(budget, rule, before)
    if budget.from + rule.every + budget.late < before then
        next_period(budget, rule)
        budget.from = budget.from + floor((before - 1 - budget.from) / rule.every) * rule.every
    end
    budget.used = max(budget.used, slots_due(rule, before - 1 - budget.from))
    if budget.used >= rule.admit then
        next_period(budget, rule)
    end
end

-- By how much the server's clock jumped since the last admission.
--   clock.ahead      by how many ms it is ahead of what the caller expects
--   clock.jumped     by how many ms it jumped before, as the caller saw, up to `jumped_to`. A step of another caller
--                    may have moved the budget along already, unless it admitted nobody since: then time is lost, not
--                    gained
local function clock_jump(budget, now, clock)
    if now < budget.last then
        return now - budget.last
    end
    local ahead = clock.ahead > CLOCK_JUMP_MS and clock.ahead or 0
    local missed = budget.last < clock.jumped_to and clock.jumped or 0
    return min(ahead + missed, now - budget.last)
end

-- The budget at this moment. Returns the budget, and whether the state must keep it even if no visitor is admitted.
local function budget_at(rule, text, now, clock, base_seq)
    local budget = parse_own_budget(text, base_seq, rule) or parse_budget(text)
    local old = budget and (budget.rule == rule.text and rule
        or rate_rule(string.match(budget.rule, '^(%d+):(%d+):(%d+):(%l+)$')))
    if not old or budget.base_seq ~= base_seq then
        return spent_budget(rule, now, base_seq), true
    end
    -- Time that did not pass grants nothing: when the clock jumps, the budget goes with it.
    local jump = clock_jump(budget, now, clock)
    budget.from, budget.last = budget.from + jump, budget.last + jump
    if old ~= rule then
        begin_period(budget, old, rule)
    end
    if not rule.lumps then
        lapse_slots(budget, rule, now - rule.catch_up - ceil(rule.burst * rule.every / rule.admit))
    end
    return budget, jump ~= 0
end

-- How many visitors the budget allows now.
local function budget_left(budget, rule, now)
    return max(0, slots_due(rule, now - budget.from) - budget.used)
end

-- Takes n slots. `closes`: a lump is over, and what is left of it lapses. Returns whether the next period follows now.
local function spend_budget(budget, rule, now, n, closes)
    if n > 0 then
        budget.late = max(budget.late, now - budget.from - slot_offset(rule, budget.used + rule.burst))
        budget.used, budget.last = budget.used + n, now
    end
    if budget.used >= rule.admit or closes then
        next_period(budget, rule)
        return true
    end
    return false
end

-- After how many ms the next slot is due; 0 when it is.
local function budget_wait(budget, rule, now)
    return max(0, budget.from + slot_offset(rule, budget.used) - now)
end

return { rule_of = rate_rule, parse = parse_budget, text = budget_text, at = budget_at, left = budget_left,
    spend = spend_budget, wait = budget_wait }

end
