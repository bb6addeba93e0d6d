-- SPDX-License-Identifier: Apache-2.0
-- admit: calls the next visitors while there is capacity left.
-- args     1 most to admit in this step   2 keep
--          3 generation of the queue when the caller last called, 0 or missing: not known
--          4 Redis time ms as the caller expects it, by an earlier answer and its own monotonic clock; 0 or missing:
--            not known. Tells the policies by rate that Redis's clock has jumped forward
--          5 by how many ms it jumped forward before, as the caller saw, and may not have told for this queue; 0 or
--            missing: it did not   6 Redis time ms just after the last of these jumps
-- returns  ADMIT
-- fails    POLICY   a policy this version does not know, or one by rate without a rate
--
-- Invariants: by counter, no admission takes active above capacity plus overbook; by rate, no window of rate.every
-- holds more than rate.admit + rate.burst admissions, and a batch begins rate.every after the last step of the one
-- before; only the modes open and draining admit, between opens_at and, with after_close=stop, closes_at; no visitor
-- passes another in the same lane. A step that finds wrong sizes only corrects them. Work is bounded by args[1].

local R = defs.ADMIT
local FIELDS = state.fields({ 'admitted' }, { 'recover_until', 'budget', 'called' })
local MORE_FIELDS = state.fields({ 'admitted' },
    { 'recover_until', 'budget', 'called', 'turns', 'capacity_now', 'draw', 'draw_hash' })
local SETTINGS = settings.list({ 'policy', 'capacity', 'claim_ttl', 'session_ttl', 'opens_at', 'mode',
    'closes_at', 'order', 'lane_weights', 'capacity.min', 'overbook' })
local LOOKS_AT, WRITES = { 'waiting', 'active' }, { 'events', 'sessions' }

-- The budget of a policy by rate; nil for another policy.
local function open_budget(c, s, args)
    if s.policy ~= 'rate' and s.policy ~= 'both' then return nil end
    local expected = tonumber(args[4]) or 0
    local known = { ahead = expected > 0 and c.now - expected or 0, jumped = tonumber(args[5]) or 0,
        jumped_to = tonumber(args[6]) or 0 }
    local v = call('HMGET', c.key.config, 'rate.admit', 'rate.every', 'rate.burst', 'rate.shape')
    return rate.open(c, v, known) or state.fail('POLICY', 'the queue has no rate: set rate.admit and rate.every')
end

-- How many may be called for the capacity.
local function room(c, s, capacity)
    if s.policy == 'rate' then return 1 / 0 end
    local o = c.overbook
    if o and s.overbook > 0 and c.now >= o.since then return overbook.left(c, capacity, s.overbook) end
    return c.active < capacity and capacity - c.active or 0
end

-- Calls n visitors, and notes what the next step must know. admit_capacity: the capacity this admission obeyed; by rate
-- alone, how many it made active. An audit judges `active` by it after capacity was lowered, or the policy changed.
local function admit(c, s, n, capacity)
    local wanted = journal.wanted(c, 'admitted')
    c.named = wanted and {}
    lanes.admit(c, s.lane_weights, n, c.now + min(s.claim_ttl, s.session_ttl)) -- by then it must be claimed
    local o = c.overbook
    if o and c.now >= o.since then o.n = o.n + n end
    state.set(c, 'admit_capacity', s.policy == 'rate' and c.active or o and capacity + s.overbook or capacity)
    return wanted
end

entry('admit', { 'allow-oom' }, function(keys, args)
    local most, c = args[1] + 0, state.begin(keys, args[2])
    local s = settings.read(c, SETTINGS)
    local is_auto, has_draw = s['capacity.min'] > 0, s.order == 'draw' and s.opens_at > 0
    if s.policy == 'rate' then s.overbook = 0 end
    state.open(c, (is_auto or has_draw or s.lane_weights ~= '') and MORE_FIELDS or FIELDS)
    local is_overbooked = s.overbook > 0 or (c.called or '') ~= ''
    state.check(c, LOOKS_AT)
    local capacity = settings.capacity(s, c.capacity_now)
    local draw_wanted, is_undrawn = defs.WANTED.nothing, false
    if has_draw then draw_wanted, is_undrawn = draw.wanted(c, s.opens_at) end
    -- What holds the queue, for reports; "open" else.
    local name = s.mode ~= 'open' and s.mode or c.now < s.opens_at and 'scheduled'
        or is_undrawn and 'drawing' or s.closes_at > 0 and c.now >= s.closes_at and 'over' or 'open'
    -- In the order of ADMIT, which takes less time than by names.
    local r = { 0, 0, c.waiting, c.now, 0, c.generation, c.base_seq, draw_wanted, s.opens_at, is_auto and 1 or 0,
        is_overbooked and 1 or 0, capacity, c.active, s.policy == 'rate' and 0 or capacity + s.overbook, name }

    if c.is_corrected then
        state.check(c, WRITES)
        state.commit(c)
        r[R.again] = 1
        return r
    end
    local known, till = tonumber(args[3]) or 0, c.recover_until
    if till and till ~= '0' then
        r[R.state], r[R.again] = 'recovering', recovery.step(c, most)
        return r
    elseif known > 0 and known < c.generation and recovery.begins(c, known) then
        r[R.again] = 1000
        return r
    end
    if s.policy ~= 'counter' and s.policy ~= 'rate' and s.policy ~= 'both' then
        state.fail('POLICY', 'this version admits by counter, rate and both only')
    end

    -- Visitors who came while the capacity was claimed go first.
    local budget = open_budget(c, s, args)
    if is_overbooked then
        overbook.open_admit(c, s.overbook, capacity)
        overbook.grant(c, capacity, s.session_ttl, most)
    end
    -- Where several policies apply to a queue, the smallest number counts.
    local left = min(room(c, s, capacity), budget and rate.left(budget, c.now) or 1 / 0)
    local closed = s.mode ~= 'open' and s.mode ~= 'draining' or c.now < s.opens_at or is_undrawn
        or s.closes_at > 0 and c.now >= s.closes_at and call('HGET', c.key.config, 'after_close') == 'stop'
    local n = closed and 0 or min(left, most, c.waiting)
    left = left - n
    if budget then
        local batch_ends = budget.rule.batches and not (n == most and left > 0) -- else it goes on with the next step
        if not closed and (n > 0 or batch_ends and budget.used > 0) then
            if rate.spend(budget, c.now, n, batch_ends) then left = min(left, rate.left(budget, c.now)) end
            budget.record = rate.text(budget)
        end
        if budget.record then state.set(c, 'budget', budget.record) end
    elseif n > 0 and (c.budget or '') ~= '' then
        state.set(c, 'budget', '') -- it does not know of those admitted now; by rate it begins spent
    end
    if n > 0 or next(c.changes) then state.check(c, WRITES) end
    local wanted = n > 0 and admit(c, s, n, capacity)
    if is_overbooked then overbook.save(c) end
    state.commit(c)
    if wanted then journal.add(c, wanted, 'admitted', concat(c.named, ' ')) end
    if closed then
        r[R.again] = max(0, s.opens_at - c.now)
    else
        r[R.admitted], r[R.left], r[R.waiting], r[R.active] = n, left, c.waiting, c.active
        r[R.again] = budget and rate.wait(budget, c.now) or 0 -- until the budget allows the next admission
    end
    return r
end)
