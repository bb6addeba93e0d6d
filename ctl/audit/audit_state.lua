-- SPDX-License-Identifier: Apache-2.0
-- audit_state: what can be wrong with a queue as a whole, at one moment. Changes nothing.
-- args     1 how long, in ms, an entry may wait to be applied
-- returns  AUDIT_STATE; nil when nothing of the queue exists

-- c: with exists, the keys that are there, and of the right type; size, of waiting, active and sessions; v, the
-- counters of the state by name, nil when missing or unreadable.

local found = audit.found
local RESTORE_DATA = 'stop the programs and restore the keys of the queue from a backup, or give the queue up'
local CORRECT = 'pause the queue, correct the counter with HSET, and report how it came to this'

---- the types of the keys: what has another one is treated as missing below

-- Returns whether there is anything of the line, or a lease.
local function check_types(c)
    local anything = false
    for _, each in ipairs(defs.KEY) do
        local key = c.key[each.name]
        local is = call('TYPE', key).ok
        anything = anything or is ~= 'none' and (each.whose == 'line' or each.whose == 'lease')
        c.exists[each.name] = is == each.type
        if is ~= 'none' and is ~= each.type then
            found(c, 10, 'type:' .. key, 'rename the key away; the programs make it again, or restore it from a backup',
                '%s is a %s, not a %s', key, is, each.type)
        end
        if each.whose == 'lease' and is == each.type and call('PTTL', key) == -1 then
            found(c, 9, 'lease:' .. each.name, 'DEL ' .. key .. '; a running ' .. each.name .. ' takes it again',
                'the lease %s never runs out: no other %s can take it', key, each.name)
        end
    end
    return anything
end

---- the numbers of the state

local COUNTERS = { 'admit_capacity' } -- these, too
for i = 1, #defs.COUNTER do COUNTERS[i + 1] = defs.COUNTER[i] end
local OTHERS = { 'base_seq', 'found_event', 'capacity_now', 'capacity_safe', 'capacity_raised', 'capacity_cut',
    'capacity_seen_ms', 'capacity_why' } -- which may be missing

local function read_numbers(c, names)
    local texts, v = call('HMGET', c.key.state, unpack(names)), c.v
    for i, name in ipairs(names) do
        local t = texts[i]
        v[name] = match(t or '', '^%-?%d+$') and tonumber(t)
        if not t and names == COUNTERS then
            found(c, 10, 'missing:' .. name, RESTORE_DATA, 'the state has no field %s', name)
        elseif t and not v[name] then
            found(c, 10, 'unreadable:' .. name, CORRECT, 'the field %s of the state is no number: %s', name, t)
        elseif t and v[name] < 0 then
            found(c, 1, 'negative:' .. name, CORRECT, 'the counter %s is negative: %s', name, t)
        end
    end
end

local function check_sizes(c)
    local v, size = c.v, c.size
    for _, name in ipairs({ 'waiting', 'active' }) do
        if v[name] and v[name] ~= size[name] then
            found(c, 1, 'size:' .. name, CORRECT, 'the counter %s is %.0f, but %d are %s', name, v[name], size[name],
                name)
        end
    end
    if size.sessions ~= size.active then
        found(c, 1, 'sessions', 'remove sessions without a visitor in the active set, and visitors without a session',
            '%d are active, but there are %d sessions', size.active, size.sessions)
    end
end

-- The one place where the totals are compared. Places that came back after a loss count as joined; sessions that came
-- back, as admitted, too.
local function check_totals(c)
    local v = c.v
    for _, name in ipairs(COUNTERS) do
        if not v[name] then return end
    end
    local known = v.waiting + v.active + v.completed + v.expired + v.left
    if v.joined ~= known then
        found(c, 5, 'joined', CORRECT,
            '%.0f joined, but waiting %.0f + active %.0f + completed %.0f + expired %.0f + left %.0f is %.0f',
            v.joined, v.waiting, v.active, v.completed, v.expired, v.left, known)
    end
    if v.admitted > v.joined then
        found(c, 5, 'admitted', CORRECT, '%.0f were admitted, but only %.0f joined', v.admitted, v.joined)
    elseif v.admitted < v.active + v.completed + v.unclaimed then
        found(c, 5, 'admitted', CORRECT,
            '%.0f were admitted, but active %.0f + completed %.0f + unclaimed %.0f is more', v.admitted, v.active,
            v.completed, v.unclaimed)
    end
    if v.unclaimed + v.absent + v.removed > v.expired then
        found(c, 5, 'expired', CORRECT,
            '%.0f expired, but unclaimed %.0f + absent %.0f + removed %.0f is more', v.expired, v.unclaimed, v.absent,
            v.removed)
    end
end

