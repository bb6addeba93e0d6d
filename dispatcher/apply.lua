-- SPDX-License-Identifier: Apache-2.0
-- apply: batches of the ingest stream change the line, exactly once and in stream order.
-- args     1 fence   2 keep   3... entries of the stream, oldest first: each begins with the step ENTRY: id, worker,
--          batch number. Then its commands, each as its kind and arguments, in the order of protocol.def, but for
--          JOIN: lane, n, visitor...: n commands. Between them stand steps that are no commands:
--            SPEND  invite, until_ms: the next step, a JOIN of one visitor, spends this invite
--            OF     generation of the places in the commands of the rest of the entry, but for those that name one; of
--                   the queue's unless given. A place of another generation is held by nobody
--            SINCE  ms: no JOIN in the rest of the entry was made before. A visitor whose place has ended since then
--                   gets no new one
-- returns  for each entry: 1 applied, 2 the batch was applied before (its sender repeated it), 0 no longer pending
-- fails    STALE    the fence is out of date: another dispatcher holds the lease
--          ORDER    an older entry, or one between these, is still pending: apply that first
--          After an error nothing was changed, but a new incarnation may have begun.
--
-- Invariants: XACK and the changes are one step; entries are applied in stream order; no JOIN adds to the line while
-- settings.limit says so; where a queue is overbooked, no claim takes the claimed sessions above the capacity. Work is
-- bounded by the number of commands.

local OUTCOME, EVENT, REASON = defs.OUTCOME, defs.EVENT, defs.REASON
local NOT_PENDING, APPLIED, REPEATED = 0, 1, 2
local BATCH = defs.BATCH_FIELD
local BATCH_MEMORY_MS = 3600000 -- a worker silent for this long may be forgotten
local WORKERS_MAX = 100         -- with fewer workers, none is forgotten

---- the steps; the dispatcher (apply.c) makes them of what its decoder has checked

-- What steps need. A call reads and looks at what its steps need: of one kind, what that needs; of several, ALL. Joins
-- look at the active ones before they enter, and completions do not touch the line.
local CLAIM = { writes = { 'active', 'events' }, -- each command begins with a look at the sessions
    fields = state.fields({ 'seq', 'fence' }, { 'called' }),
    settings = settings.list({ 'waiting_ttl', 'order', 'session_ttl', 'session_max', 'session_sliding' }) }
local END = { writes = { 'waiting', 'active', 'ended', 'events' },
    fields = state.fields({ 'seq', 'fence', 'completed', 'left' }, { 'called', 'handed' }),
    settings = settings.list({ 'waiting_ttl', 'order' }) }
local COMPLETIONS, LONE_END = { 'active', 'ended', 'events' }, { 'events' }
local ENTER = { writes = { 'waiting', 'events' }, fields = state.fields({ 'seq', 'fence', 'joined' }, { 'marks' }),
    settings = settings.list({ 'waiting_ttl', 'order', 'max_waiting', 'mode', 'closes_at' }) }
local SEE = { writes = { 'events' }, fields = state.fields({ 'seq', 'fence', 'joined' }, {}), settings = END.settings }
local ALL = { writes = END.writes,
    fields = state.fields({ 'seq', 'fence', 'joined', 'completed', 'left', 'admitted' },
        { 'marks', 'called', 'handed' }),
    settings = settings.list({ 'waiting_ttl', 'order', 'session_ttl', 'session_max', 'session_sliding',
        'max_waiting', 'mode', 'closes_at' }) }

-- By the text of their kind, as it comes: to make a number of it would take longer than to look. length: how many
-- arguments it has. run: of a command but JOIN and SEEN, with its first two arguments; returns an OUTCOME, a place and
-- a deadline where that is not what was asked.
local STEPS = {}

local function define(name, length, needs, run)
    local kind = defs.COMMAND[name] or defs.STEP[name]
    STEPS[kind .. ''] = { name = name, length = length, needs = needs, run = run }
end

define('join', 2, ENTER)
define('leave', 2, END)
define('complete', 2, END)
define('renew', 2, CLAIM, function(c, id, place, s) return visitor.claim(c, id, place, s, false) end)
define('claim', 2, CLAIM, function(c, id, place, s) return visitor.claim(c, id, place, s, true) end)
define('extend', 2, CLAIM, function(c, id, place, s) return visitor.extend(c, id, place, s) end)
define('hand_over', 4, CLAIM, function(c, id, place, _, args, at)
    return visitor.hand_over(c, id, place, args[at + 3] + 0, args[at + 4] + 0)
end)
define('seen', 2, SEE)
define('restore', 6, ALL, function(c, id, place, s, args, at)
    return recovery.restore(c, id, place, { generation = args[at + 3] + 0, deadline = args[at + 4] + 0,
        front = args[at + 5] + 0, event = args[at + 6] + 0 }, s)
end)
define('lost', 4, ALL, function(c, generation, event, _, args, at)
    return recovery.lost(c, generation + 0, event, args[at + 3] + 0, args[at + 4] + 0)
end)
define('called', 4, ALL, function(c, generation, event, s, args, at)
    recovery.called(c, generation + 0, event, args[at + 3] + 0, args[at + 4] + 0, s.session_max)
end)
define('entry', 3)
define('spend', 2, ALL)
define('of', 1)
define('since', 1, ALL)

