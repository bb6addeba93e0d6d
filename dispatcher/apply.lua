-- SPDX-License-Identifier: Apache-2.0
-- apply: batches of the ingest stream change the line, exactly once and in stream order.
--
-- args     1 fence   2 about how many events to keep
--          3... entries of the stream, oldest first, each with its commands:
--            0 ENTRY     id, worker, batch number: begins an entry
--            1 JOIN      lane, n, visitor...: n commands of the batch, one for each visitor
--            the other COMMANDs of common/wire/protocol.def, each with what is said there; and, no commands
--            themselves:
--            6 SPEND     invite, until_ms: the next step, a JOIN of one visitor, spends this invite
--           10 OF        generation of the places in the commands of the rest of the entry, but for those that name
--                        one; of the queue's unless given. A place of another generation is held by nobody.
--           14 SINCE     ms: no JOIN in the rest of the entry was made before this time. A visitor whose place has
--                        ended since gets no new one.
-- returns  for each entry: 1 applied, 2 the batch was applied before (its sender repeated it), 0 no longer pending
-- fails    STALE    the fence is out of date: another dispatcher holds the lease
--          ORDER    an older entry, or one between these, is still pending: apply that first
--          After an error nothing was changed, but a new incarnation may have begun.
--
-- Invariants: XACK and the changes are one step; entries are applied in stream order; no JOIN takes waiting above
-- max_waiting, or adds to the line while settings.limit says so; where a queue is overbooked, no claim takes the
-- claimed sessions above the capacity. Work is bounded by the number of commands.

local OUTCOME, EVENT, REASON = defs.OUTCOME, defs.EVENT, defs.REASON
local NOT_PENDING, APPLIED, REPEATED = 0, 1, 2
local BATCH_MEMORY_MS = 3600000 -- a worker silent for so long may be forgotten
local WORKERS_MAX = 100         -- with fewer workers, none is forgotten

-- The kinds of commands and steps as texts, as they come: to make numbers of them would take longer than to look.
local function texts_of(kinds, names)
    local texts = {}
    for i = 1, #names do texts[names[i]] = kinds[names[i]] .. '' end
    return texts
end
local COMMAND = texts_of(defs.COMMAND, { 'join', 'leave', 'complete', 'renew', 'seen', 'restore', 'lost', 'called',
    'claim', 'extend', 'hand_over' })
local STEP = texts_of(defs.STEP, { 'entry', 'spend', 'of', 'since' })

---- the steps; the dispatcher (apply.c) makes them of what its decoder has checked

local LENGTHS = { [COMMAND.leave] = 2, [COMMAND.complete] = 2, [COMMAND.renew] = 2, [COMMAND.seen] = 2,
    [STEP.spend] = 2, [COMMAND.restore] = 6, [COMMAND.lost] = 4, [COMMAND.called] = 4, [STEP.of] = 1,
    [COMMAND.claim] = 2, [COMMAND.extend] = 2, [COMMAND.hand_over] = 4, [STEP.since] = 1 }

-- What a step needs. A call reads and looks at what its steps need: of one kind, what that needs; of several, ALL.
local CLAIM, ENDS, JOIN, SEEN, ALL = 1, 2, 3, 4, 5
local NEEDS = { [COMMAND.leave] = ENDS, [COMMAND.complete] = ENDS, [COMMAND.renew] = CLAIM, [COMMAND.claim] = CLAIM,
    [COMMAND.extend] = CLAIM, [COMMAND.hand_over] = CLAIM, [COMMAND.join] = JOIN, [COMMAND.seen] = SEEN,
    [COMMAND.restore] = ALL, [COMMAND.lost] = ALL, [COMMAND.called] = ALL, [STEP.spend] = ALL, [STEP.since] = ALL }
