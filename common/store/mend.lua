-- SPDX-License-Identifier: Apache-2.0
-- mend: says what is wrong with the data of a queue, and mends what can be mended without guessing.
-- Flags: allow-oom
-- Parts: prelude.presence prelude.changes mend.state
--
-- ARGV     1 'look': change nothing | 'memory': the settings given are those a program has in memory | 'file': they are
--            those of the configuration file, or there are none   2 about how many events to keep
--          3... settings as names and values in turn; and who (prelude.changes)
-- Returns  { what was mended, what is wrong }, each a sentence for the operator or ''; both are '' for a sound queue,
--          and for one that does not exist
--
-- Mends a missing state, and counters of it that cannot be read, from the line and the last event; missing settings
-- from the memory of a program at once, else from the file after a moment in which programs can offer theirs, and then
-- paused; and a missing consumer group. Settings that can be read are never overwritten. Work is bounded.
local how, keep = ARGV[1], ARGV[2]
local GRACE_MS = 5000 -- in which a program can offer the settings that it has in memory

---- keys of another type

local TYPES = { { K_STATE, 'hash' }, { K_CONFIG, 'hash' }, { K_WAITING, 'zset' }, { K_ACTIVE, 'zset' },
    { K_SESSIONS, 'hash' }, { K_ENDED, 'zset' }, { K_EVENTS, 'stream' }, { K_INGEST, 'stream' }, { K_BATCHES, 'hash' },
    { reports_key(), 'zset' }, { key_of('serials'), 'hash' }, { key_of('lost'), 'hash' },
    { key_of('changes'), 'stream' }, { key_of('held'), 'zset' }, { key_of('drawn'), 'string' },
    { key_of('poison'), 'stream' }, { key_of('promised'), 'hash' } }
for _, key in ipairs(TYPES) do
    local is = redis.call('TYPE', key[1]).ok
    if is ~= 'none' and is ~= key[2] then
        return { '', 'the key ' .. key[1] .. ' is a ' .. is .. ' instead of a ' .. key[2] .. '; rename or delete it, '
            .. 'or restore it from a backup' }
    end
end

---- the state

local function lost_state()
    return redis.call('EXISTS', K_STATE) == 0
        and redis.call('EXISTS', K_WAITING, K_ACTIVE, K_CONFIG, K_EVENTS) > 0
end

local mended = '' -- sentences with '; ' between them

local function note_mended(sentence)
    mended = mended .. (mended ~= '' and '; ' or '') .. sentence
end

if lost_state() then
    if how == 'look' or not restore_state() then
        return { '', 'the key ' .. K_STATE .. ' is missing but the line exists; restore the data from a backup, or '
            .. 'delete ' .. K_WAITING .. ', ' .. K_ACTIVE .. ' and ' .. K_CONFIG .. ' to start with an empty line' }
    end
    note_mended('the key ' .. K_STATE .. ' was missing and was written again from the last event; the totals start '
        .. 'again')
end
local damaged = redis.call('EXISTS', K_STATE) == 1 and damaged_counters()
if damaged then
    local fields = 'these fields of ' .. K_STATE .. ' are missing, negative or no whole numbers: '
        .. names_of(damaged)
    if how == 'look' then
        return { '', fields .. '; a program that needs them writes them again from the line' }
    elseif not restore_counters(damaged) then
        return { '', fields .. '; no event tells the generation: restore the data from a backup' }
    end
    note_mended(fields .. '; they were written again from the line')
end
local state, config_lost_ms
if how == 'look' then
    state, config_lost_ms = read_state('config_lost_ms')
else
    state, config_lost_ms = open_state('config_lost_ms')
    check_types()
end
if not state then
    return { '', '' }
end

---- the settings

local NUMBERS = { 'capacity', 'session_ttl', 'session_max', 'claim_ttl', 'waiting_ttl' }

local function is_setting(text)
    local number = tonumber(text or '')
    return number and number >= 0 and number < 2 ^ 53 -- no damaged one, either: infinite
end

