-- SPDX-License-Identifier: Apache-2.0
-- apply: batches of the ingest stream change the line, exactly once and in stream order.
--
-- args     1 fence   2 about how many events to keep
--          3... entries of the stream, oldest first, each with its commands:
--            0 ENTRY     id, worker, batch number: begins an entry
--            1 JOIN      lane, n, visitor...: n commands of the batch, one for each visitor
--            2 LEAVE     visitor, place
--            3 COMPLETE  visitor, place
--            4 RENEW     visitor, place
--            5 SEEN      first seq, count
--            6 SPEND     invite, until_ms: the next step, a JOIN of one visitor, spends this invite; not a command
--                        itself
--            7 RESTORE   visitor, place, generation, deadline, front, event
--            8 LOST      generation, event, last seq, size
--            9 CALLED    generation, event, place, deadline
--           10 OF        generation of the places of 2 to 5 and 11 to 13 in the rest of the entry, of the queue's
--                        unless given; not a command itself. A place of another generation is held by nobody.
--           11 CLAIM     visitor, place
--           12 EXTEND    visitor, place
--           13 HAND_OVER visitor, place, serial, device
--           14 SINCE     ms: no JOIN in the rest of the entry was made before this time; not a command itself. A
--                        visitor whose place has ended since gets no new one.
-- returns  for each entry: 1 applied, 2 the batch was applied before (its sender repeated it), 0 no longer pending
-- fails    STALE    the fence is out of date: another dispatcher holds the lease
--          ORDER    an older entry, or one between these, is still pending: apply that first
--          NOQUEUE  the queue does not exist
--          INVALID  an argument makes no sense
--          After an error nothing was changed, but a new incarnation may have begun.
--
-- Invariants: XACK and the changes are one step; entries are applied in stream order; no JOIN takes waiting above
-- max_waiting, or adds to the line while settings.limit says so; where a queue is overbooked, no claim takes the
-- claimed sessions above the capacity. Work is bounded by the number of commands.

local OUTCOME, EVENT, REASON = defs.OUTCOME, defs.EVENT, defs.REASON
local NOT_PENDING, APPLIED, REPEATED = 0, 1, 2
local BATCH_MEMORY_MS = 3600000 -- a worker silent for so long may be forgotten
local WORKERS_MAX = 100         -- with fewer workers, none is forgotten
local JOINS_MAX = 1000          -- in one JOIN

-- The kinds of commands and steps as texts, as they come: to make numbers of them would take longer than to look.
local function texts_of(kinds, names)
    local texts = {}
    for i = 1, #names do texts[names[i]] = kinds[names[i]] .. '' end
    return texts
end
local COMMAND = texts_of(defs.COMMAND, { 'join', 'leave', 'complete', 'renew', 'seen', 'restore', 'lost', 'called',
    'claim', 'extend', 'hand_over' })
local STEP = texts_of(defs.STEP, { 'entry', 'spend', 'of', 'since' })

---- what the steps need: a JOIN, a claim (also more time, another device), an end, presence, what was lost

local CLAIM, ENDS, JOIN, SEEN, LOST = 1, 2, 3, 4, 5
local NEEDS = { [COMMAND.leave] = ENDS, [COMMAND.complete] = ENDS, [COMMAND.renew] = CLAIM, [COMMAND.claim] = CLAIM,
    [COMMAND.extend] = CLAIM, [COMMAND.hand_over] = CLAIM, [COMMAND.seen] = SEEN, [COMMAND.restore] = LOST,
    [COMMAND.lost] = LOST, [COMMAND.called] = LOST, [STEP.spend] = JOIN }
local LENGTHS = { [COMMAND.leave] = 2, [COMMAND.complete] = 2, [COMMAND.renew] = 2, [COMMAND.seen] = 2,
    [STEP.spend] = 2, [COMMAND.restore] = 6, [COMMAND.lost] = 4, [COMMAND.called] = 4, [STEP.of] = 1,
    [COMMAND.claim] = 2, [COMMAND.extend] = 2, [COMMAND.hand_over] = 4, [STEP.since] = 1 }
