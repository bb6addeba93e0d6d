-- SPDX-License-Identifier: Apache-2.0
-- admit: calls the next visitors while there is capacity left.
-- Flags: allow-oom
-- Parts: prelude.records prelude.runs prelude.row prelude.recovery prelude.budget prelude.draw
-- Parts: prelude.capacity prelude.called prelude.journal admit.recovery admit.rate admit.line admit.lanes admit.called
--
-- ARGV     1 most to admit in this step   2 about how many events to keep
--          3 generation of the queue when the caller last called, 0 or missing: not known
--          4 Redis time ms as the caller expects it, by an earlier answer and its own monotonic clock; 0 or missing:
--            not known. Tells the policies by rate that Redis's clock has jumped forward
--          5 by how many ms it jumped forward before, as the caller saw, and may not have told for this queue; 0 or
--            missing: it did not   6 Redis time ms just after the last of these jumps
-- Returns  { admitted, how many more may be admitted now, still waiting, Redis time ms, ms after which to call again
--            (0: no need), generation, base_seq, draw: ANNOUNCE its hash, or HOLD it, else 0; opens_at of the draw, 1
--            if the capacity is steered (adapt.lua) else 0, 1 if the queue is overbooked else 0; for reports: capacity,
--            active, how many may be active (0: any number), state of the queue }
-- Errors   NOQUEUE  the queue does not exist
--          POLICY   a policy this version does not know, or one by rate without a rate
--
-- Invariants: by counter, no admission takes active above capacity plus overbook, and no more than the capacity have
-- claimed (prelude.called.lua); by rate, no window of rate_every holds more than
-- rate_admit + rate_burst admissions, and a lump begins rate_every after the last step of the one before
-- (prelude.budget.lua); only the modes open and draining admit, between opens_at and, with at_close=stop, closes_at;
-- visitors are taken from the front of their lanes, so no visitor passes another in the same lane, and between lanes by
-- their order or weights (admit.lanes.lua); state.waiting and state.active are the sizes of the sets. When they were
-- not, because a set was lost or changed by hand, the step only writes them again. Work is bounded by ARGV[1].
local most, keep = tonumber(ARGV[1]), ARGV[2]

local state, admitted_total, recover_until, budget_before, called_before = open_state('admitted',
    'recover_until', 'budget', 'called')
if not state then
    return no_queue()
end
-- What only some queues need is read where they need it: each field costs a queue without it 1 % of a step.
local function read_settings(...)
    return redis.call('HMGET', K_CONFIG, 'policy', 'capacity', 'claim_ttl', 'session_ttl', 'opens_at', 'paused', 'mode',
        'closes_at', 'opening', 'lane_weights', 'capacity_mode', 'overbook', ...)
end
-- The rate, from c[13] on, is read at once where the queue had one a moment ago.
local c = (budget_before or '') == '' and read_settings()
    or read_settings('rate_admit', 'rate_every', 'rate_burst', 'rate_shape')
local policy, capacity, claim_ttl, session_ttl = c[1], tonumber(c[2]), tonumber(c[3]), tonumber(c[4])
local opens_at, paused, mode, closes_at = tonumber(c[5]) or 0, c[6] == 'true', c[7] or 'open', tonumber(c[8]) or 0
local is_drawn, weights, is_steered = c[9] == 'draw' and opens_at > 0, c[10] or '', c[11] == 'auto'
local stops_at = closes_at > 0 and redis.call('HGET', K_CONFIG, 'at_close') == 'stop' and closes_at or 0
if not capacity or not claim_ttl or not session_ttl then
    return redis.error_reply('NOQUEUE the queue has no settings')
end
if is_steered then
    capacity = capacity_now('auto', capacity, redis.call('HGET', K_CONFIG, 'capacity_min'),
        redis.call('HGET', K_STATE, 'capacity_now'))
end
local overbook = policy ~= 'rate' and c[12] ~= '0' and tonumber(c[12] or '') or 0
local counts_called = overbook > 0 or (called_before and called_before ~= '')

local now = now_ms()
local waiting, active = redis.call('ZCARD', K_WAITING), redis.call('ZCARD', K_ACTIVE)

