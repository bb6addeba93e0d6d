-- SPDX-License-Identifier: Apache-2.0
-- The rate budget of a queue with a policy by rate: is the record possible, and do the last events keep the rate?

local LOOK_BACK = 500     -- entries of the events stream
local CORRECTED_MS = 5000 -- a budget ahead of the clock: an idle admitter calls its script that often

local budgets = load_budget()

local BEGIN_AGAIN = 'set it to nothing: HSET ' .. K_STATE .. " budget ''; the admitter begins with a spent one"

local function check_record(text, now)
    local budget = budgets.parse(text)
    local under = budget and budgets.rule_of(string.match(budget.rule, '^(%d+):(%d+):(%d+):(%l+)$'))
    if not under then
        found(2, 'budget', 'the rate budget cannot be read: ' .. text, BEGIN_AGAIN)
    elseif budget.last > now + CORRECTED_MS then
        found(2, 'budget clock',
            format('the last admission by rate was %.0f ms ahead of the clock', budget.last - now),
            'did the clock of Redis go back? The admitter corrects it with its next step; is one running?')
    elseif budget.used >= under.admit or budget.from > budget.last + under.every
        or (budget.used > 0 and budget.from + budget.late > budget.last) then
        found(2, 'budget bounds', 'the rate budget is out of its bounds: ' .. text, BEGIN_AGAIN)
    end
end

-- The last admissions as { ms, how many }, the newest first, back to where the settings changed or the budget began
-- again. An admission set its deadline from the time of its step.
local function last_admissions(generation)
    local ttls = redis.call('HMGET', K_CONFIG, 'claim_ttl', 'session_ttl')
    local ttl = math.min(tonumber(ttls[1] or '') or 0, tonumber(ttls[2] or '') or 0)
    local list = {}
    for _, row in ipairs(redis.call('XREVRANGE', K_EVENTS, '+', '-', 'COUNT', LOOK_BACK)) do
        local ok, entry = pcall(cmsgpack.unpack, row[2][2] or '')
        if not ok or type(entry) ~= 'table' or entry[3] ~= generation or type(entry[6]) ~= 'table'
            or #entry[6] == 0 then
            return list
        end
        for _, event in ipairs(entry[6]) do
            if event[1] == EVENT.config then
                return list
            elseif event[1] == EVENT.admitted then
                local n, ms = 0, event[3] - ttl
                for i = 2, #event[2], 2 do
                    n = n + event[2][i]
                end
                if list[1] and ms > list[#list][1] then -- the clock went back meanwhile
                    return list
                end
                list[#list + 1] = { ms, n }
            end
        end
    end
    return list
end

local function check_window(rule, list)
    local sum, oldest = 0, 0
    for newest = 1, #list do
        while oldest < #list and list[oldest + 1][1] > list[newest][1] - rule.every do
            oldest = oldest + 1
            sum = sum + list[oldest][2]
        end
        if sum > rule.admit + rule.burst then
            found(2, 'rate',
                format('%.0f were admitted within %.0f ms, but the rate allows %.0f', sum, rule.every,
                    rule.admit + rule.burst), 'are all admitters of this version? Report how it came to this')
            return
        end
        sum = sum - list[newest][2]
    end
end

local function check_budget(now, generation)
    local c = redis.call('HMGET', K_CONFIG, 'policy', 'rate_admit', 'rate_every', 'rate_burst', 'rate_shape')
    local rule = (c[1] == 'rate' or c[1] == 'both') and budgets.rule_of(unpack(c, 2))
    local text = redis.call('HGET', K_STATE, 'budget')
    if not rule or not text or text == '' then
        return
    end
    check_record(text, now)
    check_window(rule, last_admissions(generation))
end