-- An admission stores the capacity it obeyed as admit_capacity, and nothing else raises active. So active must not
-- exceed that; the capacity of today may have been lowered since. Returns a note.
local function check_capacity(c)
    local v = call('HMGET', c.key.config, 'policy', 'overbook', 'capacity', 'capacity.min')
    local most, least, active, obeyed = tonumber(v[3]), tonumber(v[4]) or 0, c.size.active, c.v.admit_capacity
    if most and least > most then
        found(c, 2, 'capacity bounds', 'set one of them: `tellerline queue set QUEUE capacity.min=...`',
            'capacity.min is %.0f, above the capacity of %.0f', least, most)
    end
    local capacity = most and settings.capacity({ capacity = most, ['capacity.min'] = least }, c.v.capacity_now)
    if v[1] == 'rate' or not capacity or active <= capacity + (tonumber(v[2]) or 0) then return '' end
    if obeyed and active > obeyed then
        found(c, 2, 'capacity', 'none is admitted until enough have gone; report how it came to this',
            '%d are active, but the capacity is %.0f and was %.0f at the last admission', active, capacity, obeyed)
        return ''
    end
    return format('%d are active, above the capacity of %.0f: it was lowered, which ends no session', active, capacity)
end

---- numbers that must not go back

-- entry: the last of the events; nil: it cannot be read.
local function check_last_entry(c, written)
    local v = c.v
    if not written then
        found(c, 8, 'entry', 'nothing else may write it; restart the workers',
            'the last entry of the events stream cannot be read')
    elseif written[3] ~= v.generation then
        found(c, 7, 'generation', RESTORE_DATA, 'the last event is of generation %.0f, the state of %.0f', written[3],
            v.generation or 0)
    elseif v.event and written[2] ~= v.event then
        found(c, 7, 'event', 'set `event` of the state above both numbers: every program then reads the line again',
            'the last event has number %.0f, but the state counts %.0f: %s', written[2], v.event,
            v.event < written[2] and 'the counter was set back' or 'the end of the events stream is missing')
    elseif written[4] ~= v.waiting or written[5] ~= v.active then
        found(c, 7, 'entry sizes', CORRECT,
            'the last event says %.0f waiting and %.0f active, the state %.0f and %.0f', written[4], written[5],
            v.waiting or -1, v.active or -1)
    end
end

local function check_numbers(c)
    local v = c.v
    if v.generation == 0 then found(c, 10, 'generation', RESTORE_DATA, 'the state has the generation 0') end
    c.generation = v.generation
    local last = c.exists.events and state.last_entry(c)
    if last then
        check_last_entry(c, state.entry(last[2]))
    elseif (v.joined or 0) > 0 then
        found(c, 8, 'events', 'raise `event` of the state by one: every program then reads the line again',
            'the events stream is gone, though visitors have joined')
    end
    local highest = max(v.base_seq or 0, last and state.highest_seq(c, 20, v.generation or 0) or 0)
    if v.seq and v.seq < highest then
        found(c, 7, 'seq',
            'numbers will be given out twice: pause the queue and set `seq` of its state to more than that',
            'the state counts numbers up to %.0f, but %.0f was given out: it was set back', v.seq, highest)
    end
    if v.event and v.found_event and v.event < v.found_event then
        found(c, 7, 'event base', 'set `event` of the state above that',
            'the state counts events up to %.0f, but %.0f was reached', v.event, v.found_event)
    end
end

---- a draw that is done; ctl/audit/draw.c checks its order

local DRAWN_ID_BYTES = 16
local REPORT_DRAW = 'pause the queue and report how it came to this; to draw again, delete the queue and create it '
    .. 'again'

local function check_draw(c)
    local d, undrawn = draw.of(call('HGET', c.key.state, 'draw')), 0
    if not d or d.phase ~= draw.DONE then return end
    local length = c.exists.drawn and call('STRLEN', c.key.drawn) or 0
    if length ~= DRAWN_ID_BYTES * (d.drawn + 1) then
        found(c, 13, 'drawn', REPORT_DRAW,
            '%.0f visitors were drawn, but their list has %d bytes, not 16 for each and 16 more', d.drawn, length)
    end
    for lane = 0, c.exists.waiting and defs.LANES_MAX - 1 or -1 do
        local first = lane * defs.LANE
        undrawn = undrawn + call('ZCOUNT', c.key.waiting, text.int(first + 1), text.int(first + d.cut))
    end
    if undrawn > 0 then
        found(c, 13, 'undrawn', REPORT_DRAW, 'visitors wait at places from before the draw, though it is done')
    end
end

---- the ingest stream, its group, and ends

local AGAIN = 'the dispatcher makes it again within a minute; if not, restart it'

