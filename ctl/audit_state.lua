-- SPDX-License-Identifier: Apache-2.0
-- audit_state: what can be wrong with a queue as a whole, at one moment. Changes nothing.
-- Flags: no-writes
-- Parts: prelude.records prelude.budget prelude.capacity prelude.called
-- Parts: audit.findings audit.budget audit.capacity audit.called audit.mode audit.lanes
--
-- ARGV     1 how long, in ms, an entry may wait to be applied
-- Returns  nil when nothing of the queue exists, else
--          { how many wait, how many are active, findings (audit.findings.lua), how many findings, note or '' }
local patience = tonumber(ARGV[1])
local now = now_ms()

---- the types of the keys: what has another one is treated as missing below

local TYPES = { [K_STATE] = 'hash', [K_CONFIG] = 'hash', [K_WAITING] = 'zset', [K_ACTIVE] = 'zset',
    [K_SESSIONS] = 'hash', [K_ENDED] = 'zset', [K_EVENTS] = 'stream', [K_INGEST] = 'stream', [K_BATCHES] = 'hash' }
local LEASES = { 'dispatcher', 'admitter', 'expirer' }
for _, role in ipairs(LEASES) do
    TYPES[key_of(role)] = 'string'
end
-- Returns the type of a key, which should be the wanted one where the key exists.
local function check_type(key, wanted)
    local is = redis.call('TYPE', key).ok
    if is ~= 'none' and is ~= wanted then
        found(10, 'type:' .. key, key .. ' is a ' .. is .. ', not a ' .. wanted,
            'rename the key away; the programs make it again, or restore it from a backup')
    end
    return is
end

local exists, anything = {}, false
for key, wanted in pairs(TYPES) do
    local is = check_type(key, wanted)
    anything = anything or is ~= 'none'
    exists[key] = is == wanted
end
if not anything then
    return nil
end
for name, wanted in pairs({ serials = 'hash', reports = 'zset', lost = 'hash', held = 'zset', drawn = 'string',
    poison = 'stream', changes = 'stream' }) do
    check_type(key_of(name), wanted)
end

local function size(command, key)
    return exists[key] and redis.call(command, key) or 0
end
local sizes = { waiting = size('ZCARD', K_WAITING), active = size('ZCARD', K_ACTIVE),
    sessions = size('HLEN', K_SESSIONS) }

---- the counters of the state

local COUNTERS = { 'generation', 'seq', 'event', 'fence', 'waiting', 'active', 'joined', 'admitted', 'completed',
    'expired', 'left', 'unclaimed', 'absent', 'admit_capacity' }
local v = {} -- by name; nil when missing or unreadable

local function read_counters()
    local texts = redis.call('HMGET', K_STATE, unpack(COUNTERS))
    for i, name in ipairs(COUNTERS) do
        local text = texts[i]
        if not text then
            found(10, 'missing:' .. name, 'the state has no field ' .. name, RESTORE_DATA)
        elseif string.match(text, '^%-%d+$') then
            found(1, 'negative:' .. name, 'the counter ' .. name .. ' is negative: ' .. text, CORRECT)
            v[name] = tonumber(text)
        elseif not string.match(text, '^%d+$') then
            found(10, 'unreadable:' .. name, 'the field ' .. name .. ' of the state is no number: ' .. text, CORRECT)
        else
            v[name] = tonumber(text)
        end
    end
    if v.generation == 0 then
        found(10, 'generation', 'the state has the generation 0', RESTORE_DATA)
    end
end

local function check_sizes()
    for _, name in ipairs({ 'waiting', 'active' }) do
        if v[name] and v[name] ~= sizes[name] then
            found(1, 'size:' .. name,
                format('the counter %s is %.0f, but %d are %s', name, v[name], sizes[name], name), CORRECT)
        end
    end
    if sizes.sessions ~= sizes.active then
        found(1, 'sessions', sizes.active .. ' are active, but there are ' .. sizes.sessions .. ' sessions',
            'remove sessions without a visitor in the active set, and visitors without a session')
    end
end

-- The one place where the totals are compared. Places that came back after a loss count as joined; sessions that came
-- back, as admitted, too.
local function check_totals()
    for _, name in ipairs(COUNTERS) do
        if not v[name] then
            return
        end
    end
    local known = v.waiting + v.active + v.completed + v.expired + v.left
    if v.joined ~= known then
        found(5, 'joined',
            format('%.0f joined, but waiting %.0f + active %.0f + completed %.0f + expired %.0f + left %.0f is %.0f',
                v.joined, v.waiting, v.active, v.completed, v.expired, v.left, known), CORRECT)
    end
    if v.admitted > v.joined then
        found(5, 'admitted', format('%.0f were admitted, but only %.0f joined', v.admitted, v.joined), CORRECT)
    elseif v.admitted < v.active + v.completed + v.unclaimed then
        found(5, 'admitted',
            format('%.0f were admitted, but active %.0f + completed %.0f + unclaimed %.0f is more', v.admitted,
                v.active, v.completed, v.unclaimed), CORRECT)
    end
    local removed = tonumber(redis.call('HGET', K_STATE, 'removed') or '') or 0 -- queues of older releases have none
    if v.unclaimed + v.absent + removed > v.expired then
        found(5, 'expired',
            format('%.0f expired, but unclaimed %.0f + absent %.0f + removed %.0f is more', v.expired, v.unclaimed,
                v.absent, removed), CORRECT)
    end
