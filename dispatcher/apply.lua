-- SPDX-License-Identifier: Apache-2.0
-- apply: batches of the ingest stream change the line, exactly once and in stream order.
-- Flags: allow-oom
-- Parts: prelude.records prelude.presence prelude.runs prelude.row prelude.ended prelude.draw prelude.capacity
-- Parts: prelude.called apply.arguments apply.context apply.called apply.batches apply.limit apply.joins apply.commands
-- Parts: apply.handover prelude.recovery apply.restore
--
-- ARGV     1 fence   2 about how many events to keep
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
-- Returns  for each entry: 1 applied, 2 the batch was applied before (its sender repeated it), 0 no longer pending
-- Errors   STALE    the fence is out of date: another dispatcher holds the lease
--          ORDER    an older entry, or one between these, is still pending: apply that first
--          NOQUEUE  the queue does not exist
--          INVALID  an argument makes no sense
--          After an error nothing was changed, but a new incarnation may have begun.
--
-- Invariants: XACK and the changes are one step; entries are applied in stream order; a visitor is in at most one of
-- waiting and active; state.waiting and state.active are the sizes of the sets;
-- joined = waiting + active + completed + expired + left; no JOIN takes waiting above max_waiting, or adds to
-- the line while apply.limit.lua says so; where a queue is overbooked, no claim takes the claimed sessions above the
-- capacity. Work is bounded by the number of commands.
local NOT_PENDING, APPLIED, REPEATED = 0, 1, 2
local fence, keep = ARGV[1], ARGV[2]

---- check everything before the first write

local current_fence, seq, joined, last_bucket, completed, left, called_before
if sessions or restores then
    state, current_fence, seq, joined, last_bucket, completed, left, called_before = open_state('fence', 'seq',
        'joined', 'bucket', 'completed', 'left', 'called')
else
    state, current_fence, seq, joined, last_bucket = open_state('fence', 'seq', 'joined', 'bucket')
end
if not state then
    return no_queue()
end
if current_fence ~= fence then
    return redis.error_reply('STALE another dispatcher holds the lease')
end
if not are_valid then
    return redis.error_reply('INVALID argument ' .. at)
end

-- Which entries are pending. Every entry that is pending up to the last one must be among them.
local results, pending_ids = {}, {}
for i = 1, n_entries do
    results[i] = NOT_PENDING
