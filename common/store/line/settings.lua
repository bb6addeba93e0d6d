-- SPDX-License-Identifier: Apache-2.0
-- The settings of a queue, as a step needs them. C checks and writes them all, and mend restores the five numbers that
-- no step can do without; another one that is missing or damaged has its default here, so that it stops nobody.

local int, number, counter = text.int, text.number, text.counter

settings.REQUIRED = { 'capacity', 'session_ttl', 'session_max', 'claim_ttl', 'waiting_ttl' } -- those five

local REQUIRED = {}
for i = 1, #settings.REQUIRED do REQUIRED[settings.REQUIRED[i]] = true end
local NUMBERS = { opens_at = 0, closes_at = 0, max_waiting = 0, ['reopen.margin'] = 5, ['reopen.after'] = 10000,
    overbook = 0, recovery_window = 60000, ['capacity.min'] = 0, ['adaptive.load_max'] = 80,
    ['adaptive.latency_max'] = 0, ['adaptive.errors_max'] = 5, ['adaptive.every'] = 5000, ['adaptive.raise'] = 2,
    ['adaptive.cut'] = 30, ['adaptive.hold'] = 15000, ['adaptive.fresh'] = 15000 }
local FLAGS = { session_sliding = true }
local TEXTS = { order = 'arrival', mode = 'open', after_close = 'drain', lane_weights = '' }

-- The settings that a step reads, by kind: required ones, numbers, flags and texts. A step reads what it needs and no
-- more: each costs a small one 1 %.
function settings.list(names)
    local list, n = { ends = {}, defaults = {}, values = {} }, 0
    for kind = 1, 4 do
        for i = 1, #names do
            local name = names[i]
            if kind == (REQUIRED[name] and 1 or NUMBERS[name] and 2 or FLAGS[name] and 3 or 4) then
                n = n + 1
                list[n], list.defaults[n] = name, NUMBERS[name] or TEXTS[name] or false
            end
        end
        list.ends[kind] = n
    end
    return list
end

-- Reads them: name -> number, boolean or text; a text without a default may be false. The table is the same each time,
-- because Lua takes longer to make one than to fill it. Raises NOQUEUE; and DAMAGED for a required one.
function settings.read(c, list)
    local found, s, ends, defaults = call('HMGET', c.key.config, unpack(list)), list.values, list.ends, list.defaults
    for i = 1, ends[1] do
        s[list[i]] = found[i] and counter(found[i]) or state.fail('NOQUEUE', 'the queue has no settings')
    end
    for i = ends[1] + 1, ends[2] do s[list[i]] = found[i] == '0' and 0 or number(found[i]) or defaults[i] end
    for i = ends[2] + 1, ends[3] do s[list[i]] = found[i] == 'true' end
    for i = ends[3] + 1, ends[4] do s[list[i]] = found[i] or defaults[i] end
    return s
end