end

-- An admission stores the capacity it obeyed as admit_capacity, and nothing else raises active. So active must not
-- exceed that; the capacity of today may have been lowered since. Returns a note.
local function check_capacity()
    local policy = redis.call('HGET', K_CONFIG, 'policy')
    local capacity = check_steering(exists[K_STATE])
    if policy == 'rate' or not capacity or sizes.active <= capacity + overbook_now() then
        return ''
    end
    if v.admit_capacity and sizes.active > v.admit_capacity then
        found(2, 'capacity',
            format('%d are active, but the capacity is %.0f and was %.0f at the last admission', sizes.active, capacity,
                v.admit_capacity), 'none is admitted until enough have gone; report how it came to this')
        return ''
    end
    return format('%d are active, above the capacity of %.0f: it was lowered, which ends no session', sizes.active,
        capacity)
end

---- numbers that must not go back

-- The highest seq that the entry says somebody joined with; 0 for none.
local function highest_joined(entry)
    local highest = 0
    for _, event in ipairs(type(entry[6]) == 'table' and entry[6] or {}) do
        if event[1] == EVENT.joined and type(event[2]) == 'table' then
            local past = 0
            for i = 1, #event[2], 2 do
                past = past + event[2][i] + (event[2][i + 1] or 1)
                highest = math.max(highest, (past - 1) % LANE)
            end
        end
    end
    return highest
end

local function unpack_entry(fields)
    local ok, entry = pcall(cmsgpack.unpack, fields[2] or '')
    if ok and type(entry) == 'table' and type(entry[2]) == 'number' and type(entry[5]) == 'number' then
        return entry
    end
end

local function check_last_entry(entry)
    if not entry then
        found(8, 'entry', 'the last entry of the events stream cannot be read',
            'nothing else may write it; restart the workers')
        return
    end
    if entry[3] ~= v.generation then
        found(7, 'generation',
            format('the last event is of generation %.0f, the state of %.0f', entry[3], v.generation or 0),
            RESTORE_DATA)
        return
    end
    if v.event and entry[2] ~= v.event then
        found(7, 'event',
            format('the last event has number %.0f, but the state counts %.0f: %s', entry[2], v.event,
                v.event < entry[2] and 'the counter was set back' or 'the end of the events stream is missing'),
            'set `event` of the state above both numbers: every program then reads the line again')
    elseif entry[4] ~= v.waiting or entry[5] ~= v.active then
        found(7, 'entry sizes',
            format('the last event says %.0f waiting and %.0f active, the state %.0f and %.0f', entry[4], entry[5],
                v.waiting or -1, v.active or -1), CORRECT)
    end
end

local function check_numbers()
    local since = redis.call('HMGET', K_STATE, 'base_seq', 'found_event')
    local seq_base, event_base = tonumber(since[1]), tonumber(since[2])
    local highest = seq_base or 0
    if since[1] and not seq_base then
        found(10, 'unreadable:base_seq', 'the field base_seq of the state is no number: ' .. since[1], CORRECT)
    end
    local last = exists[K_EVENTS] and redis.call('XREVRANGE', K_EVENTS, '+', '-', 'COUNT', 20) or {}
    if last[1] then
        check_last_entry(unpack_entry(last[1][2]))
    elseif (v.joined or 0) > 0 then
        found(8, 'events', 'the events stream is gone, though visitors have joined',
            'raise `event` of the state by one: every program then reads the line again')
    end
    for _, row in ipairs(last) do
        local entry = unpack_entry(row[2])
        highest = math.max(highest, entry and entry[3] == v.generation and highest_joined(entry) or 0)
    end
    if v.seq and v.seq < highest then
        found(7, 'seq',
            format('the state counts numbers up to %.0f, but %.0f was given out: it was set back', v.seq, highest),
            'numbers will be given out twice: pause the queue and set `seq` of its state to more than that')
    end
    if v.event and event_base and v.event < event_base then
        found(7, 'event base',
            format('the state counts events up to %.0f, but %.0f was reached', v.event, event_base),
            'set `event` of the state above that')
    end
end

---- the ingest stream, its group, leases, ends

local AGAIN = 'the dispatcher makes it again within a minute; if not, restart it'

local function check_pending()
    local rows = redis.call('XPENDING', K_INGEST, INGEST_GROUP, '-', '+', 10)
    for _, row in ipairs(rows) do
        if row[2] ~= 'dispatcher' then
            found(8, 'foreign',
                format('the entry %s of the ingest stream was read by "%s", which is no dispatcher', row[1], row[2]),
                format('nothing else may read with the group %s; give the entry back: XCLAIM %s %s dispatcher 0 %s',
                    INGEST_GROUP, K_INGEST, INGEST_GROUP, row[1]))
        elseif row[3] > patience then
            found(8, 'pending',
                format('the entry %s of the ingest stream has been read, but not applied, for %d s', row[1],
                    row[3] / 1000), 'look at the log of the dispatcher; is one running?')
        end
    end
    return rows[1]