local TEXTS = { [STEP.spend] = 1, [COMMAND.seen] = 0, [COMMAND.lost] = 0, [COMMAND.called] = 0, [STEP.of] = 0,
    [STEP.since] = 0 } -- how many of them are texts: else the first

local FIELDS = {
    [CLAIM] = state.fields({ 'seq', 'fence' }, { 'called' }),
    [ENDS] = state.fields({ 'seq', 'fence', 'completed', 'left' }, { 'called' }),
    [JOIN] = state.fields({ 'seq', 'fence', 'joined' }, { 'bucket' }),
    [SEEN] = state.fields({ 'seq', 'fence', 'joined', 'completed', 'left' }, { 'bucket', 'called' }),
    [LOST] = state.fields({ 'seq', 'fence', 'joined', 'completed', 'left', 'admitted' }, { 'bucket', 'called' }),
}
local WRITES = {
    [CLAIM] = { 'active', 'events', 'sessions' },
    [ENDS] = { 'waiting', 'active', 'ended', 'events', 'sessions' },
    [JOIN] = { 'waiting', 'active', 'ended', 'events' },
    [SEEN] = { 'waiting', 'active', 'ended', 'events', 'sessions' },
    [LOST] = { 'waiting', 'active', 'ended', 'events', 'sessions', 'lost' },
}

local function invalid(at) state.fail('INVALID', 'argument ' .. at) end

-- A whole number as text, or the end of the call.
local function check_number(t, at)
    if not t or #t > 16 or not find(t, '^%d+$') then invalid(at) end
    return t
end