-- What these settings, names and values in turn, would change: as they are now, and those given; name -> text.
function settings.differences(c, given)
    local names, before, after = {}, {}, {}
    for i = 1, #given, 2 do names[#names + 1] = given[i] end
    for i, old in ipairs(#names > 0 and call('HMGET', c.key.config, unpack(names)) or {}) do
        if old ~= given[2 * i] then before[names[i]], after[names[i]] = old or nil, given[2 * i] end
    end
    return before, after
end

-- Were these settings, names and values in turn, changed by an operator after those that are there? `changed` says it.
function settings.are_newer(c, given)
    local before, after = settings.differences(c, given)
    return (tonumber(after.changed) or 0) > (tonumber(before.changed) or 0)
end

-- Records that these come back, which the store had lost, with what else does in this step. The caller writes them.
function settings.note_return(c, actor, given, before, after)
    local old, new = settings.differences(c, given)
    for name in pairs(new) do
        if name ~= 'changed' then before[name], after[name] = old[name], new[name] end
    end
    changes.record(c, actor, 'restore', before, after)
end

-- The names of the lanes, that of lane 0 first.
function settings.lanes(c)
    local names = {}
    for name in gmatch(call('HGET', c.key.config, 'lanes') or '', '[^,]+') do names[#names + 1] = name end
    return names
end

-- The capacity that counts now, within the bounds of the settings: so a change of these takes effect at the next step.
-- s: the settings capacity and capacity.min, 0: fixed; capacity_now: the field of the state, as adapt has made it. As
-- tl_queue_capacity in C.
function settings.capacity(s, capacity_now)
    local least = min(s['capacity.min'], s.capacity)
    if least == 0 then return s.capacity end
    return max(least, min(s.capacity, number(capacity_now) or least))
end

---- what the record tells

local RULES = { 'policy', 'order', 'mode', 'opens_at', 'lane_weights', 'rate.admit', 'rate.every', 'rate.burst',
    'overbook', 'capacity', 'capacity.min', 'lanes' }

-- Notes the rules by which visitors are admitted from here on, for the archive; with weights also how far the turns of
-- the lanes are; and what the lanes are called. Damaged settings stop nobody here.
function settings.note_rules(c)
    if not c.archive then return end
    local v = pcall_redis('HMGET', c.key.config, unpack(RULES))
    for i = 1, #RULES do v[i] = not v.err and (v[i] or TEXTS[RULES[i]]) or '' end
    local bounds = { capacity = number(v[10]), ['capacity.min'] = number(v[11]) or 0 }
    local found = call('HMGET', c.key.state, 'capacity_now', 'turns')
    local rules = format('policy=%s;order=%s;mode=%s;opens=%s;weights=%s;rate=%s/%s+%s;overbook=%s;capacity=%s',
        v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9],
        bounds.capacity and int(settings.capacity(bounds, c.capacity_now or found[1])) or '')
    if v[5] ~= '' then rules = rules .. ';turns=' .. (match(found[2] or '', '^[%d,]+:%d+:[%d,]+$') or '') end
    if find(v[12], ',') then rules = rules .. ';lanes=' .. v[12] end
    if find(rules, '[^!-~]') then rules = 'damaged' end
    record.note(c, defs.NOTE.rules, 0, { sub(rules, 1, defs.RULES_MAX) }, {})
end

---- when a JOIN gets no new place
--
-- The mode takes no joins, closes_at has passed, or the line is full: until reopen.margin per cent of max_waiting
-- are free and reopen.after has passed, so that it does not open and close with each visitor who leaves. `full_since`
-- of the state tells all readers since when, or 0. common/config/mode.c decides the same.

local FULL = settings.list({ 'reopen.margin', 'reopen.after' })

-- With as many waiting visitors, a JOIN gets no new place. s: max_waiting, mode and closes_at.
function settings.limit(c, s)
    local most = s.max_waiting
    local closed = s.mode ~= 'open' and s.mode ~= 'paused' or s.closes_at > 0 and c.now >= s.closes_at
    if most == 0 then return closed and 0 or 1 / 0 end
    local full, before = settings.read(c, FULL), number(call('HGET', c.key.state, 'full_since')) or 0
    local since, margin = before, ceil(most * full['reopen.margin'] / 100)
    if since == 0 and c.waiting >= most then since = c.now end
    local stays = c.now < since + full['reopen.after'] or margin > 0 and c.waiting + margin > most
    if not stays and c.waiting < most then since = 0 end
    c.full = { most = most, before = before, since = since }
    return (closed or since > 0 and stays) and 0 or most
end

-- After the joins: tells readers when the line became full, or is so no more.
function settings.note_full(c)
    local full = c.full
    if not full then return end
    local since = full.since == 0 and c.waiting >= full.most and c.now or full.since
    if since ~= full.before then
        state.set(c, 'full_since', since)
        state.event_later(c, defs.EVENT.config)
    end
end

---- of an audit

local ADMITS = { open = true, draining = true }
local TAKES_JOINS = { open = true, paused = true }
local EVENTS_BACK = 200 -- entries of the events stream
local GRACE_MS = 1000 -- between the start of a step and the id of its entry

-- What the mode and the times of a queue allow, against its last events.
function settings.check_mode(c)
    local v = call('HMGET', c.key.config, 'mode', 'closes_at', 'after_close')
    local found = call('HMGET', c.key.state, 'full_since', 'base_seq', 'lost_generation')
    local mode, closes_at, full_since, base_seq = v[1] or 'open', tonumber(v[2]) or 0, found[1], tonumber(found[2]) or 0
    if full_since and (tonumber(full_since) or 1 / 0) > c.now + 60000 then
        audit.found(c, 7, 'full_since', 'HDEL ' .. c.key.state .. ' full_since',
            'the time since when the line is full cannot be right: %s', full_since)
    end
    if found[3] and found[3] ~= '0' then return end -- places and sessions come back in every mode
    for _, written in ipairs(audit.entries(c, EVENTS_BACK)) do
        local is_over = closes_at > 0 and written.ms > closes_at + GRACE_MS
        local admits = ADMITS[mode] and not (is_over and v[3] == 'stop')
        local takes_joins = TAKES_JOINS[mode] and not is_over
        for _, event in ipairs(written.events) do
            local what = event[1] == defs.EVENT.admitted and not admits
                and { 'admitted', 'visitors were admitted', 'admitters' }
                or event[1] == defs.EVENT.joined and not takes_joins and { 'joined', 'visitors joined', 'dispatchers' }
            -- The place is new: given after the store was last started, and not one that came back.
            if what and type(event[2]) == 'table' and (tonumber(event[2][1]) or 0) % defs.LANE > base_seq then
                audit.found(c, 12, what[1], 'are all ' .. what[3] .. ' of this version?',
                    '%s although the mode is %s%s', what[2], mode, is_over and ' and closes_at has passed' or '')
            end
        end
    end
end