-- The draw of the queue, until it is done: what the caller is to do about it (draw.lua). Nobody is admitted before.
local ANNOUNCE, HOLD = 1, 2
local undrawn, draw_wanted = false, 0
if is_drawn then
    DRAW.load()
    local draw, hash = unpack(redis.call('HMGET', K_STATE, 'draw', 'draw_hash'))
    undrawn = (DRAW.of(draw, opens_at) or {}).phase ~= DRAW.done
    draw_wanted = not undrawn and 0 or now >= opens_at and HOLD
        or string.match(hash or '', '^%d+') ~= int(opens_at) and ANNOUNCE or 0
end

-- What holds the queue, for reports; "open" else.
local state_name = mode ~= 'open' and mode or paused and 'paused' or now < opens_at and 'scheduled'
    or undrawn and 'drawing' or closes_at > 0 and now >= closes_at and 'over' or 'open'

-- What the script returns, before anyone is admitted.
local AT = { admitted = 1, left = 2, waiting = 3, again = 5, active = 13, name = 15 } -- in it
local answer = { 0, 0, waiting, now, 0, state.generation, state.base_seq, draw_wanted, opens_at, is_steered and 1 or 0,
    counts_called and 1 or 0, capacity, active, policy == 'rate' and 0 or capacity + overbook, state_name }

-- The sets are right and the state is wrong: visitors who are missing have ended, those too many have joined. Readers
-- find that their line has other sizes.
if waiting ~= state.waiting or active ~= state.active then
    check_types()
    local joined, expired = unpack(redis.call('HMGET', K_STATE, 'joined', 'expired'))
    local missing = state.waiting + state.active - waiting - active
    state.waiting, state.active = waiting, active
    commit(state, { 'joined', tonumber(joined) + math.max(0, -missing), 'expired',
        tonumber(expired) + math.max(0, missing), 'called', '' }, {}, keep)
    answer[AT.again] = 1
    return answer
end
local known = tonumber(ARGV[3] or 0)
if recover_until and recover_until ~= '0' then
    load_recovery()
    answer[AT.name], answer[AT.again] = 'recovering', recover(state, now, tonumber(recover_until), most, keep)
    return answer
elseif known > 0 and known < state.generation then
    load_recovery()
    if begins_recovery(state, now, known, keep) then
        answer[AT.again] = 1000
        return answer
    end
end

---- what must be right before the first write

local by_capacity, by_rate = policy == 'counter' or policy == 'both', policy == 'rate' or policy == 'both'
if not by_capacity and not by_rate then
    return redis.error_reply('POLICY this version admits by counter, rate and both only')
end
if by_rate and #c < 13 then
    c = read_settings('rate_admit', 'rate_every', 'rate_burst', 'rate_shape')
end
local NO_RATE = 'POLICY the queue has no rate: set rate_admit and rate_every'
admitted_total = read_counter(admitted_total)

---- who was called, and who has come: where the queue is overbooked, or was a moment ago

local called, held = nil, 0
local events = {} -- of this step: sessions claimed for those who were held

if counts_called then
    load_called()
    load_overbooking()
    held = redis.call('ZCARD', held_key())
    called = count_called(called_before, overbook, capacity, active, now, held)
    if called and held > 0 and capacity - (active - called.n) > 0 then
        check_types()
        if by_rate and not load_budget().rule_of(unpack(c, 13)) then
            return redis.error_reply(NO_RATE)
        end
        held = grant_held(state, called, capacity, now, session_ttl, most, events)
    end
end

---- policies: how many more each of them admits now. Where both apply to a queue, the smallest number counts.

local left = nil
if by_capacity then
    left = called and overbook > 0 and now >= called.since and overbooked_left(called, capacity, overbook, active, held)
        or math.max(0, capacity - active)
end

-- How many the step may admit, for all other reasons.
local opens_in = math.max(0, opens_at - now)
local stopped = paused or mode ~= 'open' and mode ~= 'draining' -- also in a mode of a later version
local closed = stopped or opens_in > 0 or stops_at > 0 and now >= stops_at or undrawn
local may = closed and 0 or math.min(most, waiting)