local FIELDS = {
    [CLAIM] = state.fields({ 'seq', 'fence' }, { 'called' }),
    [ENDS] = state.fields({ 'seq', 'fence', 'completed', 'left' }, { 'called' }),
    [JOIN] = state.fields({ 'seq', 'fence', 'joined' }, { 'marks' }),
    [SEEN] = state.fields({ 'seq', 'fence', 'joined' }, {}),
    [ALL] = state.fields({ 'seq', 'fence', 'joined', 'completed', 'left', 'admitted' }, { 'marks', 'called' }),
}
local SETTINGS = {
    [CLAIM] = settings.list({ 'waiting_ttl', 'opening', 'session_ttl', 'session_max', 'session_sliding' }),
    [ENDS] = settings.list({ 'waiting_ttl', 'opening' }),
    [JOIN] = settings.list({ 'waiting_ttl', 'opening', 'max_waiting', 'mode', 'closes_at' }),
    [SEEN] = settings.list({ 'waiting_ttl', 'opening' }),
    [ALL] = settings.list({ 'waiting_ttl', 'opening', 'session_ttl', 'session_max', 'session_sliding', 'max_waiting',
        'mode', 'closes_at' }),
}
local CAPACITY = settings.list({ 'capacity', 'claim_ttl', 'capacity_mode', 'capacity_min' })
local WRITES = {
    [CLAIM] = { 'active', 'events' }, -- each command begins with a look at the session
    [ENDS] = { 'waiting', 'active', 'ended', 'events', 'sessions' },
    [JOIN] = { 'waiting', 'active', 'events' },
    [SEEN] = { 'waiting', 'active', 'events' },
    [ALL] = { 'waiting', 'active', 'ended', 'events', 'sessions' },
}

local HAND_OVER = { 'serials', 'sessions' }

-- The entries in turn: { id, worker, batch, at: its first step }; the kinds of steps among them; and what they need.
local function read_steps(args)
    local entries, has, need, at, n = {}, {}, nil, 3, #args
    while at <= n do
        local kind = args[at]
        if kind == STEP.entry then
            entries[#entries + 1] = { id = args[at + 1], worker = args[at + 2], batch = args[at + 3] + 0, at = at + 4,
                result = NOT_PENDING, exceptions = false, index = 0 }
            at = at + 4
        else
            local its = NEEDS[kind]
            if its and its ~= need then need = need and ALL or its end
            has[kind], at = true, at + (kind == COMMAND.join and 3 + args[at + 2] or 1 + LENGTHS[kind])
        end
    end
    return entries, has, need or SEEN
end

---- what must be right before the first write