end
local next_entry = 1
for _, pending in ipairs(redis.call('XPENDING', K_INGEST, INGEST_GROUP, '-', entries[n_entries],
    int(n_entries + 1))) do
    local id = pending[1]
    while entries[next_entry] and entries[next_entry] ~= id do
        next_entry = next_entry + 1
    end
    if not entries[next_entry] then
        return redis.error_reply('ORDER an older entry is pending')
    end
    results[next_entry], pending_ids[#pending_ids + 1] = APPLIED, id
    next_entry = next_entry + 1
end
if #pending_ids == 0 then
    return results
end

local c
if joins then
    c = redis.call('HMGET', K_CONFIG, 'session_ttl', 'session_sliding', 'session_max', 'waiting_ttl', 'opening',
        'max_waiting', 'mode', 'closes_at')
else
    c = redis.call('HMGET', K_CONFIG, 'session_ttl', 'session_sliding', 'session_max', 'waiting_ttl', 'opening')
end
settings = { session_ttl = tonumber(c[1]), sliding = c[2] == 'true', session_max = tonumber(c[3]),
    waiting_ttl = tonumber(c[4]) }
if not settings.session_ttl or not settings.session_max
    or not (settings.waiting_ttl and settings.waiting_ttl < 2 ^ 53) then -- no damaged one, either: infinite
    return redis.error_reply('NOQUEUE the queue has no settings')
end
if c[5] == 'draw' then
    DRAW.load()
    DRAW.opens_at = tonumber(redis.call('HGET', K_CONFIG, 'opens_at'))
    DRAW.present = DRAW.opens_at and DRAW.of(redis.call('HGET', K_STATE, 'draw'), DRAW.opens_at)
    -- Was the last entry written after the opening? The entry that was fixes the cut, and reads the list.
    DRAW.opens = DRAW.opens_at and not DRAW.present
        and math.min(now_ms(), tonumber(string.match(entries[n_entries], '^%d+'))) >= DRAW.opens_at -- ids never go back
    if DRAW.opens then
        redis.call('GETRANGE', DRAW.key(), 0, 0) -- fails before the first write if it is no string
    end
end
check_types(reports_key())
totals = { joined = joined, completed = completed, left = left }
if handovers then
    redis.call('HLEN', serials_key())
end
if restores then
    redis.call('HLEN', K_LOST)
    totals.admitted = redis.call('HGET', K_STATE, 'admitted')
    load_restore()
end
state.seq = read_counter(seq)
for _, total in pairs(totals) do
    read_counter(total)
end
local counted = parse_called(called_before)
if counted then
    load_called()
    load_claims()
    claims.open(counted)
end

---- apply

redis.call('XACK', K_INGEST, INGEST_GROUP, unpack(pending_ids))
now = now_ms()
if joins then
    load_joins()
    load_limit()
    limit_joins(state.waiting, unpack(c, 6, 8))
end
if invites then
    load_spend()
end
if late then
    load_since()
end
if sessions then
    load_commands()
end
if handovers then
    load_handover()
end
if restores or presence then
    load_seen()
end

local events = {} -- first one APPLIED for each batch

local is_foreign = false -- the places of the entry at work are of another generation
local since -- ms: its joins were made then or later, and come late; or nil

-- Begins an entry. False if its commands must be skipped: it is not pending, or its batch is a repeated one.
local function begin_entry(nth, batch, worker)
    if results[nth] == NOT_PENDING then
        return false
    elseif is_repeated(worker, batch) then
        results[nth] = REPEATED
        return false
    end
    raise_seq()
    -- If the entry was written after the opening, nobody from here on takes part in the draw.
    if DRAW.opens and not DRAW.present and tonumber(string.match(entries[nth], '^%d+')) >= DRAW.opens_at then
        flush_joins()
        DRAW.present = DRAW.fix_cut(state, state.seq, DRAW.opens_at)
        state.seq = math.max(state.seq, DRAW.present.last)
        recovery_changes.draw = DRAW.text(DRAW.present)
    end
    exceptions, sender, is_foreign, since = {}, worker, false, nil
    events[#events + 1] = { EVENT.applied, worker, batch, state.seq + 1, exceptions }
    return true
end

-- Applies a step, whose first command has this index in its batch. Returns the next step and the index of its command.
local function apply_step(i, index)
    local kind, a, b, texts = unpack(steps, 4 * i - 3, 4 * i)
    if kind == COMMAND.join then
        if since then
            join_since(index, a, b, texts, since)
        else
            join(index, a, b, texts)
        end
        return i + 1, index + b
    elseif kind == STEP.of then
        is_foreign = a ~= state.generation
        return i + 1, index
    elseif kind == STEP.since then
        since = a
        return i + 1, index
    end
    flush_joins() -- the other commands must see the visitors who joined before
    if kind == STEP.spend then
        local lane, visitor = steps[4 * i + 2], steps[4 * i + 4]
        if spend(index, ARGV[texts], a, ARGV[visitor]) then
            join(index, lane, 1, visitor)
        end
        return i + 2, index + 1
    elseif is_foreign and (kind <= COMMAND.renew or kind >= COMMAND.claim) then
        add_exception(exceptions, index, OUTCOME.gone, a, 0)
    elseif kind == COMMAND.leave then
        leave(index, ARGV[texts], a)
    elseif kind == COMMAND.complete then
        complete(index, ARGV[texts], a)
    elseif kind == COMMAND.renew or kind == COMMAND.claim then
        renew(index, ARGV[texts], a, kind == COMMAND.claim)
    elseif kind == COMMAND.extend then
        extend(index, ARGV[texts], a)
    elseif kind == COMMAND.hand_over then
        hand_over(index, texts)
    elseif kind == COMMAND.restore then
        restore(index, texts)
    elseif kind == COMMAND.lost then
        lost(index, texts)
    elseif kind == COMMAND.called then
        called(texts)
    else
        seen(a, b, is_foreign)
    end
    return i + 1, index + 1
end

local i, nth, index, is_applied = 1, 0, 0, false
while i <= n_steps do
    if steps[4 * i - 3] == STEP.entry then
        nth, index = nth + 1, 0
        is_applied = begin_entry(nth, steps[4 * i - 2], ARGV[steps[4 * i] + 1])
        i = i + 1
    elseif is_applied then
        i, index = apply_step(i, index)
    else
        i = i + 1
    end
end
flush_joins()
raise_seq()
if #events == 0 then
    return results
end
if store_batches() then
    note_start()
end

---- commit the changes and tell all readers

if #joined_spans > 0 then
    events[#events + 1] = { EVENT.joined, runs_of_spans(joined_spans) }
end
if recovery_changes.lost_by then
    events[#events + 1] = { EVENT.config } -- workers read which generation comes back
end
for till, places in pairs(restored_sessions) do
    events[#events + 1] = { EVENT.admitted, runs_of(places), till }
end
if #removed > 0 then
    events[#events + 1] = { EVENT.removed, runs_of(removed), REASON.left }
end
session_events(events)
local changes = { 'seq', state.seq }
local bucket = #joined_spans > 0 and bucket_at(now, settings.waiting_ttl)
if bucket and tonumber(last_bucket) ~= bucket then -- the first joins in this bucket
    changes[3], changes[4] = 'bucket', bucket
    changes[5], changes[6] = 'marks', add_mark(redis.call('HGET', K_STATE, 'marks') or '', bucket, seq)
end
for field, total in pairs(totals) do
    if type(total) == 'number' then -- it changed
        changes[#changes + 1], changes[#changes + 2] = field, total
    end
end
if claims.called then
    changes[#changes + 1], changes[#changes + 2] = 'called', called_text(claims.called)
end
for field, value in pairs(recovery_changes) do
    changes[#changes + 1], changes[#changes + 2] = field, value
end
limit_changes(changes, events)
commit(state, changes, events, keep)
return results