local budgets, rule, budget, keep_budget -- of the policies by rate
local budget_text, budget_wait, now_text -- what the step leaves of the budget
if by_rate then
    local expected, jumped, jumped_to = (ARGV[4] or 0) + 0, (ARGV[5] or 0) + 0, (ARGV[6] or 0) + 0
    local ahead = expected > 0 and now - expected or 0
    now_text = int(now)
    local allowed
    allowed, budget_text, budget_wait = quick_budget(budget_before, state.base_seq, c, now, now_text, ahead,
        jumped ~= 0 and jumped_to or 0, left and math.min(left, may) or may)
    if allowed then
        left = math.min(left or allowed, allowed)
    else
        budgets = load_budget()
        rule = budgets.rule_of(unpack(c, 13))
        if not rule then
            return redis.error_reply(NO_RATE)
        end
        local clock = { ahead = ahead, jumped = jumped, jumped_to = jumped_to }
        budget, keep_budget = budgets.at(rule, budget_before, now, clock, state.base_seq)
        left = math.min(left or math.huge, budgets.left(budget, rule, now))
    end
end

---- how many are admitted in this step

local n = math.min(left, may)
left = left - n
if budget then
    local lump_ends = rule.lumps and not (n == most and left > 0) -- else it goes on with the next step
    if not closed and (n > 0 or (lump_ends and budget.used > 0)) then
        keep_budget = true
        if budgets.spend(budget, rule, now, n, lump_ends) then -- else n fewer are left, as above
            left = math.min(left, budgets.left(budget, rule, now))
        end
    end
    budget_text, budget_wait = budgets.text(budget), budgets.wait(budget, rule, now)
end
local changes = {}
if n == 0 then
    if keep_budget then
        changes = { 'budget', budget_text }
    end
    if counts_called and called_text(called) ~= called_before then
        changes[#changes + 1], changes[#changes + 2] = 'called', called_text(called)
    end
    if #changes > 0 then
        check_types()
        commit(state, changes, events, keep)
    end
    answer[AT.left], answer[AT.again] = left, budget_wait or 0
    if closed then
        answer[AT.left], answer[AT.again] = 0, opens_in
    end
    return answer
end
redis.call('HLEN', K_SESSIONS) -- as check_types, but both sets were read above
redis.call('XLEN', K_EVENTS)

---- take them from the line

local deadline = now + math.min(claim_ttl, session_ttl) -- the visitor must claim the session by then
local score, tail = int(deadline), session_tail(now_text or int(now), false)
local places = {} -- of all who are admitted
local wanted = journal_wanted('admitted')
local named = wanted and {} -- for the journal: who is admitted, a text for each portion

local turns_text_after, popped
local field = weights ~= '' and redis.call('HGET', K_STATE, 'turns') or ''
if weights ~= '' and n == 1 then
    popped, turns_text_after = quick_turn(weights, field, waiting)
end
if not popped then
    local admit_from, take_popped, make_active = line_taker(score, tail, places, named)
    if weights == '' then
        admit_from(0, n)
    else
        turns_text_after = n <= FEW and quick_turns(weights, field, n, waiting, admit_from)
            or admit_by_weights(weights, field, n, waiting, admit_from, take_popped)
    end
    make_active()
else -- one visitor, for whom no functions need be made
    local visitor, digits = popped[1], nil
    places[1], digits = parse_place(popped[2])
    redis.call('ZADD', K_ACTIVE, score, visitor)
    redis.call('HSET', K_SESSIONS, visitor, digits .. tail)
    if named then
        named[1] = visitor
    end
end

-- admit_capacity: the capacity this admission obeyed; by rate alone, how many it made active. An audit judges `active`
-- by it after capacity was lowered, or the policy changed.
state.waiting, state.active = waiting - n, active + n
changes = { 'admitted', admitted_total + n, 'admit_capacity', policy == 'rate' and state.active
    or capacity + (called and overbook or 0) }
if budget_text then
    changes[5], changes[6] = 'budget', budget_text
elseif budget_before and budget_before ~= '' then
    changes[5], changes[6] = 'budget', '' -- it does not know of those admitted now; by rate it begins spent
end
if turns_text_after then
    changes[#changes + 1], changes[#changes + 2] = 'turns', turns_text_after
end
if called and now >= called.since then
    called.n = called.n + n
end
if counts_called then
    changes[#changes + 1], changes[#changes + 2] = 'called', called_text(called)
end
events[#events + 1] = { EVENT.admitted, runs_of(places), deadline }
commit(state, changes, events, keep)
if named then
    journal_add(wanted, state.event + 1, now, 'admitted', table.concat(named, ' '))
end
answer[AT.admitted], answer[AT.left], answer[AT.waiting], answer[AT.active] = n, left, state.waiting, state.active
answer[AT.again] = budget_wait or 0 -- until the budget allows the next admission
return answer