-- The draw of the queue. c.drawn: once it is fixed who came before its opening; c.draw_opens: the last entry was
-- written after the opening, so the entry that was fixes it.
local function open_draw(c, entries)
    local found = call('HGET', c.key.config, 'opens_at')
    c.opens_at = tonumber(found)
    if not c.opens_at then return end
    c.drawn = draw.of(call('HGET', c.key.state, 'draw'), c.opens_at)
    -- Ids never go back.
    c.draw_opens = not c.drawn and min(c.now, text.id_ms(entries[#entries].id)) >= c.opens_at
    if c.draw_opens then call('GETRANGE', c.key.drawn, 0, 0) end -- fails before the first write if it is no string
end

-- Marks the entries that are pending, and returns their ids. Every entry that is pending up to the last one must be
-- among them.
local function find_pending(c, entries)
    local ids, next_one = {}, 1
    for _, pending in ipairs(call('XPENDING', c.key.ingest, defs.INGEST_GROUP, '-', entries[#entries].id,
        #entries + 1)) do
        while entries[next_one] and entries[next_one].id ~= pending[1] do next_one = next_one + 1 end
        if not entries[next_one] then state.fail('ORDER', 'an older entry is pending') end
        entries[next_one].result, ids[#ids + 1], next_one = APPLIED, pending[1], next_one + 1
    end
    return ids
end

-- The last batch of each worker: worker -> { stored: before this call, or nil; last: with the batches of this call }.
-- Whether one of them is new to the queue.
local function read_batches(c, entries)
    local batches, any_new = {}, false
    for i = 1, #entries do
        local worker = entries[i].worker
        if not batches[worker] then
            local stored = text.parse_batch(call('HGET', c.key.batches, worker))
            batches[worker], any_new = { stored = stored, last = stored or -1 }, any_new or not stored
        end
    end
    return batches, any_new
end

-- s: the settings, without those that few steps need.
local function check(c, s, has, need, any_new)
    state.check(c, WRITES[need])
    if any_new or has[COMMAND.seen] then call('ZCARD', c.key.reports) end
    if need == SEEN then call('EXISTS', c.key.none) end -- as state.check where visitors may end: bitmaps are made
    if has[COMMAND.hand_over] then state.check(c, HAND_OVER) end
    if has[COMMAND.restore] or has[COMMAND.lost] or has[COMMAND.called] then call('HLEN', c.key.lost) end
    c.limit = has[COMMAND.join] and settings.limit(c, s) or 1 / 0
    local counts = (c.called or '') ~= ''
    if not (counts or has[COMMAND.restore] or has[COMMAND.extend]) then return end
    local more = settings.read(c, CAPACITY)
    s.capacity, s.claim_ttl = more.capacity, more.claim_ttl
    if counts then
        local steered = more.capacity_mode == 'auto' and call('HGET', c.key.state, 'capacity_now')
        overbook.open(c, settings.capacity(more, steered), more.claim_ttl)
    end
end

---- the commands: return an OUTCOME, a place and a deadline where that is not what was asked

local COMMANDS = {
    [COMMAND.leave] = function(c, args, at)
        return visitor.leave(c, args[at + 1], args[at + 2] + 0, REASON.left)
    end,
    [COMMAND.complete] = function(c, args, at)
        return visitor.leave(c, args[at + 1], args[at + 2] + 0, REASON.completed)
    end,
    [COMMAND.renew] = function(c, args, at, s)
        return visitor.claim(c, args[at + 1], args[at + 2] + 0, s, false)
    end,
    [COMMAND.claim] = function(c, args, at, s)
        return visitor.claim(c, args[at + 1], args[at + 2] + 0, s, true)
    end,
    [COMMAND.extend] = function(c, args, at, s)
        return visitor.extend(c, args[at + 1], args[at + 2] + 0, s)
    end,
    [COMMAND.hand_over] = function(c, args, at)
        return visitor.hand_over(c, args[at + 1], args[at + 2] + 0, args[at + 3] + 0, args[at + 4] + 0)
    end,
    [COMMAND.lost] = function(c, args, at)
        return recovery.lost(c, args[at + 1] + 0, args[at + 2] + 0, args[at + 3] + 0, args[at + 4] + 0)
    end,
    [COMMAND.called] = function(c, args, at, s)
        recovery.called(c, args[at + 1] + 0, args[at + 2] + 0, args[at + 3] + 0, args[at + 4] + 0, s.session_max)
    end,
    [COMMAND.restore] = function(c, args, at, s)
        return recovery.restore(c, args[at + 1], args[at + 2] + 0, { generation = args[at + 3] + 0,
            deadline = args[at + 4] + 0, front = args[at + 5] + 0, event = args[at + 6] + 0 }, s)
    end,
}

-- Who is seen. Places of another generation say nothing about this one.
local function see(c, worker, first, count, waiting_ttl, is_foreign)
    local is_farewell = first == defs.SEEN_FAREWELL_SEQ and count == defs.SEEN_FAREWELL_COUNT
    if is_foreign and not is_farewell then return end
    if not is_farewell then presence.mark(c, first, count, waiting_ttl) end
    presence.report(c, worker, is_farewell, waiting_ttl)
end

-- n joins of visitors args[from...]; late ones since a time, or nil.
local function join(c, one, lane, args, from, n, since)
    local ends = since and call('ZMSCORE', c.key.ended, unpack(args, from, from + n - 1))
    local first = 0
    for i = 0, since and n - 1 or -1 do
        if invites.is_late(c, args[from + i], ends[i + 1], since) then
            visitor.enter(c, lane, args, from + first, i - first, one.exceptions, one.index + first)
            visitor.skip(c, one.exceptions, one.index + i, OUTCOME.spent)
            first = i + 1
        end
    end
    visitor.enter(c, lane, args, from + first, n - first, one.exceptions, one.index + first)
    one.index = one.index + n
end

-- If the entry was written after the opening, nobody from here on takes part in the draw.
local function fix_cut(c, one)
    if not c.draw_opens or c.drawn or text.id_ms(one.id) < c.opens_at then return end
    visitor.settle(c)
    c.drawn = draw.fix_cut(c, c.seq, c.opens_at)
    state.set(c, 'seq', max(c.seq, c.drawn.last))
    state.set(c, 'draw', draw.text(c.drawn))
end

local function apply_entry(c, args, one, s)
    local at, is_foreign, since, exceptions = one.at, false, nil, {}
    recovery.raise_seq(c)
    fix_cut(c, one)
    one.exceptions = exceptions
    state.event(c, EVENT.applied, one.worker, one.batch, c.seq + 1, exceptions)
    while args[at] and args[at] ~= STEP.entry do
        local kind = args[at]
        if kind == COMMAND.join then
            local n = args[at + 2] + 0
            join(c, one, args[at + 1] + 0, args, at + 3, n, since)
            at = at + 3 + n
        elseif kind == STEP.of then
            is_foreign, at = args[at + 1] + 0 ~= c.generation, at + 2
        elseif kind == STEP.since then
            since, at = args[at + 1] + 0, at + 2
        elseif kind == STEP.spend then
            visitor.settle(c)
            local outcome = invites.spend(c, args[at + 1], args[at + 2] + 0, args[at + 6])
            if outcome then
                visitor.skip(c, exceptions, one.index, outcome)
                one.index = one.index + 1
            else
                join(c, one, args[at + 4] + 0, args, at + 6, 1)
            end
            at = at + 7
        else
            visitor.settle(c) -- the other commands must see the visitors who joined before
            local outcome, place, deadline
            if kind == COMMAND.seen then
                see(c, one.worker, args[at + 1] + 0, args[at + 2] + 0, s.waiting_ttl, is_foreign)
            elseif is_foreign and NEEDS[kind] ~= ALL then
                outcome, place = OUTCOME.gone, kind ~= COMMAND.hand_over and args[at + 2] + 0 or 0
            else
                outcome, place, deadline = COMMANDS[kind](c, args, at, s)
            end
            if outcome then visitor.except(exceptions, one.index, outcome, place, deadline) end
            one.index, at = one.index + 1, at + 1 + LENGTHS[kind]
        end
    end
end

---- batches that come twice: a worker repeats a batch when it does not know whether the first one arrived

local function forget_silent_workers(c)
    local all = call('HGETALL', c.key.batches)
    for i = 1, #all, 2 do
        local _, ms = text.parse_batch(all[i + 1])
        if not ms or ms < c.now - BATCH_MEMORY_MS then -- silent, or damaged: nothing may fail any more
            call('HDEL', c.key.batches, all[i])
        end
    end
end

-- True if these are the first batches that the queue has ever had.
local function store_batches(c, batches, waiting_ttl)
    local fields, n = {}, nil
    for worker, batch in pairs(batches) do
        if batch.last ~= (batch.stored or -1) then
            fields[#fields + 1], fields[#fields + 2] = worker, text.batch(batch.last, c.now)
            if not batch.stored then -- it has visitors from now on, and its first SEEN is yet to come
                n = n or call('HLEN', c.key.batches)
                if sub(worker, 1, 8) ~= 'control-' then -- joins of an operator: nobody listens there
                    presence.report(c, worker, false, waiting_ttl)
                end
            end
        end
    end
    if n and n >= WORKERS_MAX then forget_silent_workers(c) end
    call('HSET', c.key.batches, unpack(fields))
    return n == 0
end

entry('apply', { 'allow-oom' }, function(keys, args)
    local entries, has, need = read_steps(args)
    local c = state.open(state.begin(keys, args[2]), FIELDS[need])
    if c.fence ~= tonumber(args[1]) then state.fail('STALE', 'another dispatcher holds the lease') end
    local pending, results = find_pending(c, entries), {}
    if #pending > 0 then
        local s, seq_before = settings.read(c, SETTINGS[need]), text.int(c.seq)
        if s.opening == 'draw' then open_draw(c, entries) end
        local batches, any_new = read_batches(c, entries)
        check(c, s, has, need, any_new)

        for i = 1, #entries do
            local one = entries[i]
            local batch = batches[one.worker]
            if one.result == APPLIED and batch.last >= one.batch then
                one.result = REPEATED
            elseif one.result == APPLIED then
                batch.last = one.batch
                apply_entry(c, args, one, s)
            end
        end
        visitor.settle(c)
        recovery.raise_seq(c)
        call('XACK', c.key.ingest, defs.INGEST_GROUP, unpack(pending))
        if #c.events > 0 then
            if store_batches(c, batches, s.waiting_ttl) then recovery.note_start(c) end
            if c.has_ended then visitor.forget_ended(c, 2000) end -- more than can have ended in this call
            if state.is_told(c, EVENT.joined, 0) then presence.note_joins(c, seq_before, s.waiting_ttl) end
            if c.is_named then state.event_later(c, EVENT.config) end
            if c.overbook then overbook.save(c) end
            settings.note_full(c)
            state.commit(c)
        end
    end
    for i = 1, #entries do results[i] = entries[i].result end
    return results
end)