-- The entries in turn: { id, worker, batch, at: its first step }; which steps are among them; what they need; and how
-- many there are that need something (each worker's batch begins with an OF, which does not).
local function read_steps(args)
    local entries, has, needs, n, at, last = {}, {}, nil, 0, 3, #args
    while at <= last do
        local step = STEPS[args[at]]
        if step.name == 'entry' then
            entries[#entries + 1] = { id = args[at + 1], worker = args[at + 2], batch = args[at + 3] + 0, at = at + 4,
                result = NOT_PENDING, exceptions = false, index = 0, field = BATCH .. args[at + 2], is_new = false }
        else
            if step.needs and step.needs ~= needs then needs = needs and ALL or step.needs end
            has[step.name], n = true, step.needs and n + 1 or n
        end
        at = at + 1 + step.length + (step.name == 'join' and args[at + 2] or 0)
    end
    return entries, has, needs or SEE, n
end

---- batches that come twice: a worker repeats a batch when it does not know whether the first one arrived

-- Reads the last batch of each worker with `fields`, whose own are the first of them.
local function ask_batches(entries, fields)
    local n, asked = fields.own, {}
    for i = 1, #entries do
        local field = entries[i].field
        if not asked[field] then n, asked[field], fields[n + 1] = n + 1, true, field end
    end
    for i = #fields, n + 1, -1 do fields[i] = nil end -- those of the call before
end

-- Marks the entries of workers that are new to the queue. Returns whether there are any.
local function find_new(c, entries)
    local any_new = false
    for i = 1, #entries do
        local is_new = not text.parse_batch(c[entries[i].field])
        entries[i].is_new, any_new = is_new, any_new or is_new
    end
    return any_new
end

-- A new worker has visitors from now on, and its first SEEN is yet to come. Workers that were silent for long are
-- forgotten, once there are many.
local function note_new(c, entries, waiting_ttl)
    for i = 1, #entries do
        local one = entries[i] -- to joins of an operator, control-..., nobody listens
        if one.is_new and one.result == APPLIED and sub(one.worker, 1, 8) ~= 'control-' then
            presence.report(c, one.worker, false, waiting_ttl)
        end
    end
    local fields, silent, n = call('HGETALL', c.key.state), {}, 0
    for i = 1, #fields, 2 do
        if sub(fields[i], 1, #BATCH) == BATCH then
            local _, ms = text.parse_batch(fields[i + 1])
            if not ms or ms < c.now - BATCH_MEMORY_MS then silent[fields[i]] = false end
            n = n + 1
        end
    end
    if n == 0 then recovery.note_start(c) end
    if n >= WORKERS_MAX then state.repair(c, silent) end
end

---- what must be right before the first write

-- The draw of the queue. c.drawn: once it is fixed who came before its opening; c.draw_opens: the last entry was
-- written after the opening, so the entry that was fixes it. Ids never go back.
local function open_draw(c, entries)
    draw.open(c)
    if not c.opens_at then return end
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

local CAPACITY = settings.list({ 'capacity', 'claim_ttl', 'capacity.min' })

-- s: the settings, without those that few steps need.
local function check(c, s, has, needs, n, any_new)
    local counts = (c.called or '') ~= ''
    -- A lone end looks at its set when it has found the visitor, and writes to the ends first. One of a hundred and
    -- one looks at all its keys, and so keeps the number of ends in bounds: a prime, so that no steady rhythm of events
    -- misses it.
    c.is_lone = n == 1 and needs == END and not counts and c.event % 101 > 0
    state.check(c, c.is_lone and LONE_END or needs == END and not has.leave and COMPLETIONS or needs.writes)
    if n > 1 and c.ended then call('HLEN', c.key.sessions) end -- a single command looks at them before it writes
    if any_new or has.seen then call('ZCARD', c.key.reports) end
    if needs == SEE then call('EXISTS', c.key.none) end -- as state.check where visitors may end: bitmaps are made
    if has.hand_over then state.check(c, { 'serials', 'sessions' }) end
    if has.restore or has.lost or has.called then call('HLEN', c.key.lost) end
    c.limit = has.join and settings.limit(c, s) or 1 / 0
    if not (counts or has.restore or has.extend) then return end
    local more = settings.read(c, CAPACITY)
    s.capacity, s.claim_ttl = more.capacity, more.claim_ttl
    if counts then
        local steered = more['capacity.min'] > 0 and call('HGET', c.key.state, 'capacity_now')
        overbook.open(c, settings.capacity(more, steered), more.claim_ttl)
    end
end

---- an entry

-- Notes the visitors who were seen. Places of another generation say nothing about this one.
local function see(c, worker, first, count, waiting_ttl, is_foreign)
    local is_farewell = first == defs.SEEN_FAREWELL_SEQ and count == defs.SEEN_FAREWELL_COUNT
    if is_foreign and not is_farewell then return end
    if not is_farewell then presence.mark(c, first, count, waiting_ttl) end
    presence.report(c, worker, is_farewell, waiting_ttl)
end

-- n joins of visitors args[from...]; late ones since a time, or nil.
local function join(c, one, lane, args, from, n, since)
    if c.leaving then visitor.settle(c) end
    local ends = since and call('ZMSCORE', c.key.ended, unpack(args, from, from + n - 1))
    local at_once = since and 1 or max(1, n)
    for i = 0, n - 1, at_once do
        if since and invites.is_late(c, args[from + i], ends[i + 1], since) then
            visitor.skip(c, one.exceptions, one.index + i, OUTCOME.spent)
        else
            visitor.enter(c, lane, args, from + i, at_once, one.exceptions, one.index + i)
        end
    end
    one.index = one.index + n
end

-- If the entry was written after the opening, nobody from here on takes part in the draw.
local function fix_cut(c, one)
    if not c.draw_opens or c.drawn or text.id_ms(one.id) < c.opens_at then return end
    visitor.settle(c)
    c.drawn = draw.fix_cut(c, c.opens_at)
    state.set(c, 'draw', draw.text(c.drawn))
end

local function apply_entry(c, args, one, s)
    local at, is_foreign, since, exceptions = one.at, false, nil, {}
    recovery.raise_seq(c)
    fix_cut(c, one)
    one.exceptions = exceptions
    state.event(c, EVENT.applied, one.worker, one.batch, c.seq + 1, exceptions)
    local step = STEPS[args[at]]
    while step and step.name ~= 'entry' do
        local name, first = step.name, args[at + 1]
        if name == 'join' then
            local n = args[at + 2] + 0
            join(c, one, first + 0, args, at + 3, n, since)
            at = at + n
        elseif name == 'of' then
            is_foreign = first + 0 ~= c.generation
        elseif name == 'since' then
            since = first + 0
        elseif name == 'spend' then
            visitor.settle(c)
            local outcome = invites.spend(c, first, args[at + 2] + 0, args[at + 6])
            if outcome then
                visitor.skip(c, exceptions, one.index, outcome)
                one.index = one.index + 1
            else
                join(c, one, args[at + 4] + 0, args, at + 6, 1)
            end
            at = at + 4 -- behind the JOIN
        elseif step.needs == END and not is_foreign then
            visitor.leave(c, first, args[at + 2] + 0, name == 'leave' and REASON.left or REASON.completed, exceptions,
                one.index)
            one.index = one.index + 1
        else
            visitor.settle(c) -- the other commands must see who joined and left before
            local second = args[at + 2] + 0
            local outcome, place, deadline
            if name == 'seen' then
                see(c, one.worker, first + 0, second, s.waiting_ttl, is_foreign)
            elseif is_foreign and step.needs ~= ALL then
                outcome, place = OUTCOME.gone, name ~= 'hand_over' and second or 0
            else
                outcome, place, deadline = step.run(c, first, second, s, args, at)
            end
            if outcome then visitor.except(exceptions, one.index, outcome, place, deadline) end
            one.index = one.index + 1
        end
        at = at + 1 + step.length
        step = STEPS[args[at]]
    end
end

entry('apply', { 'allow-oom' }, function(keys, args)
    local entries, has, needs, n = read_steps(args)
    ask_batches(entries, needs.fields)
    local c = state.open(state.begin(keys, args[2]), needs.fields)
    if c.fence ~= tonumber(args[1]) then state.fail('STALE', 'another dispatcher holds the lease') end
    local pending, results = find_pending(c, entries), {}
    if #pending > 0 then
        local any_new, seq_before = find_new(c, entries), text.int(c.seq)
        c.is_draw_open = needs ~= END or any_new
        local s = c.is_draw_open and settings.read(c, needs.settings) or {} -- ends need none
        if s.order == 'draw' then open_draw(c, entries) end
        check(c, s, has, needs, n, any_new)

        for i = 1, #entries do
            local one = entries[i]
            if one.result == APPLIED and (text.parse_batch(c[one.field]) or -1) >= one.batch then
                one.result = REPEATED
            elseif one.result == APPLIED then
                state.set(c, one.field, text.batch(one.batch, c.now))
                apply_entry(c, args, one, s)
            end
        end
        visitor.settle(c)
        recovery.raise_seq(c)
        call('XACK', c.key.ingest, defs.INGEST_GROUP, unpack(pending))
        if #c.events > 0 then
            if any_new then note_new(c, entries, s.waiting_ttl) end
            if c.ended then visitor.forget_ended(c, 2000) end -- more than can have ended in this call
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
