-- SPDX-License-Identifier: Apache-2.0
-- The state of a queue, written again where it is missing or cannot be read.

local LOOK_BACK = 1000 -- events read to find the highest seq

-- nil for one that another program wrote.
local function unpack_entry(fields)
    local is_read, entry = pcall(cmsgpack.unpack, fields[2] or '')
    return is_read and type(entry) == 'table' and entry[1] == EVENTS_VERSION and type(entry[6]) == 'table' and entry
        or nil
end

local function last_entry()
    local last = redis.call('XREVRANGE', K_EVENTS, '+', '-', 'COUNT', 1)[1]
    return last and unpack_entry(last[2])
end

-- The highest seq that the line and the last events name.
local function highest_seq()
    local highest = 0
    for lane = 0, 15 do
        local last = redis.call('ZRANGE', K_WAITING, '(' .. int((lane + 1) * LANE), int(lane * LANE), 'BYSCORE', 'REV',
            'LIMIT', 0, 1, 'WITHSCORES')[2]
        highest = math.max(highest, last and tonumber(last) % LANE or 0)
    end
    for _, entry in ipairs(redis.call('XREVRANGE', K_EVENTS, '+', '-', 'COUNT', LOOK_BACK)) do
        for _, event in ipairs((unpack_entry(entry[2]) or { [6] = {} })[6]) do
            if event[1] == EVENT.joined or event[1] == EVENT.admitted then
                local at = 0
                for i = 1, #event[2], 2 do
                    at = at + event[2][i] + event[2][i + 1]
                    highest = math.max(highest, (at - 1) % LANE)
                end
            end
        end
    end
    return highest
end

-- Writes the state again: of the same generation, with the sizes that the sets have, and as of another store, so that a
-- new incarnation moves its numbers on. Totals start from those who are there. Presence starts now, so that nobody is
-- judged absent; and the time in which tickets may name a lost generation, which no first batch would begin.
local function restore_state()
    local entry = last_entry()
    if not entry then
        return false
    end
    local waiting, active = redis.call('ZCARD', K_WAITING), redis.call('ZCARD', K_ACTIVE)
    local waiting_ttl = tonumber(redis.call('HGET', K_CONFIG, 'waiting_ttl'))
    record_change('restore', {}, { state = 'written again from the last event', generation = int(entry[3]) })
    local marks = waiting_ttl and add_mark('', bucket_at(now_ms(), waiting_ttl), '0') or ''
    redis.call('HSET', K_STATE, 'generation', int(entry[3]), 'store', 'lost', 'seq', int(highest_seq()), 'event',
        int(entry[2]), 'fence', 0, 'incarnation', int(number_base(now_ms())), 'waiting', waiting, 'active', active,
        'joined', waiting + active, 'admitted', active, 'completed', 0, 'expired', 0, 'left', 0, 'unclaimed', 0,
        'absent', 0, 'removed', 0, 'marks', marks, 'bucket', '', 'admit_capacity', 0, 'notice', '',
        'started', int(now_ms()), 'about', ABOUT)
    return true
end

local COUNTERS = { 'generation', 'event', 'seq', 'fence', 'waiting', 'active', 'joined', 'left', 'expired', 'completed',
    'admitted', 'unclaimed', 'absent' }

-- Returns the counters that are missing, negative or no whole numbers, as name -> text; nil when there are none.
local function damaged_counters()
    local texts, damaged = redis.call('HMGET', K_STATE, 'base_seq', unpack(COUNTERS)), {}
    for i, name in ipairs(COUNTERS) do
        if not parse_counter(texts[i + 1]) then
            damaged[name] = texts[i + 1] or ''
        end
    end
    if texts[1] and not parse_counter(texts[1]) then -- queues of older releases have none
        damaged.base_seq = texts[1]
    end
    return next(damaged) and damaged or nil
end

local function names_of(damaged)
    local names = {}
    for name in pairs(damaged) do
        names[#names + 1] = name
    end
    table.sort(names)
    return table.concat(names, ', ')
end

-- Gives the damaged totals what the others leave for them. Of one damaged total this is the number that was there; of
-- several, it is not known which had how many.
local function restore_totals(c)
    local rest = (c.joined or 0) - c.waiting - c.active - (c.left or 0) - (c.expired or 0) - (c.completed or 0)
    for _, name in ipairs({ 'left', 'expired', 'completed' }) do
        if not c[name] then
            c[name], rest = math.max(0, rest), 0
        end
    end
    c.joined = c.joined or c.waiting + c.active + c.left + c.expired + c.completed
    c.unclaimed, c.absent = c.unclaimed or 0, c.absent or 0
    c.admitted = c.admitted or c.active + c.completed + c.unclaimed
end

-- Writes the damaged counters again. Returns whether it could: the generation stands in the events alone.
local function restore_counters(damaged)
    local c, entry, after = {}, last_entry(), {}
    for i, text in ipairs(redis.call('HMGET', K_STATE, unpack(COUNTERS))) do
        c[COUNTERS[i]] = parse_counter(text)
    end
    c.generation = c.generation or entry and entry[3]
    if not c.generation then
        return false
    end
    c.waiting, c.active = c.waiting or redis.call('ZCARD', K_WAITING), c.active or redis.call('ZCARD', K_ACTIVE)
    restore_totals(c)
    if not (c.event and c.seq and c.fence) or damaged.base_seq then
        after.store = 'lost' -- a new incarnation moves the numbers on
        c.event, c.seq, c.fence = c.event or entry and entry[2] or 0, c.seq or highest_seq(), c.fence or 0
        c.base_seq = 0
    end
    for name in pairs(damaged) do
        after[name] = int(c[name])
    end
    record_change('restore', damaged, after)
    for name, text in pairs(after) do
        redis.call('HSET', K_STATE, name, text)
    end
    return true
end
