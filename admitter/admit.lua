-- admit: calls the next visitors while there is capacity left.
-- Flags: allow-oom
-- Parts: prelude.records prelude.runs prelude.row prelude.recovery prelude.budget prelude.draw prelude.capacity prelude.called prelude.journal admit.recovery admit.lanes admit.called
--
-- ARGV     1 most to admit in this step   2 about how many events to keep
--          3 generation of the queue when the caller last called, 0 or missing: not known
--          4 Redis time ms as the caller expects it, by an earlier answer and its own monotonic clock; 0 or missing: not
--            known. Tells the policies by rate that Redis's clock has jumped forward
--          5 by how many ms it jumped forward before, as the caller saw, and may not have told for this queue; 0 or
--            missing: it did not   6 Redis time ms just after the last of these jumps
-- Returns  { admitted, how many more may be admitted now, still waiting, Redis time ms, ms after which to call again (0:
--            no need), generation, base_seq, draw: ANNOUNCE its hash, or HOLD it, else 0; opens_at of the draw, 1 if the
--            capacity is steered (adapt.lua) else 0, 1 if the queue is overbooked else 0; for reports: capacity, active,
--            how many may be active (0: any number), state of the queue }
-- Errors   NOQUEUE  the queue does not exist
--          POLICY   a policy this version does not know, or one by rate without a rate
--
-- Invariants: by counter, no admission takes active above capacity plus overbook, and no more than the capacity have
-- claimed (prelude.called.lua); by rate, no window of rate_every holds more than
-- rate_admit + rate_burst admissions, and a lump begins rate_every after the last step of the one before
-- (prelude.budget.lua); only the modes open and draining admit, between opens_at and, with at_close=stop, closes_at;
-- visitors are taken from the front of their lanes, so no visitor passes another in the same lane, and between lanes by
-- their order or weights (admit.lanes.lua); state.waiting and state.active are the sizes of the sets. When they were not, because a set was lost or changed by hand, the step
-- only writes them again. Work is bounded by ARGV[1].
local most, keep = tonumber(ARGV[1]), ARGV[2]

local state, admitted_total, recover_until, budget_before, called_before, journal = open_state('admitted',
    'recover_until', 'budget', 'called', 'journal')
if not state then
    return no_queue()
end
-- What only some queues need is read where they need it: each field costs a queue without it 1 % of a step.
local c = redis.call('HMGET', K_CONFIG, 'policy', 'capacity', 'claim_ttl', 'session_ttl', 'opens_at', 'paused', 'mode',
    'closes_at', 'opening', 'lane_weights', 'capacity_mode', 'overbook')
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
local overbook = policy ~= 'rate' and tonumber(c[12] or '') or 0
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

-- What the script returns. again_ms: after how many ms to call again; 0: no need.
local function result(admitted, left, again_ms)
    return { admitted, left, waiting, now, again_ms, int(state.generation), state.base_seq, draw_wanted, int(opens_at),
        is_steered and 1 or 0, counts_called and 1 or 0, int(capacity), active,
        policy == 'rate' and 0 or int(capacity + overbook), state_name }
end

-- The sets are right and the state is wrong: visitors who are missing have ended, those too many have joined. Readers
-- find that their line has other sizes.
local function count_again()
    check_types()
    local joined, expired = unpack(redis.call('HMGET', K_STATE, 'joined', 'expired'))
    local missing = state.waiting + state.active - waiting - active
    state.waiting, state.active = waiting, active
    commit(state, { 'joined', tonumber(joined) + math.max(0, -missing), 'expired',
        tonumber(expired) + math.max(0, missing), 'called', '' }, {}, keep)
end

if waiting ~= state.waiting or active ~= state.active then
    count_again()
    return result(0, 0, 1)
end
local known = tonumber(ARGV[3] or 0)
if recover_until and recover_until ~= '0' then
    load_recovery()
    state_name = 'recovering'
    return result(0, 0, recover(state, now, tonumber(recover_until), most, keep))
elseif known > 0 and known < state.generation then
    load_recovery()
    if begins_recovery(state, now, known, keep) then
        return result(0, 0, 1000)
    end
end

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
        held = grant_held(state, called, capacity, now, session_ttl, most, events)
    end
end

---- policies: how many more each of them admits now. Where both apply to a queue, the smallest number counts.

local rule, budget, keep_budget -- of the policies by rate

local function left_by_counter()
    if called and overbook > 0 and now >= called.since then
        return overbooked_left(called, capacity, overbook, active, held)
    end
    return math.max(0, capacity - active)
end

local function left_by_rate()
    rule = rate_rule(unpack(redis.call('HMGET', K_CONFIG, 'rate_admit', 'rate_every', 'rate_burst', 'rate_shape')))
    if not rule then
        return nil
    end
    local expected = tonumber(ARGV[4] or 0)
    local clock = { ahead = expected > 0 and now - expected or 0, jumped = tonumber(ARGV[5] or 0),
        jumped_to = tonumber(ARGV[6] or 0) }
    budget, keep_budget = budget_at(rule, budget_before, now, clock, state.base_seq)
    return budget_left(budget, rule, now)
end

local function left_by_both()
    local by_rate = left_by_rate()
    return by_rate and math.min(by_rate, left_by_counter())
end

local LEFT_BY_POLICY = { counter = left_by_counter, rate = left_by_rate, both = left_by_both }
local left_by_policy = LEFT_BY_POLICY[policy]
local left = left_by_policy and left_by_policy()
if not left then
    return redis.error_reply('POLICY ' .. (left_by_policy and 'the queue has no rate: set rate_admit and rate_every'
        or 'this version admits by counter, rate and both only'))
end

