-- SPDX-License-Identifier: Apache-2.0
-- audit_state: what can be wrong with a queue as a whole, at one moment. Changes nothing.
--
-- args     1 how long, in ms, an entry may wait to be applied
-- returns  nil when nothing of the queue exists, else
--          AUDIT_STATE: how many wait, how many are active, findings (line/audit.lua), how many, note or ''

-- The context, beside what audit.begin sets:
--   exists   the keys that are there, and of the right type
--   size     of waiting, active and sessions
--   v        the counters of the state by name; nil when missing or unreadable
--   patience args[1]

local found = audit.found
local RESTORE_DATA = 'stop the programs and restore the keys of the queue from a backup, or give the queue up'
local CORRECT = 'pause the queue, correct the counter with HSET, and report how it came to this'

---- the types of the keys: what has another one is treated as missing below

-- Returns whether there is anything of the line, or a lease.
local function check_types(c)
    local anything = false
    c.exists = {}
    for _, each in ipairs(defs.KEY) do
        local key = c.key[each.name]
        local is = call('TYPE', key).ok
        anything = anything or is ~= 'none' and (each.whose == 'line' or each.whose == 'lease')
        c.exists[each.name] = is == each.type
        if is ~= 'none' and is ~= each.type then
            found(c, 10, 'type:' .. key, key .. ' is a ' .. is .. ', not a ' .. each.type,
                'rename the key away; the programs make it again, or restore it from a backup')
        end
    end
    return anything
end

local function size(c, command, name) return c.exists[name] and call(command, c.key[name]) or 0 end

---- the counters of the state

local COUNTERS = { 'admit_capacity' } -- these, too
for i = 1, #defs.COUNTER do COUNTERS[i + 1] = defs.COUNTER[i] end

local function read_counters(c)
    local texts, v = call('HMGET', c.key.state, unpack(COUNTERS)), c.v
    for i, name in ipairs(COUNTERS) do
        local t = texts[i]
        v[name] = match(t or '', '^%-?%d+$') and tonumber(t)
        if not t then
            found(c, 10, 'missing:' .. name, 'the state has no field ' .. name, RESTORE_DATA)
        elseif not v[name] then
            found(c, 10, 'unreadable:' .. name, 'the field ' .. name .. ' of the state is no number: ' .. t, CORRECT)
        elseif match(t, '^%-') then
            found(c, 1, 'negative:' .. name, 'the counter ' .. name .. ' is negative: ' .. t, CORRECT)
        end
    end
    if v.generation == 0 then found(c, 10, 'generation', 'the state has the generation 0', RESTORE_DATA) end
    c.generation = v.generation
end

local function check_sizes(c)
    local v = c.v
    for _, name in ipairs({ 'waiting', 'active' }) do
        if v[name] and v[name] ~= c.size[name] then
            found(c, 1, 'size:' .. name,
                format('the counter %s is %.0f, but %d are %s', name, v[name], c.size[name], name), CORRECT)
        end
    end
    if c.size.sessions ~= c.size.active then
        found(c, 1, 'sessions', c.size.active .. ' are active, but there are ' .. c.size.sessions .. ' sessions',
            'remove sessions without a visitor in the active set, and visitors without a session')
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
        found(c, 5, 'joined',
            format('%.0f joined, but waiting %.0f + active %.0f + completed %.0f + expired %.0f + left %.0f is %.0f',
                v.joined, v.waiting, v.active, v.completed, v.expired, v.left, known), CORRECT)
    end
    if v.admitted > v.joined then
        found(c, 5, 'admitted', format('%.0f were admitted, but only %.0f joined', v.admitted, v.joined), CORRECT)
    elseif v.admitted < v.active + v.completed + v.unclaimed then
        found(c, 5, 'admitted',
            format('%.0f were admitted, but active %.0f + completed %.0f + unclaimed %.0f is more', v.admitted,
                v.active, v.completed, v.unclaimed), CORRECT)
    end
    if v.unclaimed + v.absent + v.removed > v.expired then
        found(c, 5, 'expired',
            format('%.0f expired, but unclaimed %.0f + absent %.0f + removed %.0f is more', v.expired, v.unclaimed,
                v.absent, v.removed), CORRECT)
    end
end

