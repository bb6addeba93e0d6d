-- SPDX-License-Identifier: Apache-2.0
-- mend: says what is wrong with the data of a queue, and mends what can be mended without guessing.
-- args     1 'look': change nothing | 'memory': the settings given are those a program has in memory | 'file': they are
--            those of the configuration file, or there are none   2 keep
--          3... settings as names and values in turn; and who
-- returns  { what was mended, what is wrong }, each a sentence for the operator or ''; both are '' for a sound queue,
--          and for one that does not exist
--
-- Mends a missing state, and counters of it that cannot be read, from the line and the last event; missing settings
-- from the memory of a program at once, else from the file after a moment in which programs can offer theirs, and then
-- paused; and a missing consumer group. Settings that can be read are never overwritten. In a cluster a state that is
-- missing may be at another node, so only recover writes it again. Each part returns what is wrong and stays so, or
-- nil. c: with how, given, actor and mended (a list of sentences). Work is bounded.

local int, LANE = text.int, defs.LANE
local GRACE_MS = 5000  -- in which a program can offer the settings that it has in memory
local LOOK_BACK = 1000 -- events read to find the highest seq
local FIELDS = state.fields({}, { 'config_lost_ms' })
local NUMBERS = settings.REQUIRED

local function note_mended(c, sentence) c.mended[#c.mended + 1] = sentence end

---- keys of another type

local function find_other_type(c)
    for _, each in ipairs(defs.KEY) do
        local key = c.key[each.name]
        local is = call('TYPE', key).ok
        if is ~= 'none' and is ~= each.type then
            return 'the key ' .. key .. ' is a ' .. is .. ' instead of a ' .. each.type .. '; rename or delete it, '
                .. 'or restore it from a backup'
        end
    end
end

---- the state, written again where it is missing or cannot be read

-- The highest seq that the line and the last events name.
local function highest_seq(c)
    local highest = state.highest_seq(c, LOOK_BACK)
    for lane = 0, defs.LANES_MAX - 1 do
        local last = call('ZRANGE', c.key.waiting, '(' .. int((lane + 1) * LANE), int(lane * LANE), 'BYSCORE', 'REV',
            'LIMIT', 0, 1, 'WITHSCORES')[2]
        highest = max(highest, last and last % LANE or 0)
    end
    return highest
end

-- As the state's own digits; nil for any other text, and for none.
local function parse_counter(t) return t and #t <= 16 and find(t, '^%d+$') and t + 0 or nil end

-- The last event. nil: none can be read; or the state is missing, and so is the line that the event tells of, as in a
-- part of a queue.
local function last_event(c, is_missing)
    local row = state.last_entry(c)
    local last = row and state.entry(row[2])
    local lost = last and is_missing and (last[4] > 0 and call('EXISTS', c.key.waiting) == 0
        or last[5] > 0 and call('EXISTS', c.key.active) == 0)
    return not lost and last or nil
end

-- Writes the damaged counters again, or a whole state that is missing: of the same generation, with the sizes that the
-- sets have. If numbers that are given out once are among them, then as of another store, so that a new incarnation
-- moves them on. Returns whether it could: the generation stands in the events alone. n: the counters that can be read.
local function restore_counters(c, n, damaged, is_missing)
    local last, after = last_event(c, is_missing), {}
    n.generation = n.generation or last and last[3]
    if not n.generation then return false end
    n.waiting, n.active = n.waiting or call('ZCARD', c.key.waiting), n.active or call('ZCARD', c.key.active)
    -- The damaged totals get what the others leave for them. Of one damaged total this is the number that was there; of
    -- several, it is not known which had how many.
    local rest = (n.joined or 0) - n.waiting - n.active - (n.left or 0) - (n.expired or 0) - (n.completed or 0)
    for _, name in ipairs({ 'left', 'expired', 'completed' }) do
        if not n[name] then n[name], rest = max(0, rest), 0 end
    end
    n.joined = n.joined or n.waiting + n.active + n.left + n.expired + n.completed
    n.unclaimed, n.absent, n.removed = n.unclaimed or 0, n.absent or 0, n.removed or 0
    n.admitted = n.admitted or n.active + n.completed + n.unclaimed
    if not (n.event and n.seq and n.fence) or damaged.base_seq then
        after.store = 'lost'
        n.event, n.seq, n.fence = n.event or last and last[2] or 0, n.seq or highest_seq(c), n.fence or 0
        n.base_seq = 0
    end
    for name in pairs(damaged) do after[name] = int(n[name]) end
    if not is_missing then
        changes.record(c, c.actor, 'restore', damaged, after)
        local is_archived = call('HEXISTS', c.key.state, 'archive') == 1
        after.standing = is_archived and record.from_start(c, defs.GAP.corrected) or nil
        state.repair(c, after)
        return true
    end
    changes.record(c, c.actor, 'restore', {},
        { state = 'written again from the last event', generation = after.generation })
    -- Presence starts now, so that nobody is judged absent; and the time in which tickets may name a lost generation,
    -- which no first batch would begin.
    local waiting_ttl = tonumber(call('HGET', c.key.config, 'waiting_ttl'))
    after.marks = waiting_ttl and presence.add_mark('', presence.bucket(c.now, waiting_ttl), '0') or ''
    after.handed = call('EXISTS', c.key.serials) == 1 and '1' or nil
    after.incarnation, after.started = int(state.number_base(c.now)), int(c.now)
    after.restore = 'none:whole' -- nor is an earlier generation lost, which the archive would bring back
    state.create(c, after)
    return true
end

local function mend_state(c)
    local key = c.key
    local is_missing = call('EXISTS', key.state) == 0
    if is_missing and call('EXISTS', key.waiting, key.active, key.config, key.events) == 0 then return nil end
    -- n: the counters, by name; damaged: those that are missing, negative or no whole numbers, as name -> text.
    local texts, n, damaged, names = call('HMGET', key.state, 'base_seq', unpack(defs.COUNTER)), {}, {}, {}
    for i, name in ipairs(defs.COUNTER) do
        n[name] = parse_counter(texts[i + 1])
        if not n[name] then damaged[name] = texts[i + 1] or '' end
    end
    if texts[1] and not parse_counter(texts[1]) then damaged.base_seq = texts[1] end
    for name in pairs(damaged) do names[#names + 1] = name end
    if #names == 0 then return nil end
    sort(names)
    local sentence = 'these fields of ' .. key.state .. ' are missing, negative or no whole numbers: '
        .. concat(names, ', ')
    if is_missing and c.how ~= 'recover' and state.may_move() and last_event(c, true) then
        return state.part_without('state')
    end
    local is_restored = c.how ~= 'look' and restore_counters(c, n, damaged, is_missing)
    if is_missing and not is_restored then
        return 'the key ' .. key.state .. ' is missing but the line exists; ' .. state.WITHOUT
    elseif c.how == 'look' then
        return sentence .. '; a program that needs them writes them again from the line'
    elseif not is_restored then
        return sentence .. '; no event tells the generation: restore the data from a backup'
    end
    note_mended(c, is_missing and 'the key ' .. key.state .. ' was missing and was written again from the last event; '
        .. 'the totals start again' or sentence .. '; they were written again from the line')
end

---- the settings

-- Writes the settings that are missing or no number although they must be one. pauses: the queue admits nobody then; a
-- mode that does so already stays.
local function restore_settings(c, pauses)
    local before, missing = settings.differences(c, c.given)
    for _, name in ipairs(NUMBERS) do before[name] = text.number(before[name]) and before[name] end
    for name in pairs(before) do missing[name] = nil end
    local changed, mode = missing.changed, call('HGET', c.key.config, 'mode')
    missing.changed = nil
    if pauses and (not mode or mode == 'open' or mode == 'draining') then missing.mode = 'paused' end
    changes.record(c, c.actor, 'restore', {}, missing)
    missing.changed = changed
    for name, value in pairs(missing) do call('HSET', c.key.config, name, value) end
    call('HSETNX', c.key.config, 'about', state.ABOUT)
    state.repair(c, { config_lost_ms = false })
    state.commit_config(c)
end

local function mend_settings(c)
    local lost_ms, found = tonumber(c.config_lost_ms), call('HMGET', c.key.config, 'policy', unpack(NUMBERS))
    local are_lost = not found[1]
    for i = 1, #NUMBERS do are_lost = are_lost or not text.number(found[i + 1]) end
    if not are_lost then
        if c.config_lost_ms and c.how ~= 'look' then state.repair(c, { config_lost_ms = false }) end
    elseif c.how == 'memory' and #c.given > 0 then
        restore_settings(c, false)
        note_mended(c, 'the settings were missing and were written again as this program had them in memory')
    elseif c.how == 'file' and #c.given > 0 and lost_ms and c.now - lost_ms >= GRACE_MS then
        restore_settings(c, true)
        note_mended(c, 'the settings were missing and no program had them in memory: they are those of the '
            .. 'configuration file now, and nobody is admitted; check them, then `tellerline queue open QUEUE`')
    else
        if c.how ~= 'look' and not lost_ms then -- tell the programs that have them in memory
            state.set(c, 'config_lost_ms', c.now)
            state.commit_config(c)
        end
        return 'the settings in ' .. c.key.config .. ' are missing; they come back from a program that has them in '
            .. 'memory, or from the configuration file: list the queue there and restart a program'
    end
end

---- the consumer group, and consumers that are no dispatchers

local function mend_group(c)
    local group = pcall_redis('XPENDING', c.key.ingest, defs.INGEST_GROUP)
    if group.err and c.how == 'look' then
        return 'the consumer group of ' .. c.key.ingest .. ' is missing'
    elseif group.err then
        call('XGROUP', 'CREATE', c.key.ingest, defs.INGEST_GROUP, '0', 'MKSTREAM')
        note_mended(c, 'the consumer group of ' .. c.key.ingest .. ' was missing and was made again')
    end
    for _, consumer in ipairs(group[4] or {}) do
        if consumer[1] ~= defs.INGEST_CONSUMER then
            return 'entries of ' .. c.key.ingest .. ' were read by the consumer ' .. sub(consumer[1], 1, 64)
                .. ', which is no dispatcher: stop that program; a dispatcher claims them'
        end
    end
end

---- scores at either end of a sorted set

local function find_odd_score(c)
    for key, limit in pairs({ [c.key.waiting] = defs.LANES_MAX * LANE, [c.key.active] = 2 ^ 53 }) do
        for _, rank in ipairs({ 0, -1 }) do
            local id, score = unpack(call('ZRANGE', key, rank, rank, 'WITHSCORES'))
            if score and (text.number(score) or limit) >= limit then
                return 'the score ' .. score .. ' in ' .. key .. ' makes no sense; remove it: ZREM ' .. key .. ' '
                    .. sub(id, 1, 64)
            end
        end
    end
end

entry('mend', { 'allow-oom' }, function(keys, args)
    local c = state.begin(keys, args[2])
    c.how, c.given, c.actor, c.mended = args[1], { unpack(args, 3, #args - 3) }, changes.actor(args), {}
    local wrong = find_other_type(c) or mend_state(c)
    if not wrong and call('EXISTS', c.key.state) == 1 then
        wrong = state.find_part(state.read(c, FIELDS))
        if not wrong and c.how ~= 'look' then state.open(c, FIELDS) end
        wrong = wrong or mend_settings(c) or mend_group(c) or find_odd_score(c)
    end
    return { concat(c.mended, '; '), wrong or '' }
end)

-- recover: moves the end of a recovery, or begins one, because the operator says so.
-- args     1 keep   2 ms from now; 0 ends the recovery, and from then on none is named if none is known   and who
-- A part of a queue (state.find_part) goes on from here, also one without its state. Where it is archived, the rest
-- comes back (line/rewind.lua).

local RECOVERY_FIELDS = state.fields({}, { 'lost_generation', 'lost_by', 'recover_until', 'started', 'restore' })

entry('recover', { 'allow-oom' }, function(keys, args)
    local c, left_ms = state.begin(keys, args[1]), args[2] + 0
    c.takes_part, c.how, c.actor, c.mended = true, 'recover', changes.actor(args), {}
    local wrong = call('EXISTS', c.key.state) == 0 and (find_other_type(c) or mend_state(c))
    if wrong then state.fail('DAMAGED', wrong) end
    state.open(c, RECOVERY_FIELDS)
    if c.took_part or c.mended[1] then visitor.drop_half_sessions(c) end
    local lost, till, by = tonumber(c.lost_generation) or 0, tonumber(c.recover_until) or 0, c.lost_by or ''
    local before, ends = { recover_until = int(till), lost_generation = int(lost) }, c.now + left_ms
    if left_ms == 0 then -- from now on none begins by itself
        ends, by = till > 0 and c.now or 0, recovery.NAMED_BY.operator
        if lost == 0 then lost = c.generation end
    elseif lost == c.generation and not rewind.stage(c, c.restore) and call('EXISTS', c.key.retired) == 0 then
        lost, by = 0, '' -- open again who may be named
    end
    state.check(c, { 'waiting', 'active', 'events' })
    local after = { recover_until = int(ends), lost_generation = int(lost) }
    for name, value in pairs(before) do -- what differs is recorded
        if after[name] == value then before[name], after[name] = nil, nil end
    end
    changes.record(c, c.actor, 'recover', before, after)
    if till == 0 then state.set(c, 'recover_since', c.now) end
    state.set(c, 'recover_until', ends)
    state.set(c, 'started', tonumber(c.started) or c.now)
    state.set(c, 'lost_generation', lost)
    state.set(c, 'lost_by', by)
    state.commit_config(c)
end)