-- The entries in turn: { id, worker, batch, at: its first step, past: the argument after its last }; and what they
-- need: has[NEEDS] and has[kind].
local function read_steps(args)
    local entries, has, at, n_args, one = {}, {}, 3, #args, nil
    while at <= n_args do
        local kind = args[at]
        if kind == STEP.entry then
            if #entries == defs.APPLY_CALL_ENTRIES_MAX then invalid(at) end
            one = { id = args[at + 1], worker = args[at + 2], batch = check_number(args[at + 3], at + 3) + 0,
                at = at + 4, past = 0, result = NOT_PENDING, exceptions = false, index = 0 }
            entries[#entries + 1], at = one, at + 4
        elseif not one then
            invalid(at)
        elseif kind == COMMAND.join then
            local n = check_number(args[at + 2], at + 2) + 0
            if check_number(args[at + 1], at + 1) + 0 >= defs.LANES_MAX or n < 1 or n > JOINS_MAX
                or at + 2 + n > n_args then
                invalid(at)
            end
            has[JOIN], at = true, at + 3 + n
        else
            local length = LENGTHS[kind] or invalid(at)
            for i = at + 1 + (TEXTS[kind] or 1), at + length do check_number(args[i], i) end
            if kind == STEP.spend and not (args[at + 3] == COMMAND.join and args[at + 5] == '1') then
                invalid(at + 3)
            end
            local need = NEEDS[kind]
            if need then has[need] = true end
            has[kind], at = true, at + 1 + length
        end
        one.past = at
    end
    return #entries > 0 and entries or invalid(3), has
end

-- The largest of the needs, or the one that covers several.
local function need_of(has)
    if has[LOST] then return LOST end
    local n, need = 0, SEEN
    for each = CLAIM, SEEN do
        if has[each] then n, need = n + 1, each end
    end
    return n == 1 and not has[STEP.since] and not has[STEP.spend] and need or SEEN
end

---- what must be right before the first write

local function required(t) return t and text.counter(t) or state.fail('NOQUEUE', 'the queue has no settings') end

-- Of the settings, those that the steps need: each costs a small step 1 %.
local function read_settings(c, has)
    local names, n = { 'waiting_ttl', 'opening' }, 2
    local claims, joins = has[CLAIM] or has[LOST], has[JOIN]
    if claims then names[3], names[4], names[5], n = 'session_ttl', 'session_max', 'session_sliding', 5 end
    if joins then names[n + 1], names[n + 2], names[n + 3] = 'max_waiting', 'mode', 'closes_at' end
    local v = call('HMGET', c.key.config, unpack(names))
    local s = { waiting_ttl = required(v[1]), opening = v[2], session_ttl = 0, session_max = 0, session_sliding = false,
        claim_ttl = 0, capacity = 0, max_waiting = 0, mode = 'open', closes_at = 0 }
    if claims then
        s.session_ttl, s.session_max, s.session_sliding = required(v[3]), required(v[4]), v[5] == 'true'
    end
    if joins then
        s.max_waiting, s.mode = settings.optional(v[n + 1], 0), v[n + 2] or 'open'
        s.closes_at = settings.optional(v[n + 3], 0)
    end
    if has[COMMAND.extend] then s.claim_ttl = settings.optional(call('HGET', c.key.config, 'claim_ttl'), 0) end
    if has[LOST] then s.capacity = settings.optional(call('HGET', c.key.config, 'capacity'), 0) end
    return s
end

-- The draw of the queue. c.drawn: once it is fixed who came before its opening; c.draw_opens: the last entry was
-- written after the opening, so the entry that was fixes it.
local function open_draw(c, entries)
    local found = call('HGET', c.key.config, 'opens_at')
    c.opens_at = tonumber(found)
    if not c.opens_at then return end
    c.drawn = draw.of(call('HGET', c.key.state, 'draw'), c.opens_at)
    -- Ids never go back.
    c.draw_opens = not c.drawn and min(c.now, ingest.written_ms(entries[#entries].id)) >= c.opens_at
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

local function check(c, has, need, any_new)
    state.check(c, WRITES[need])
    if any_new or has[SEEN] then call('ZCARD', c.key.reports) end
    if has[COMMAND.hand_over] then call('HLEN', c.key.serials) end
    if (c.called or '') ~= '' then
        local v = call('HMGET', c.key.config, 'capacity', 'claim_ttl', 'capacity_mode', 'capacity_min')
        local capacity = settings.optional(v[1], 0)
        if v[3] == 'auto' then
            capacity = settings.capacity(capacity, v[4], call('HGET', c.key.state, 'capacity_now'))
        end
        overbook.open_claims(c, capacity, settings.optional(v[2], 0))
    end
end

---- the commands

local function except(list, index, outcome, place, deadline)
    list[#list + 1] = { index, outcome, place, deadline or 0 }
end

-- Commands of a visitor at a place: return an OUTCOME and a place where that is not what was asked.
local VERBS = {
    [COMMAND.leave] = function(c, id, place) return visitor.leave(c, id, place, REASON.left) end,
    [COMMAND.complete] = function(c, id, place) return visitor.leave(c, id, place, REASON.completed) end,
    [COMMAND.renew] = function(c, id, place, s) return visitor.claim(c, id, place, s, false) end,
    [COMMAND.claim] = function(c, id, place, s) return visitor.claim(c, id, place, s, true) end,
    [COMMAND.extend] = function(c, id, place, s) return visitor.extend(c, id, place, s) end,
    [COMMAND.hand_over] = function(c, id, place, _, args, at)
        return visitor.hand_over(c, id, place, args[at + 3] + 0, args[at + 4] + 0)
    end,
}

-- n joins of visitors args[from...], the first of which has this index; late ones since a time, or nil.
local function join(c, one, lane, args, from, n, since)
    local index, first = one.index, 0
    if since then
        local ends = call('ZMSCORE', c.key.ended, unpack(args, from, from + n - 1))
        for i = 0, n - 1 do
            if invites.is_late(c, args[from + i], ends[i + 1], since) then
                if i > first then
                    visitor.enter(c, lane, args, from + first, i - first, one.exceptions, index + first, except)
                end
                state.set(c, 'seq', c.seq + 1)
                except(one.exceptions, index + i, OUTCOME.spent, 0)
                first = i + 1
            end
        end
    end
    if first < n then visitor.enter(c, lane, args, from + first, n - first, one.exceptions, index + first, except) end
    one.index = index + n
end

-- What workers remember, who comes back, and who is seen. Returns what VERBS do, and a deadline.
local function other(c, one, kind, args, at, s, is_foreign)
    if kind == COMMAND.seen then
        local first, count = args[at + 1] + 0, args[at + 2] + 0
        local is_farewell = first == defs.SEEN_FAREWELL_SEQ and count == defs.SEEN_FAREWELL_COUNT
        if is_foreign and not is_farewell then return end -- places of another generation say nothing about this one
        if not is_farewell then presence.mark(c, first, count, s.waiting_ttl) end
        presence.report(c, one.worker, is_farewell, s.waiting_ttl)
    elseif kind == COMMAND.lost then
        return recovery.lost(c, args[at + 1] + 0, args[at + 2] + 0, args[at + 3] + 0, args[at + 4] + 0)
    elseif kind == COMMAND.called then
        recovery.called(c, args[at + 1] + 0, args[at + 2] + 0, args[at + 3] + 0, args[at + 4] + 0, s.session_max)
    else
        return recovery.restore(c, args[at + 1], args[at + 2] + 0, { generation = args[at + 3] + 0,
            deadline = args[at + 4] + 0, front = args[at + 5] + 0, event = args[at + 6] + 0 }, s)
    end
end

-- If the entry was written after the opening, nobody from here on takes part in the draw.
local function fix_cut(c, one)
    if not c.draw_opens or c.drawn or ingest.written_ms(one.id) < c.opens_at then return end
    visitor.settle(c)
    c.drawn = draw.fix_cut(c, c.seq, c.opens_at)
    state.set(c, 'seq', max(c.seq, c.drawn.last))
    state.set(c, 'draw', draw.text(c.drawn))
end

local function apply_entry(c, args, one, s)
    local at, is_foreign, since, exceptions = one.at, false, nil, {}
    recovery.raise_seq(c)
    fix_cut(c, one)
    one.exceptions, one.index = exceptions, 0
    state.event(c, EVENT.applied, one.worker, one.batch, c.seq + 1, exceptions)
    while at < one.past do
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
                state.set(c, 'seq', c.seq + 1)
                except(exceptions, one.index, outcome, 0)
                one.index = one.index + 1
            else
                join(c, one, args[at + 4] + 0, args, at + 6, 1)
            end
            at = at + 7
        else
            visitor.settle(c) -- the other commands must see the visitors who joined before
            local outcome, place, deadline
            if not VERBS[kind] then
                outcome, place, deadline = other(c, one, kind, args, at, s, is_foreign)
            elseif is_foreign then
                outcome, place = OUTCOME.gone, kind ~= COMMAND.hand_over and args[at + 2] + 0 or 0
            else
                outcome, place = VERBS[kind](c, args[at + 1], args[at + 2] + 0, s, args, at)
            end
            if outcome then except(exceptions, one.index, outcome, place, deadline) end
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
    local entries, has = read_steps(args)
    local need = need_of(has)
    local c = state.open(state.begin(keys, args[2]), FIELDS[need])
    if c.fence ~= tonumber(args[1]) then state.fail('STALE', 'another dispatcher holds the lease') end
    local pending, results = find_pending(c, entries), {}
    if #pending > 0 then
        local s, seq_before = read_settings(c, has), text.int(c.seq)
        if s.opening == 'draw' then open_draw(c, entries) end
        local batches, any_new = read_batches(c, entries)
        check(c, has, need, any_new)
        if has[JOIN] and s.max_waiting > 0 then
            local v = call('HMGET', c.key.config, 'full_margin', 'full_cooldown')
            s.full_margin, s.full_cooldown = settings.optional(v[1], 5), settings.optional(v[2], 10000)
            c.full_since = call('HGET', c.key.state, 'full_since')
        end
        c.limit = has[JOIN] and settings.limit(c, s) or 1 / 0

        call('XACK', c.key.ingest, defs.INGEST_GROUP, unpack(pending))
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
        if #c.events > 0 then
            if store_batches(c, batches, s.waiting_ttl) then recovery.note_start(c) end
            if c.has_ended then visitor.forget_ended(c, 2000) end -- more than can have ended in this call
            if state.is_told(c, EVENT.joined, 0) then presence.note_joins(c, seq_before, s.waiting_ttl) end
            if c.is_named then state.event_later(c, EVENT.config) end
            if c.overbook then overbook.save(c) end
            settings.note_full(c, s)
            state.commit(c)
        end
    end
    for i = 1, #entries do results[i] = entries[i].result end
    return results
end)
