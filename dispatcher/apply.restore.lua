-- SPDX-License-Identifier: Apache-2.0
-- RESTORE, LOST and CALLED: places of the lost generation, or of the lost end of this one, come back.

local restored_sessions = {} -- deadline -> places, of this call
local recovery_changes = {} -- fields of the recovery that changed in this call, by name
local seq_floor = 0 -- where seqs go on after this batch, within which they are consecutive

local function raise_seq()
    state.seq = math.max(state.seq, seq_floor)
end

-- The first batch of the queue: there is a worker from now on, to whom visitors can come back, and the window passes.
local function note_start()
    local started, recover_until = unpack(redis.call('HMGET', K_STATE, 'started', 'recover_until'))
    if started then
        return
    end
    recovery_changes.started = now
    local till = recovery_end(recovery_changes.recover_until or recover_until, nil, now)
    if till > 0 then
        recovery_changes.recover_until = till
    end
end

local restore, lost, called

-- Makes these three functions. Few calls need them, and making them takes longer than a small batch.
local load_restore = restores and function()

local recovery -- what the state says of the recovery, once it is read

local function read_recovery()
    if recovery then
        return recovery
    end
    local v = redis.call('HMGET', K_STATE, 'lost_generation', 'lost_by', 'lost_event', 'lost_size', 'recover_until',
        'started', 'restored', 'found_seq', 'base_seq', 'admit_capacity', 'base_ms', 'found_event')
    recovery = { generation = tonumber(v[1]) or 0, by = v[2] or '', event = tonumber(v[3]) or 0,
        size = tonumber(v[4]) or 0, till = recovery_end(v[5], v[6], now), started = tonumber(v[6]) or now,
        restored = tonumber(v[7]) or 0, found_seq = tonumber(v[8]), base_seq = tonumber(v[9]) or 0,
        admit_capacity = tonumber(v[10]) or 0, base_ms = tonumber(v[11]) or 0, found_event = tonumber(v[12]),
        window = recovery_window(), fronts = {} }
    return recovery
end

local function set_recovery(name, field, value)
    recovery[name], recovery_changes[field] = value, value
end

local function front_of(lane)
    local front = recovery.fronts[lane]
    if not front then
        front = tonumber(redis.call('HGET', K_STATE, 'front:' .. lane)) or 0
        recovery.fronts[lane] = front
    end
    return front
end

local function raise_front(lane, seq)
    if seq > front_of(lane) then
        recovery.fronts[lane], recovery_changes['front:' .. lane] = seq, seq
    end
end

-- Is this the lost generation? Who asks may name it, if that is still open.
local function names_lost(generation, by)
    local r = read_recovery()
    if r.generation == generation then
        return r.till > now
    end
    if generation >= state.generation or not may_name_lost(r, generation, now) then
        return false
    elseif r.generation > 0 then -- what workers told of an earlier one says nothing of this
        set_recovery('event', 'lost_event', 0)
        set_recovery('size', 'lost_size', 0)
        redis.call('UNLINK', K_LOST)
    end
    set_recovery('generation', 'lost_generation', generation)
    set_recovery('by', 'lost_by', by)
    if r.till == 0 then
        set_recovery('till', 'recover_until', now + r.window)
        recovery_changes.recover_since = now
    end
    return true
end

---- what workers remember

-- GONE where it is not the lost generation: nothing of it comes back.
lost = function(index, at)
    local generation, event, last, size = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]),
        tonumber(ARGV[at + 3])
    if not names_lost(generation, NAMED_BY.memory) then
        add_exception(exceptions, index, OUTCOME.gone, 0, 0)
        return
    end
    if last >= state.seq then -- the clock went back: places of this generation must lie above the lost ones
        seq_floor = last + BASE_GAP
    end
    if event > recovery.event then -- this worker knows more than those before
        set_recovery('event', 'lost_event', event)
        set_recovery('size', 'lost_size', size)
        redis.call('UNLINK', K_LOST)
    end
end

-- A worker remembers this end of a session of the present generation, as of an event in the lost end of its history.
-- The latest that any remembers counts. The expirer looks here before it ends the session (expire.remembered.lua).
local function remember_session(event, place, deadline)
    local found = read_recovery().found_event
    if not found or event <= found or deadline <= (tonumber(redis.call('HGET', K_LOST, int(place)) or '') or 0) then
        return
    end
    redis.call('HSET', K_LOST, int(place), int(deadline))
    redis.call('PEXPIRE', K_LOST, int(settings.session_max + ENDED_KEPT_MS))
end

-- deadline 0: all places of the lane up to this one are used up; else there is a session at this place.
called = function(at)
    local generation, event, place, deadline = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]),
        tonumber(ARGV[at + 3])
    local r = read_recovery()
    if generation == state.generation then
        remember_session(event, place, deadline)
    elseif generation ~= r.generation or r.till <= now then
        return
    elseif deadline == 0 then
        raise_front(math.floor(place / LANE), place % LANE)
    elseif event == r.event then
        redis.call('HSET', K_LOST, int(place), int(deadline))
    end
end

---- who comes back