-- After how many ms the budget allows the next admission; 0: it does, or none is needed.
local function wait_for_budget()
    return budget and budget_wait(budget, rule, now) or 0
end

---- how many are admitted in this step

local opens_in = math.max(0, opens_at - now)
local stopped = paused or mode ~= 'open' and mode ~= 'draining' -- also in a mode of a later version
local closed = stopped or opens_in > 0 or stops_at > 0 and now >= stops_at or undrawn
local n = closed and 0 or math.min(left, most, waiting)
left = left - n
if budget and not closed then
    local lump_ends = rule.lumps and not (n == most and left > 0) -- else it goes on with the next step
    if n > 0 or (lump_ends and budget.used > 0) then
        spend_budget(budget, rule, now, n, lump_ends)
        left, keep_budget = math.min(left, budget_left(budget, rule, now)), true
    end
end
local changes = {}
if n == 0 then
    if keep_budget then
        changes = { 'budget', budget_text(budget) }
    end
    if counts_called and called_text(called) ~= called_before then
        changes[#changes + 1], changes[#changes + 2] = 'called', called_text(called)
    end
    if #changes > 0 then
        check_types()
        commit(state, changes, events, keep)
    end
    if closed then
        return result(0, 0, opens_in)
    end
    return result(0, left, wait_for_budget())
end
redis.call('HLEN', K_SESSIONS) -- as check_types, but both sets were read above
redis.call('XLEN', K_EVENTS)

---- take them from the line, in portions

local PORTION = 250         -- visitors in one call of Redis; unpack is limited by Lua's stack
local LOOK_FOR_ROW_MIN = 50 -- with fewer visitors, looking for a row costs more than it saves

local deadline = now + math.min(claim_ttl, session_ttl) -- the visitor must claim the session by then
local score, tail = int(deadline), session_tail(now, false)
local places = {} -- of all who are admitted
local texts = {}  -- of the sessions of one portion
local named = journal_wants(journal, 'admitted') and {} -- for the journal: who is admitted, a text for each portion

local function place_at(rank)
    return tonumber(redis.call('ZRANGE', K_WAITING, rank, rank, 'WITHSCORES')[2])
end

-- Notes visitors who were taken, given with their places in turn. Returns them, and for each the text of the session.
local function note_popped(popped)
    local visitors, nth = {}, #places
    for i = 1, #popped / 2 do
        local place, digits = parse_place(popped[2 * i])
        visitors[i], texts[i], places[nth + i] = popped[2 * i - 1], digits .. tail, place
    end
    return visitors, texts
end

-- Takes `count` visitors from this rank of the line on. Returns them, and for each the text of the session.
--
-- A fast path: most of the time they stand in a row, without gaps, as their first and last place tell. Then Redis need
-- not print their places, nor Lua parse them. This saves 17 % of a step that admits 1,400.
local function take(rank, count)
    local last = rank + count - 1
    local first = count >= LOOK_FOR_ROW_MIN and place_at(rank)
    if first and place_at(last) - first == count - 1 then
        local visitors = redis.call('ZRANGE', K_WAITING, rank, last)
        redis.call('ZREMRANGEBYRANK', K_WAITING, rank, last)
        local nth = #places
        for i = 1, count do
            places[nth + i] = first + i - 1
        end
        write_row(texts, first, count, tail)
        return visitors, texts
    end
    if rank == 0 then
        return note_popped(redis.call('ZPOPMIN', K_WAITING, count))
    end
    local popped = redis.call('ZRANGE', K_WAITING, rank, last, 'WITHSCORES')
    redis.call('ZREMRANGEBYRANK', K_WAITING, rank, last)
    return note_popped(popped)
end

local function make_active(visitors, sessions)
    local scored, fields = {}, {} -- deadline, visitor, ... and visitor, session, ...
    for i = 1, #visitors do
        local visitor = visitors[i]
        scored[2 * i - 1], scored[2 * i] = score, visitor
        fields[2 * i - 1], fields[2 * i] = visitor, sessions[i]
    end
    redis.call('ZADD', K_ACTIVE, unpack(scored))
    redis.call('HSET', K_SESSIONS, unpack(fields))
    if named then
        named[#named + 1] = table.concat(visitors, ' ')
    end
end

-- Admits `count` visitors from this rank of the line on.
local function admit_from(rank, count)
    for done = 0, count - 1, PORTION do
        make_active(take(rank, math.min(PORTION, count - done)))
    end
end

local turns = nil
if weights ~= '' then
    load_lanes()
    turns = lane_turns(weights, redis.call('HGET', K_STATE, 'turns'))
end
if turns and n == 1 then
    make_active(note_popped(pop_next(turns) or redis.call('ZPOPMIN', K_WAITING)))
elseif turns then
    admit_by_turns(turns, n, waiting, admit_from)
else
    admit_from(0, n)
end

-- admit_capacity: the capacity this admission obeyed; by rate alone, how many it made active. An audit judges `active`
-- by it after capacity was lowered, or the policy changed.
state.waiting, state.active = waiting - n, active + n
changes = { 'admitted', admitted_total + n, 'admit_capacity', policy == 'rate' and state.active
    or capacity + (called and overbook or 0) }
if budget then
    changes[5], changes[6] = 'budget', budget_text(budget)
elseif budget_before and budget_before ~= '' then
    changes[5], changes[6] = 'budget', '' -- it does not know of those admitted now; by rate it begins spent
end
if turns then
    changes[#changes + 1], changes[#changes + 2] = 'turns', turns_text(turns)
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
    journal_add(state, journal, 0, now, 'admitted', table.concat(named, ' '))
end
waiting, active = state.waiting, state.active
return result(n, left, wait_for_budget())