local function are_settings_lost()
    if not redis.call('HGET', K_CONFIG, 'policy') then
        return true
    end
    for _, value in ipairs(redis.call('HMGET', K_CONFIG, unpack(NUMBERS))) do
        if not is_setting(value) then
            return true
        end
    end
    return false
end

-- Writes the settings that are missing or no number although they must be one.
local function restore_settings(paused)
    local current = {}
    for i = 3, #ARGV, 2 do
        current[ARGV[i]] = redis.call('HGET', K_CONFIG, ARGV[i])
    end
    for _, name in ipairs(NUMBERS) do
        current[name] = is_setting(current[name]) and current[name]
    end
    local missing = paused and { paused = 'true' } or {}
    for i = 3, #ARGV, 2 do
        missing[ARGV[i]] = missing[ARGV[i]] or not current[ARGV[i]] and ARGV[i + 1] or nil
    end
    missing.changed = nil
    record_change('restore', {}, missing)
    for i = 3, #ARGV, 2 do
        if not current[ARGV[i]] then
            redis.call('HSET', K_CONFIG, ARGV[i], ARGV[i + 1])
        end
    end
    redis.call('HSETNX', K_CONFIG, 'about', ABOUT)
    if paused then
        redis.call('HSET', K_CONFIG, 'paused', 'true')
    end
    redis.call('HDEL', K_STATE, 'config_lost_ms')
    commit(state, {}, { { EVENT.config } }, keep)
end

if are_settings_lost() then
    local lost_ms = tonumber(config_lost_ms or '')
    if how == 'memory' and #ARGV > 3 then
        restore_settings(false)
        note_mended('the settings were missing and were written again as this program had them in memory')
    elseif how == 'file' and #ARGV > 3 and lost_ms and now_ms() - lost_ms >= GRACE_MS then
        restore_settings(true)
        note_mended('the settings were missing and no program had them in memory: they are those of the configuration '
            .. 'file now, and the queue is paused; check them, then resume it with `tellerline set QUEUE paused=false`')
    else
        if how ~= 'look' and not lost_ms then -- tell the programs that have them in memory
            commit(state, { 'config_lost_ms', now_ms() }, { { EVENT.config } }, keep)
        end
        return { mended, 'the settings in ' .. K_CONFIG .. ' are missing; they come back from a program that has them '
            .. 'in memory, or from the configuration file: list the queue there and restart a program' }
    end
elseif config_lost_ms and how ~= 'look' then
    redis.call('HDEL', K_STATE, 'config_lost_ms')
end

---- the consumer group, and consumers that are no dispatchers

local group = redis.pcall('XPENDING', K_INGEST, INGEST_GROUP)
if group.err then
    if how == 'look' then
        return { mended, 'the consumer group of ' .. K_INGEST .. ' is missing' }
    end
    redis.call('XGROUP', 'CREATE', K_INGEST, INGEST_GROUP, '0', 'MKSTREAM')
    note_mended('the consumer group of ' .. K_INGEST .. ' was missing and was made again')
    return { mended, '' }
end
for _, consumer in ipairs(group[4] or {}) do
    if consumer[1] ~= 'dispatcher' then
        return { mended, 'entries of ' .. K_INGEST .. ' were read by the consumer ' .. string.sub(consumer[1], 1, 64)
            .. ', which is no dispatcher: stop that program; a dispatcher claims them' }
    end
end

---- scores at either end of a sorted set

local function has_odd_score(key, limit)
    for _, rank in ipairs({ 0, -1 }) do
        local score = redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')
        local number = tonumber(score[2] or '1')
        if not number or number < 0 or number % 1 ~= 0 or number >= limit then
            return score[1], score[2]
        end
    end
end

for key, limit in pairs({ [K_WAITING] = 16 * LANE, [K_ACTIVE] = 2 ^ 53 }) do
    local visitor, score = has_odd_score(key, limit)
    if visitor then
        return { mended, 'the score ' .. score .. ' in ' .. key .. ' makes no sense; remove it: ZREM ' .. key .. ' '
            .. string.sub(visitor, 1, 64) }
    end
end
return { mended, '' }