local function is_taken(place)
    local digits = int(place)
    return redis.call('ZCOUNT', K_WAITING, digits, digits) > 0
end

-- Until when the visitor at this place of the lost generation has a session, or 0. `deadline` is what the visitor's
-- pass says, as of this event. What a worker remembers counts more, unless the pass is younger.
local function session_until(place, deadline, event)
    local remembered = recovery.event > 0 and tonumber(redis.call('HGET', K_LOST, int(place)))
    if deadline == 0 or remembered then
        return math.max(remembered or 0, event > recovery.event and deadline or 0)
    end
    local is_over = recovery.event > 0 and event <= recovery.event
    local capacity = tonumber(redis.call('HGET', K_CONFIG, 'capacity')) or 0
    return not is_over and state.active < math.max(capacity, recovery.admit_capacity) and deadline or 0
end

local function restore_session(visitor, place, deadline)
    local longest = settings.sliding and settings.session_max or settings.session_ttl
    deadline = math.min(deadline, now + longest)
    redis.call('ZADD', K_ACTIVE, int(deadline), visitor)
    redis.call('HSET', K_SESSIONS, visitor,
        int(place) .. session_tail(int(math.min(now, deadline - settings.session_ttl)), true))
    state.active = state.active + 1
    totals.admitted = totals.admitted + 1
    local places = restored_sessions[deadline] or {}
    restored_sessions[deadline], places[#places + 1] = places, place
    if state.active > recovery.admit_capacity then
        set_recovery('admit_capacity', 'admit_capacity', state.active)
    end
end

local function restore_waiting(visitor, place)
    redis.call('ZADD', K_WAITING, int(place), visitor)
    state.waiting = state.waiting + 1
    add_joined(place, 1)
    mark_seen(place % LANE, 1)
end

-- The visitor joined again meanwhile, at `held`: gives that place up.
local function give_up(visitor, held)
    redis.call('ZREM', K_WAITING, visitor)
    state.waiting, totals.left = state.waiting - 1, totals.left + 1
    removed[#removed + 1] = held
end

-- Was this place of the present generation in the lost end of its history? Only while ends are remembered: later a
-- ticket would bring back a place that was restored and has ended.
local function in_lost_end(seq)
    local r = read_recovery()
    return r.found_seq and seq > r.found_seq and seq <= r.base_seq and now - r.base_ms <= ENDED_KEPT_MS
end

-- Does this place come back? Returns also the deadline of its session, or 0.
local function may_return(visitor, place, generation, deadline, front, event)
    local lane, seq = math.floor(place / LANE), place % LANE
    if generation == state.generation then
        -- What the store knows from before the incarnation is older than the lost places: an end of then was that of an
        -- earlier place of this visitor.
        return in_lost_end(seq) and not has_ended_since(visitor, recovery.base_ms), deadline
    elseif not names_lost(generation, NAMED_BY.ticket) then
        return false
    end
    raise_front(lane, front)
    local till = session_until(place, deadline, event)
    -- The fronts are those of the drawn. Who comes with a place of before the draw is drawn again.
    local is_undrawn = DRAW.opens_at and now >= DRAW.opens_at and seq <= number_base(DRAW.opens_at)
    return not has_ended_since(visitor, 0) and (till > now or is_undrawn or seq > front_of(lane)), till
end

restore = function(index, at)
    local visitor, place, generation, deadline, front, event = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]),
        tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
    local session = read_session(visitor)
    if session then
        add_exception(exceptions, index, OUTCOME.active, session, tonumber(redis.call('ZSCORE', K_ACTIVE, visitor)))
        return
    end
    local held = tonumber(redis.call('ZSCORE', K_WAITING, visitor))
    if held and held % LANE == place % LANE then -- also in the lane to which the operator moved the visitor
        return
    end
    local draw = DRAW.present
    if held and draw and DRAW.stands_at(draw, place, held) then -- the ticket is from before the draw, or a lost step
        add_exception(exceptions, index, OUTCOME.waiting, held, 0)
        return
    elseif draw and draw.phase ~= DRAW.cut and place % LANE <= draw.cut then -- too late for the draw
        add_exception(exceptions, index, OUTCOME.gone, place, 0)
        return
    end
    local asked = place
    if DRAW.opens_at and generation == state.generation and not held then
        place = DRAW.place_of_before(draw, place)
    end
    local returns, till = may_return(visitor, place, generation, deadline, front, event)
    if not returns or is_taken(place) then
        add_exception(exceptions, index, OUTCOME.gone, place, 0)
        return
    elseif held and held % LANE < place % LANE then -- an older place
        add_exception(exceptions, index, OUTCOME.waiting, held, 0)
        return
    elseif held then
        give_up(visitor, held)
    end
    if till > now then
        restore_session(visitor, place, till)
    else
        restore_waiting(visitor, place)
    end
    if place ~= asked then
        add_exception(exceptions, index, till > now and OUTCOME.active or OUTCOME.waiting, place, till)
    end
    totals.joined = totals.joined + 1
    set_recovery('restored', 'restored', read_recovery().restored + 1)
end

end