local function check_ingest(c)
    local _, group, unread = ingest.oldest_unapplied(c)
    if not c.exists.ingest then
        found(c, 8, 'ingest', AGAIN, 'the ingest stream is gone')
    elseif not group then
        found(c, 8, 'group', AGAIN, 'the consumer group %s of the ingest stream is gone', defs.INGEST_GROUP)
    end
    for _, row in ipairs(group and call('XPENDING', c.key.ingest, defs.INGEST_GROUP, '-', '+', 10) or {}) do
        if row[2] ~= defs.INGEST_CONSUMER then
            found(c, 8, 'foreign',
                format('nothing else may read with the group %s; give the entry back: XCLAIM %s %s dispatcher 0 %s',
                    defs.INGEST_GROUP, c.key.ingest, defs.INGEST_GROUP, row[1]),
                'the entry %s of the ingest stream was read by "%s", which is no dispatcher', row[1], row[2])
        elseif row[3] > c.patience then
            found(c, 8, 'pending', 'look at the log of the dispatcher; is one running?',
                'the entry %s of the ingest stream has been read, but not applied, for %d s', row[1], row[3] / 1000)
        end
    end
    local waits = unread and c.now - text.id_ms(unread[1]) or 0
    if waits > c.patience then
        found(c, 8, 'unread', 'is a dispatcher running, and ready?',
            'the entry %s of the ingest stream has not been read for %d s', unread[1], waits / 1000)
    end
end

-- It ends by the admitter, and its time passes from the first batch on.
local function check_recovery(c)
    local till, started = unpack(call('HMGET', c.key.state, 'recover_until', 'started'))
    till = tonumber(till) or 0
    if till > 0 and c.now - till > c.patience then
        found(c, 9, 'recovery', started and 'look at the log of the admitter; is one running?'
                or 'no worker has told what it remembers: are a worker and a dispatcher running?',
            'the recovery should have ended %d s ago', (c.now - till) / 1000)
    end
end

local function check_ends(c)
    for _, at in ipairs({ 0, -1 }) do
        local row = call('ZRANGE', c.key.ended, at, at, 'WITHSCORES')
        local score = tonumber(row[2])
        if score and (score ~= floor(score) or score < 0 or score >= 9007199254740992 or score % 8 < 1) then
            found(c, 9, 'end:' .. row[1], 'ZREM ' .. c.key.ended .. ' and the visitor',
                'the end of visitor "%s" cannot be right: %s', row[1], row[2])
        elseif score and score / 8 > c.now + 60000 then -- an honest end
            found(c, 9, 'ahead:' .. row[1], 'the expirer corrects it: is one running?',
                'the end of visitor "%s" is %.0f s ahead of the clock of the server', row[1],
                (score / 8 - c.now) / 1000)
        end
    end
end

local function check_batches(c)
    local rows = call('HLEN', c.key.state) <= 2000 and call('HGETALL', c.key.state) or {}
    for i = 1, #rows, 2 do
        local worker = match(rows[i], '^' .. defs.BATCH_FIELD .. '(.*)')
        if worker and not text.parse_batch(rows[i + 1]) then
            found(c, 8, 'batch:' .. worker, format('HDEL %s %s, and restart that worker', c.key.state, rows[i]),
                'what the dispatcher remembers of worker "%s" cannot be read: %s', worker, rows[i + 1])
        end
    end
end

local WANTED = { 'policy', 'session_sliding', 'lanes', 'default_lane', 'opens_at', 'join', 'on_store_error', 'mode',
    'target_url' }
for i = 1, #settings.REQUIRED do WANTED[#WANTED + 1] = settings.REQUIRED[i] end

entry('audit_state', { 'no-writes' }, function(keys, args)
    local c, note = audit.begin(keys), ''
    local exists = {}
    c.patience, c.v, c.exists = args[1] + 0, {}, exists
    if not check_types(c) then return nil end
    c.size = { waiting = exists.waiting and call('ZCARD', c.key.waiting) or 0,
        active = exists.active and call('ZCARD', c.key.active) or 0,
        sessions = exists.sessions and call('HLEN', c.key.sessions) or 0 }
    if exists.state then
        read_numbers(c, COUNTERS)
        read_numbers(c, OTHERS)
        check_sizes(c)
        check_totals(c)
        check_numbers(c)
        lanes.check(c)
        check_recovery(c)
        check_batches(c)
        check_draw(c)
    else
        found(c, 10, 'state', RESTORE_DATA, '%s is missing, but other keys of the queue exist', c.key.state)
    end
    if exists.config then
        local values = call('HMGET', c.key.config, unpack(WANTED))
        for i, name in ipairs(WANTED) do
            if not values[i] then
                found(c, 10, 'setting:' .. name, format('set it again: `tellerline queue set QUEUE %s=...`', name),
                    'the setting %s is missing', name)
            end
        end
        note = check_capacity(c)
        if exists.state and exists.sessions then overbook.check(c, c.size.active, c.v.admit_capacity) end
        if exists.state and exists.events then
            rate.check(c)
            settings.check_mode(c)
        end
    else
        found(c, 10, 'config', 'set them again: `tellerline queue set QUEUE capacity=... ...`', 'the settings are gone')
    end
    check_ingest(c)
    if exists.ended then check_ends(c) end
    return { c.size.waiting, c.size.active, c.findings, c.n_findings, note }
end)