end

local function check_ingest()
    if not exists[K_INGEST] then
        found(8, 'ingest', 'the ingest stream is gone', AGAIN)
        return
    end
    local group
    for _, row in ipairs(redis.call('XINFO', 'GROUPS', K_INGEST)) do
        if row[2] == INGEST_GROUP then
            group = row
        end
    end
    if not group then
        found(8, 'group', 'the consumer group ' .. INGEST_GROUP .. ' of the ingest stream is gone', AGAIN)
        return
    end
    check_pending()
    local delivered
    for i = 1, #group, 2 do
        delivered = group[i] == 'last-delivered-id' and group[i + 1] or delivered
    end
    local unread = redis.call('XRANGE', K_INGEST, '(' .. delivered, '+', 'COUNT', 1)[1]
    local waits = unread and now - tonumber(string.match(unread[1], '^%d+')) or 0
    if waits > patience then
        found(8, 'unread',
            format('the entry %s of the ingest stream has not been read for %d s', unread[1], waits / 1000),
            'is a dispatcher running, and ready?')
    end
end

local function check_leases()
    for _, role in ipairs(LEASES) do
        local key = key_of(role)
        if exists[key] and redis.call('PTTL', key) == -1 then
            found(9, 'lease:' .. role, format('the lease %s never runs out: no other %s can take it', key, role),
                'DEL ' .. key .. '; a running ' .. role .. ' takes it again')
        end
    end
end

-- It ends by the admitter, and its time passes from the first batch on.
local function check_recovery()
    local till, started = unpack(redis.call('HMGET', K_STATE, 'recover_until', 'started'))
    till = tonumber(till or '') or 0
    if till > 0 and now - till > patience then
        found(9, 'recovery', format('the recovery should have ended %d s ago', (now - till) / 1000),
            started and 'look at the log of the admitter; is one running?'
                or 'no worker has told what it remembers: are a worker and a dispatcher running?')
    end
end

local function check_ends()
    for _, at in ipairs({ 0, -1 }) do
        local row = redis.call('ZRANGE', K_ENDED, at, at, 'WITHSCORES')
        local score = tonumber(row[2])
        if score and (score ~= math.floor(score) or score < 0 or score >= 2 ^ 53 or score % 8 < 1) then
            found(9, 'end:' .. row[1], 'the end of visitor "' .. row[1] .. '" cannot be right: ' .. tostring(row[2]),
                'ZREM ' .. K_ENDED .. ' and the visitor')
        elseif score and score / 8 > now + 60000 then -- an honest end
            found(9, 'ahead:' .. row[1], format('the end of visitor "%s" is %.0f s ahead of the clock of the server',
                row[1], (score / 8 - now) / 1000), 'the expirer corrects it: is one running?')
        end
    end
end

local function check_batches()
    local rows = redis.call('HLEN', K_BATCHES) <= 1000 and redis.call('HGETALL', K_BATCHES) or {}
    for i = 1, #rows, 2 do
        if not parse_batch(rows[i + 1]) then
            found(8, 'batch:' .. rows[i],
                format('what the dispatcher remembers of worker "%s" cannot be read: %s', rows[i], rows[i + 1]),
                format('HDEL %s %s, and restart that worker', K_BATCHES, rows[i]))
        end
    end
end

local function check_settings()
    local WANTED = { 'policy', 'capacity', 'session_ttl', 'session_sliding', 'session_max', 'claim_ttl', 'waiting_ttl',
        'lanes', 'default_lane', 'opens_at', 'join', 'on_store_error', 'paused', 'target_url' }
    if not exists[K_CONFIG] then
        found(10, 'config', 'the settings are gone', 'set them again: `tellerline set QUEUE capacity=... ...`')
        return
    end
    local values = redis.call('HMGET', K_CONFIG, unpack(WANTED))
    for i, name in ipairs(WANTED) do
        if not values[i] then
            found(10, 'setting:' .. name, 'the setting ' .. name .. ' is missing',
                format('set it again: `tellerline set QUEUE %s=...`', name))
        end
    end
end

local note = ''
if not exists[K_STATE] then
    found(10, 'state', K_STATE .. ' is missing, but other keys of the queue exist', RESTORE_DATA)
else
    read_counters()
    check_sizes()
    check_totals()
    check_numbers()
    check_turns()
    check_recovery()
end
check_settings()
if exists[K_CONFIG] then
    note = check_capacity()
    if exists[K_STATE] and exists[K_SESSIONS] then
        check_called(sizes.active, v.admit_capacity)
    end
    if exists[K_STATE] and exists[K_EVENTS] then
        check_budget(now, v.generation)
        check_mode(now, v.generation)
    end
end
check_ingest()
check_leases()
if exists[K_ENDED] then
    check_ends()
end
if exists[K_BATCHES] then
    check_batches()
end
return { sizes.waiting, sizes.active, findings, n_findings, note }
