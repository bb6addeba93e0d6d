-- SPDX-License-Identifier: Apache-2.0
-- Recovery: the store has lost the data of a queue, which was created again as another generation. For a while nobody
-- is admitted, and those who hold places of the lost generation get them back. Or it has lost the end of the history of
-- this generation; then places and deadlines of that come back. docs/operators/recovery.md; the fields of the state,
-- and tl:{q}:lost, which only this module writes, are in docs/contributors/wire-format.md.

local LANE, LANES, REASON, OUTCOME = defs.LANE, defs.LANES_MAX, defs.REASON, defs.OUTCOME
local int = text.int
local MIN_MS = 5000           -- also when all are back: what every worker remembers must have arrived
local ENDS_KNOWN_MS = 3600000 -- how long ends are kept, at least: later nobody knows whether a place has ended
local UNREACHED_MS = 1000     -- to look again, while no worker has come
local DROPPED_MAX = 1000      -- visitors, in one step
local HOLD_MS = 30000         -- by which each step of a restoration from the archive puts off the end of the recovery
local CHOICE_MS = 120000      -- the same by an archiver that is there: it may wait for PostgreSQL between two calls
local OVER = '0'              -- in tl:{q}:lost: the visitor of this seq has gone
-- Stages of the field `restore`: not all are back.
local RETURNS = { back = true, newer = true, asked = true, running = true }
local WINDOW = settings.list({ 'recovery_window' })
local OPENING = settings.list({ 'order', 'opens_at' })

recovery.NAMED_BY = { memory = '1', ticket = '2', operator = '3', archive = '4' }

-- How long a recovery takes, ms; 0: none begins.
function recovery.window(c) return settings.read(c, WINDOW).recovery_window end

---- what workers remember, and who comes back

local READ = { 'lost_generation', 'lost_event', 'lost_size', 'restored', 'admit_capacity', 'found_seq', 'base_ms',
    'found_event', 'recover_since', 'recover_until', 'started', 'restore', 'lost_by' }