-- An admission stores the capacity it obeyed as admit_capacity, and nothing else raises active. So active must not
-- exceed that; the capacity of today may have been lowered since. Returns a note.
local function check_capacity(c)
    local policy, most = unpack(call('HMGET', c.key.config, 'policy', 'overbook'))
    local capacity, active, obeyed = settings.check_capacity(c, c.exists.state), c.size.active, c.v.admit_capacity
    if policy == 'rate' or not capacity or active <= capacity + (tonumber(most) or 0) then return '' end
    if obeyed and active > obeyed then
        found(c, 2, 'capacity',
            format('%d are active, but the capacity is %.0f and was %.0f at the last admission', active, capacity,
                obeyed), 'none is admitted until enough have gone; report how it came to this')
        return ''
    end
    return format('%d are active, above the capacity of %.0f: it was lowered, which ends no session', active, capacity)
end

---- numbers that must not go back

local function check_last_entry(c, written)
    local v = c.v
    if not written then
        found(c, 8, 'entry', 'the last entry of the events stream cannot be read',
            'nothing else may write it; restart the workers')
        return
    end
    if written[3] ~= v.generation then
        found(c, 7, 'generation',
            format('the last event is of generation %.0f, the state of %.0f', written[3], v.generation or 0),
            RESTORE_DATA)
        return
    end
    if v.event and written[2] ~= v.event then
        found(c, 7, 'event',
            format('the last event has number %.0f, but the state counts %.0f: %s', written[2], v.event,
                v.event < written[2] and 'the counter was set back' or 'the end of the events stream is missing'),
            'set `event` of the state above both numbers: every program then reads the line again')
    elseif written[4] ~= v.waiting or written[5] ~= v.active then
        found(c, 7, 'entry sizes',
            format('the last event says %.0f waiting and %.0f active, the state %.0f and %.0f', written[4], written[5],
                v.waiting or -1, v.active or -1), CORRECT)
    end
end

local function check_numbers(c)
    local v, since = c.v, call('HMGET', c.key.state, 'base_seq', 'found_event')
    local seq_base, event_base = tonumber(since[1]), tonumber(since[2])
    local highest = seq_base or 0
    if since[1] and not seq_base then
        found(c, 10, 'unreadable:base_seq', 'the field base_seq of the state is no number: ' .. since[1], CORRECT)
    end
    local last = c.exists.events and call('XREVRANGE', c.key.events, '+', '-', 'COUNT', 20) or {}
    if last[1] then
        check_last_entry(c, state.entry(last[1][2]))
    elseif (v.joined or 0) > 0 then
        found(c, 8, 'events', 'the events stream is gone, though visitors have joined',
            'raise `event` of the state by one: every program then reads the line again')
    end
    for _, row in ipairs(last) do
        local written = state.entry(row[2])
        highest = max(highest, written and written[3] == v.generation and state.highest_seq(written) or 0)
    end
    if v.seq and v.seq < highest then
        found(c, 7, 'seq',
            format('the state counts numbers up to %.0f, but %.0f was given out: it was set back', v.seq, highest),
            'numbers will be given out twice: pause the queue and set `seq` of its state to more than that')
    end
    if v.event and event_base and v.event < event_base then
        found(c, 7, 'event base',
            format('the state counts events up to %.0f, but %.0f was reached', v.event, event_base),
            'set `event` of the state above that')
    end
end

---- the ingest stream, its group, leases, ends

local AGAIN = 'the dispatcher makes it again within a minute; if not, restart it'

local function check_pending(c)
    local rows = call('XPENDING', c.key.ingest, defs.INGEST_GROUP, '-', '+', 10)
    for _, row in ipairs(rows) do
        if row[2] ~= defs.INGEST_CONSUMER then
            found(c, 8, 'foreign',
                format('the entry %s of the ingest stream was read by "%s", which is no dispatcher', row[1], row[2]),
                format('nothing else may read with the group %s; give the entry back: XCLAIM %s %s dispatcher 0 %s',
                    defs.INGEST_GROUP, c.key.ingest, defs.INGEST_GROUP, row[1]))
        elseif row[3] > c.patience then
            found(c, 8, 'pending',
                format('the entry %s of the ingest stream has been read, but not applied, for %d s', row[1],
                    row[3] / 1000), 'look at the log of the dispatcher; is one running?')
        end
    end
end

local function check_ingest(c)
    if not c.exists.ingest then
        found(c, 8, 'ingest', 'the ingest stream is gone', AGAIN)
        return
    end
    local _, group, unread = ingest.oldest_unapplied(c)
    if not group then
        found(c, 8, 'group', 'the consumer group ' .. defs.INGEST_GROUP .. ' of the ingest stream is gone', AGAIN)
        return
    end
    check_pending(c)
    local waits = unread and c.now - text.id_ms(unread[1]) or 0
    if waits > c.patience then
        found(c, 8, 'unread',
            format('the entry %s of the ingest stream has not been read for %d s', unread[1], waits / 1000),
            'is a dispatcher running, and ready?')
    end
end

local function check_leases(c)
    for _, each in ipairs(defs.KEY) do
        local role, key = each.name, c.key[each.name]
        if each.whose == 'lease' and c.exists[role] and call('PTTL', key) == -1 then
            found(c, 9, 'lease:' .. role, format('the lease %s never runs out: no other %s can take it', key, role),
                'DEL ' .. key .. '; a running ' .. role .. ' takes it again')
        end
    end
end

-- It ends by the admitter, and its time passes from the first batch on.
local function check_recovery(c)
    local till, started = unpack(call('HMGET', c.key.state, 'recover_until', 'started'))
    till = tonumber(till) or 0
    if till > 0 and c.now - till > c.patience then
        found(c, 9, 'recovery', format('the recovery should have ended %d s ago', (c.now - till) / 1000),
            started and 'look at the log of the admitter; is one running?'
                or 'no worker has told what it remembers: are a worker and a dispatcher running?')
    end
end

local function check_ends(c)
    for _, at in ipairs({ 0, -1 }) do
        local row = call('ZRANGE', c.key.ended, at, at, 'WITHSCORES')
        local score = tonumber(row[2])
        if score and (score ~= floor(score) or score < 0 or score >= 9007199254740992 or score % 8 < 1) then
            found(c, 9, 'end:' .. row[1], 'the end of visitor "' .. row[1] .. '" cannot be right: ' .. tostring(row[2]),
                'ZREM ' .. c.key.ended .. ' and the visitor')
        elseif score and score / 8 > c.now + 60000 then -- an honest end
            found(c, 9, 'ahead:' .. row[1], format('the end of visitor "%s" is %.0f s ahead of the clock of the server',
                row[1], (score / 8 - c.now) / 1000), 'the expirer corrects it: is one running?')
        end
    end
end

local function check_batches(c)
    local rows = call('HLEN', c.key.batches) <= 1000 and call('HGETALL', c.key.batches) or {}
    for i = 1, #rows, 2 do
        if not text.parse_batch(rows[i + 1]) then
            found(c, 8, 'batch:' .. rows[i],
                format('what the dispatcher remembers of worker "%s" cannot be read: %s', rows[i], rows[i + 1]),
                format('HDEL %s %s, and restart that worker', c.key.batches, rows[i]))
        end
    end
end

local WANTED = { 'policy', 'capacity', 'session_ttl', 'session_sliding', 'session_max', 'claim_ttl', 'waiting_ttl',
    'lanes', 'default_lane', 'opens_at', 'join', 'on_store_error', 'paused', 'target_url' }

local function check_settings(c)
    if not c.exists.config then
        found(c, 10, 'config', 'the settings are gone', 'set them again: `tellerline set QUEUE capacity=... ...`')
        return
    end
    local values = call('HMGET', c.key.config, unpack(WANTED))
    for i, name in ipairs(WANTED) do
        if not values[i] then
            found(c, 10, 'setting:' .. name, 'the setting ' .. name .. ' is missing',
                format('set it again: `tellerline set QUEUE %s=...`', name))
        end
    end
end

entry('audit_state', { 'no-writes' }, function(keys, args)
    local c, note = audit.begin(keys), ''
    c.patience, c.v = args[1] + 0, {}
    if not check_types(c) then return nil end
    c.size = { waiting = size(c, 'ZCARD', 'waiting'), active = size(c, 'ZCARD', 'active'),
        sessions = size(c, 'HLEN', 'sessions') }
    local exists = c.exists
    if exists.state then
        read_counters(c)
        check_sizes(c)
        check_totals(c)
        check_numbers(c)
        lanes.check(c)
        check_recovery(c)
    else
        found(c, 10, 'state', c.key.state .. ' is missing, but other keys of the queue exist', RESTORE_DATA)
    end
    check_settings(c)
    if exists.config then
        note = check_capacity(c)
        if exists.state and exists.sessions then overbook.check(c, c.size.active, c.v.admit_capacity) end
        if exists.state and exists.events then
            rate.check(c)
            settings.check_mode(c)
        end
    end
    check_ingest(c)
    check_leases(c)
    if exists.ended then check_ends(c) end
    if exists.batches then check_batches(c) end
    local R = defs.AUDIT_STATE
    return { [R.waiting] = c.size.waiting, [R.active] = c.size.active, [R.findings] = c.findings,
        [R.n_findings] = c.n_findings, [R.note] = note }
end)