-- Reads what the state says, once in a call, into the fields of c of these names: numbers, 0 for none, but restore and
-- lost_by. Before the first batch (started) there was no worker to whom visitors could come back, so the window until
-- recover_until has not begun to pass.
local function open(c)
    if c.window then return end
    local v = call('HMGET', c.key.state, unpack(READ))
    c.window, c.fronts = recovery.window(c), {}
    for i = 1, #READ do c[READ[i]] = tonumber(v[i]) or 0 end
    c.restore, c.lost_by = v[#READ - 1] or '', v[#READ] or ''
    if c.recover_until > 0 and c.started == 0 then c.recover_until = max(c.recover_until, c.now + c.window) end
end

local function front_of(c, lane)
    local fronts = c.fronts
    fronts[lane] = fronts[lane] or tonumber(call('HGET', c.key.state, 'front:' .. lane)) or 0
    return fronts[lane]
end

local function raise_front(c, lane, seq)
    if seq > front_of(c, lane) then
        c.fronts[lane] = seq
        state.set(c, 'front:' .. lane, seq)
    end
end

-- May the lost generation be named as this one now? While the queue recovers or shortly after its start, unless an
-- operator has decided. The latest that anybody names is the one that was there before: an old ticket, or a worker that
-- was away for long, may name an earlier one first.
local function is_open(c)
    return (c.recover_until > c.now or c.recover_until == 0 and c.window > 0
        and (c.started == 0 or c.now - c.started <= c.window)) and c.lost_by ~= recovery.NAMED_BY.operator
end

local function may_name(c, generation)
    return is_open(c) and generation > c.lost_generation and generation < c.generation
end

-- What a worker with this event tells counts from now on, and what those before told no more (remembered_at).
local function believe(c, event, size)
    state.set(c, 'lost_event', event)
    state.set(c, 'lost_size', size)
end

-- Names the lost generation. What was told of an earlier one says nothing of this.
local function name(c, generation, by)
    if c.lost_generation > 0 then
        believe(c, 0, 0)
        call('UNLINK', c.key.lost)
    end
    state.set(c, 'lost_generation', generation)
    state.set(c, 'lost_by', by)
    if c.recover_until == 0 then
        state.set(c, 'recover_until', c.now + c.window)
        state.set(c, 'recover_since', c.now)
    end
end

-- Is this the lost generation? The caller may name it, if that is still open.
local function names_lost(c, generation, by)
    open(c)
    if c.lost_generation == generation then return c.recover_until > c.now end
    if not may_name(c, generation) then return false end
    name(c, generation, by)
    c.is_named = true -- workers are to read which generation comes back: a CONFIG event
    return true
end

-- A worker remembers this lost generation up to an event. GONE where it is not the lost one: nothing of it comes back.
-- last: the last seq that it knows. c.seq_floor: where seqs go on after this batch, within which they are consecutive.
function recovery.lost(c, generation, event, last, size)
    if not names_lost(c, generation, recovery.NAMED_BY.memory) then return OUTCOME.gone, 0 end
    -- Where the clock went back, places of this generation must lie above the lost ones.
    if last >= c.seq then c.seq_floor = last + state.BASE_GAP end
    if event > c.lost_event then believe(c, event, size) end -- this worker knows more than those before
end

-- After a batch.
function recovery.raise_seq(c)
    if c.seq_floor and c.seq_floor > c.seq then state.set(c, 'seq', c.seq_floor) end
end

-- Does the archive say that the visitor of this place of the lost generation has gone?
local function is_over(c, place) return call('HGET', c.key.lost, int(place % LANE)) == OVER end

-- A worker remembers a session at this place, or, with deadline 0, that all places of the lane up to it are used up. Of
-- the present generation, only what was in the lost end of its history says anything: the latest end that any worker
-- remembers, where the expirer looks before it ends the session (keep_remembered).
function recovery.called(c, generation, event, place, deadline, session_max)
    open(c)
    if generation == c.generation then
        if c.base_ms == 0 or event <= c.found_event then return end
        if deadline <= (tonumber(call('HGET', c.key.lost, int(place))) or 0) then return end
        call('HSET', c.key.lost, int(place), int(deadline))
        call('PEXPIRE', c.key.lost, int(session_max + ENDS_KNOWN_MS))
    elseif generation ~= c.lost_generation or c.recover_until <= c.now then
        return
    elseif deadline == 0 then
        raise_front(c, floor(place / LANE), place % LANE)
    elseif event == c.lost_event and not is_over(c, place) then
        call('HSET', c.key.lost, int(place), int(deadline) .. ':' .. int(event))
    end
end

-- Until when the worker that knows most remembers a session at this place of the lost generation, or nil.
local function remembered_at(c, place)
    if c.lost_event == 0 then return nil end
    local deadline, event = match(call('HGET', c.key.lost, int(place)) or '', '^(%d+):(%d+)$')
    return tonumber(event) == c.lost_event and deadline + 0 or nil
end

-- Until when the visitor at this place of the lost generation has a session, or 0. `deadline` is what the visitor's
-- pass says, as of this event. What a worker remembers counts more, unless the pass is younger.
local function session_until(c, place, deadline, event, capacity)
    local remembered = remembered_at(c, place)
    local is_younger = event > c.lost_event
    if deadline == 0 or remembered then return max(remembered or 0, is_younger and deadline or 0) end
    local is_over = c.lost_event > 0 and not is_younger
    return not is_over and c.active < max(capacity, c.admit_capacity) and deadline or 0
end

local function has_ended_since(c, id, ms)
    local score = call('ZSCORE', c.key.ended, id)
    return score and tonumber(score) >= ms * 8
end

local function is_undrawn(c, seq)
    return c.opens_at and c.now >= c.opens_at and seq <= state.number_base(c.opens_at)
end

-- Does this place come back? Returns also the deadline of its session, or 0.
local function may_return(c, id, place, ticket, s)
    open(c)
    local lane, seq = floor(place / LANE), place % LANE
    if ticket.generation == c.generation then
        -- Only while ends are remembered: later a ticket would bring back a place that was restored and has ended. What
        -- the store knows from before the incarnation is older than the lost places: an end of then was that of an
        -- earlier place of this visitor. Where all places may come back (state.find_part), it can be that of this one.
        local in_lost_end = c.base_ms > 0 and seq > c.found_seq and seq <= (tonumber(c.base_seq) or 0)
            and c.now - c.base_ms <= ENDS_KNOWN_MS
        return in_lost_end and not has_ended_since(c, id, c.found_seq > 0 and c.base_ms or 0), ticket.deadline
    elseif not names_lost(c, ticket.generation, recovery.NAMED_BY.ticket) then
        return false, 0
    end
    raise_front(c, lane, ticket.front)
    local till = session_until(c, place, ticket.deadline, ticket.event, s.capacity)
    -- The fronts are those of the drawn. A visitor with a place from before the draw is drawn again.
    local waits = is_undrawn(c, seq) or seq > front_of(c, lane)
    return not has_ended_since(c, id, 0) and not is_over(c, place) and (till > c.now or waits), till
end

-- A visitor comes back to a place that the store lost. ticket: generation, deadline, front and event, as RESTORE has
-- them. s: settings session_ttl, session_max, session_sliding, waiting_ttl, capacity. c: with the counters seq, joined,
-- admitted and left. Returns an OUTCOME, a place and a deadline, where that is not what was asked.
function recovery.restore(c, id, place, ticket, s)
    local session = visitor.session(c, id)
    if session then return OUTCOME.active, session.place, tonumber(call('ZSCORE', c.key.active, id)) end
    local held, drawn, asked = visitor.place(c, id), c.drawn, place
    if held and held % LANE == place % LANE then return end -- also in the lane to which the operator moved the visitor
    -- The ticket is from before the draw, or a lost step; or too late for the draw.
    if held and drawn and draw.stands_at(drawn, place, held) then return OUTCOME.waiting, held, 0 end
    if drawn and drawn.phase ~= draw.CUT and place % LANE <= drawn.cut then return OUTCOME.gone, place, 0 end
    if c.opens_at and ticket.generation == c.generation and not held then
        place = draw.place_of_before(drawn, place, c.opens_at)
    end
    local returns, till = may_return(c, id, place, ticket, s)
    if not returns or call('ZCOUNT', c.key.waiting, int(place), int(place)) > 0 then return OUTCOME.gone, place, 0 end
    if held and held % LANE < place % LANE then return OUTCOME.waiting, held, 0 end -- an older place
    if held then visitor.give_up(c, id, held) end
    local is_active = till > c.now
    if is_active then
        local deadline = min(till, c.now + (s.session_sliding and s.session_max or s.session_ttl))
        visitor.restore(c, id, place,
            { place = place, admitted = min(c.now, deadline - s.session_ttl), claimed = true }, deadline)
        if c.active > c.admit_capacity then state.set(c, 'admit_capacity', c.active) end
    else
        visitor.restore(c, id, place)
        presence.mark(c, place % LANE, 1, s.waiting_ttl)
    end
    state.count(c, 'restored', 1)
    if place ~= asked then return is_active and OUTCOME.active or OUTCOME.waiting, place, till end
end

-- The first batch of the queue: there is a worker from now on, to whom visitors can come back, and the window passes.
function recovery.note_start(c)
    open(c)
    if c.started > 0 then return end
    state.set(c, 'started', c.now)
    if c.recover_until > 0 then state.set(c, 'recover_until', c.recover_until) end
end

---- the admitter: nobody is admitted while the queue recovers

-- A step while the queue recovers. At its end, those who came back to a place that had been called before lose
-- it, at most `most` in a step. Without a worker, to which visitors can come back, it goes on. Returns after how many
-- ms to call again.
function recovery.step(c, most)
    open(c)
    if c.started == 0 then return UNREACHED_MS end
    local till = c.recover_until
    local is_restored = sub(c.restore, 1, 7) ~= 'running' -- from the archive, as far as it could be
    if is_restored and c.lost_size > 0 and c.restored >= c.lost_size then -- everyone a worker remembers is back
        till = min(till, (c.recover_since > 0 and c.recover_since or c.now) + MIN_MS)
    end
    if till > c.now then return till - c.now end
    state.check(c, { 'waiting', 'active', 'ended', 'events' })
    -- Places from before a draw are not among them: the fronts are those of the drawn.
    local s, ids, spans = settings.read(c, OPENING), {}, {}
    local undrawn = s.order == 'draw' and c.now >= s.opens_at and state.number_base(s.opens_at) or 0
    for lane = 0, LANES - 1 do
        local front, room = tonumber(call('HGET', c.key.state, 'front:' .. lane)), min(most, DROPPED_MAX) - #ids
        local found = front and room > 0 and call('ZRANGE', c.key.waiting, int(lane * LANE + undrawn),
            int(lane * LANE + front), 'BYSCORE', 'LIMIT', 0, room, 'WITHSCORES') or {}
        for i = 1, #found, 2 do ids[#ids + 1], spans[#spans + 1], spans[#spans + 2] = found[i], found[i + 1] + 0, 1 end
    end
    if #ids > 0 then
        c.expired = text.counter(call('HGET', c.key.state, 'expired'))
        visitor.drop(c, ids, spans, REASON.expired)
        state.commit(c)
    else
        if c.lost_generation ~= c.generation then call('UNLINK', c.key.lost) end
        -- What the archive has not brought back by now stays away, also after the next loss.
        if RETURNS[match(c.restore, '^%a+')] then state.set(c, 'restore', 'none:ended') end
        state.set(c, 'recover_until', 0)
        state.commit_config(c)
    end
    return 1
end

-- The caller remembers another generation of this queue. If no one has named it or a later one, recovery begins: nobody
-- is admitted before those who were there. Returns whether it does.
function recovery.begins(c, known)
    open(c)
    if not may_name(c, known) then return false end
    state.check(c, { 'events' })
    name(c, known, recovery.NAMED_BY.memory)
    state.commit_config(c)
    return true
end

---- the archive: it brings back whom it knows (archiver/restore.lua)

-- Is there a recovery, or may one begin, in which the archive may name the lost generation? Reads the state into c.
function recovery.is_open(c)
    open(c)
    return is_open(c)
end

function recovery.recovers(c)
    open(c)
    return c.recover_until > c.now
end

-- Was the queue deleted by an operator and created again? Then nobody names a lost generation.
function recovery.is_retired(c)
    open(c)
    return c.lost_generation == c.generation and call('EXISTS', c.key.retired) == 1
end

-- Makes the queue recover, if it does not yet, and lets anybody name the lost generation.
function recovery.reopen(c)
    open(c)
    if c.recover_until <= c.now then
        state.set(c, 'recover_until', c.now + max(c.window, HOLD_MS))
        state.set(c, 'recover_since', c.now)
    end
    if c.lost_generation == c.generation then state.set(c, 'lost_generation', 0) end
    state.set(c, 'lost_by', '')
end

-- The line that is here was lost before, as a whole, and this is the generation that came then. What is here goes, as
-- if the store had lost it now, and the archive is asked for that. No commit: nothing is left to tell.
function recovery.start_over(c, generation)
    local gone, window = { c.key.record }, recovery.window(c)
    for _, each in ipairs(defs.KEY) do
        local goes = each.whose == 'line' and each.name ~= 'config' and each.name ~= 'ingest' or each.whose == 'more'
        if goes then gone[#gone + 1] = c.key[each.name] end
    end
    call('UNLINK', unpack(gone))
    local fields = state.first_numbers(c, generation)
    fields.restore, fields.lost_generation, fields.lost_by = 'asked', int(generation), recovery.NAMED_BY.archive
    fields.recover_since, fields.recover_until = int(c.now), int(c.now + max(window, HOLD_MS))
    state.create(c, fields)
end

-- The archive knows this generation, up to the seq `last`. Returns whether that is the lost one.
function recovery.known(c, generation, last)
    open(c)
    if may_name(c, generation) then name(c, generation, recovery.NAMED_BY.archive) end
    if last >= c.seq then state.set(c, 'seq', last + state.BASE_GAP) end -- the clock went back, as in recovery.lost
    return c.lost_generation == generation and c.recover_until > c.now
end

-- Nobody is admitted before the archive has brought back everyone, while it goes on.
function recovery.hold(c)
    open(c)
    state.set(c, 'recover_until', max(c.recover_until, c.now + HOLD_MS))
end

-- The same while an operator is to choose, unless that has ended it.
function recovery.hold_on(c)
    if recovery.recovers(c) and c.recover_until < c.now + CHOICE_MS / 2 then
        state.set(c, 'recover_until', c.now + CHOICE_MS)
    end
end

-- After how many ms the archive may begin: what workers remember comes first, because they may know more.
function recovery.begins_after(c)
    open(c)
    return max(0, c.recover_since + min(MIN_MS, c.window) - c.now)
end

-- The archive has brought back everyone; fronts: lane, seq, ... as workers tell them.
function recovery.release(c, fronts)
    open(c)
    for i = 1, #fronts, 2 do raise_front(c, fronts[i] + 0, fronts[i + 1] + 0) end
    if c.recover_until <= c.now + HOLD_MS then
        state.set(c, 'recover_until', max(c.now + 1, c.recover_since + c.window))
    end
end

-- There is nothing to wait for: the recovery ends.
function recovery.finish(c)
    open(c)
    state.set(c, 'recover_until', min(c.recover_until, c.now + 1))
end

-- Until when there is a session at this place of the lost generation; 0: the visitor waits there; nil: it is over.
-- deadline, event: as the archive knows it, or 0, and as of when. A worker that knows more is right.
function recovery.stands(c, place, deadline, event)
    local till = deadline
    if c.lost_event > event then till = remembered_at(c, place) or 0 end
    if till > c.now then return till end
    local seq = place % LANE
    return deadline == 0 and (is_undrawn(c, seq) or seq > front_of(c, floor(place / LANE))) and 0 or nil
end

-- The archive knows that the visitors of these places have gone. Of another lane, tickets from before a move name them,
-- too.
function recovery.note_over(c, places)
    local list = {}
    for i = 1, #places do list[2 * i - 1], list[2 * i] = int(places[i] % LANE), OVER end
    if #list > 0 then call('HSET', c.key.lost, unpack(list)) end
end

-- An operator moves the visitor at this place to another lane: that is later than what the archive knows.
function recovery.note_move(c, place)
    if not recovery.recovers(c) then return end
    call('HSET', c.key.lost, 'moved:' .. int(place % LANE), 1)
    if c.lost_generation == c.generation then call('PEXPIRE', c.key.lost, int(ENDS_KNOWN_MS), 'NX') end
end

function recovery.was_moved(c, place) return call('HGET', c.key.lost, 'moved:' .. int(place % LANE)) == '1' end

-- Until when a worker remembers a session at this place of the present generation, or 0.
function recovery.remembered(c, place) return tonumber(call('HGET', c.key.lost, int(place))) or 0 end

-- What comes back is of the present generation: nobody names another one. event, seq: the last that the archive knows;
-- where the clock went back, numbers go on behind them.
function recovery.keep_present(c, event, seq)
    open(c)
    state.set(c, 'lost_generation', c.generation)
    state.set(c, 'lost_by', recovery.NAMED_BY.operator)
    if event >= c.event then c.event = event + state.BASE_GAP end
    if seq >= c.seq then state.set(c, 'seq', seq + state.BASE_GAP) end
end

---- the expirer: sessions whose last claim or renewal the store has lost with the end of its history

-- Of visitors whose sessions are due, lets those go on whose later end a worker remembers; no session gets more time
-- than it could have had. Returns the others. s: settings session_ttl, claim_ttl, session_max, session_sliding.
function recovery.keep_remembered(c, due, s)
    local ended = {}
    for _, id in ipairs(due) do
        local session = visitor.session(c, id)
        local remembered = session and tonumber(call('HGET', c.key.lost, int(session.place)))
        local till = 0
        if remembered then
            call('HDEL', c.key.lost, int(session.place))
            till = min(remembered, session.admitted + (s.session_sliding and s.session_max or s.session_ttl))
        end
        if till > 0 and till > tonumber(call('ZSCORE', c.key.active, id)) then
            local is_extension = till == session.admitted + 2 * s.claim_ttl and 2 * s.claim_ttl < s.session_ttl
            if session.claimed or not is_extension then
                overbook.note_end(c, id, session, REASON.completed)
                session.claimed = true
            end
            visitor.prolong(c, id, session, till, true)
        else
            ended[#ended + 1] = id
        end
    end
    return ended
end
