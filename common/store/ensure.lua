-- SPDX-License-Identifier: Apache-2.0
-- ensure: creates a queue if it does not exist, and its consumer group if that is gone.
-- Flags: allow-oom
-- Parts: prelude.recovery prelude.changes
--
-- ARGV     1 0: it is in the configuration; 1: the caller knew the queue, and the settings were in force when it read
--            them last: if the queue is gone its data was lost, so it is created in recovery, and settings of the store
--            that are older are replaced, because it has lost their last change; 2: an operator says so
--          2 about how many events to keep
--          3... settings as names and values in turn, `changed` among them, when an operator changed them last, in us;
--            used when the queue is created, or its settings are older
--          and who (prelude.changes)
-- Returns  1 created, 0 existed
-- Errors   DAMAGED   the state is missing but a line exists: nothing was changed
--          RETIRED   an operator deleted the queue, and only an operator creates it again: nothing was changed
--          BITS      the server is a program of 32 bits, which writes large numbers wrong: nothing was changed
if int(LANE) ~= '281474976710656' then
    return redis.error_reply('BITS the Redis server is a 32-bit program: use a 64-bit one')
end
local state_exists = redis.call('EXISTS', K_STATE) == 1
if not state_exists and redis.call('EXISTS', K_WAITING, K_ACTIVE, K_EVENTS) > 0 then
    return redis.error_reply('DAMAGED ' .. K_STATE .. ' is missing but the line exists: restore the data, or delete '
        .. K_WAITING .. ' and ' .. K_ACTIVE .. ' to start with an empty line')
end

local K_RETIRED, by_hand = key_of('retired'), ARGV[1] == '2'
local retired, away = false, false
if not state_exists then
    retired, away = unpack(redis.call('HMGET', K_RETIRED, 'generation', 'away'))
    if away and not by_hand then
        return redis.error_reply('RETIRED an operator deleted this queue; `tellerline queue create` creates it again')
    elseif away then -- what came in late
        redis.call('UNLINK', K_INGEST, K_BATCHES, K_ENDED, K_SESSIONS)
    end
end

local group = redis.pcall('XGROUP', 'CREATE', K_INGEST, INGEST_GROUP, '0', 'MKSTREAM')
if type(group) == 'table' and group.err and not string.find(group.err, 'BUSYGROUP', 1, true) then
    return group
end
-- The settings given that differ from those of the store, what these are, and when both were changed.
local function differences()
    local names, before, after, changed, changed_before = {}, {}, {}, 0, 0
    for i = 3, #ARGV, 2 do
        names[#names + 1] = ARGV[i]
    end
    local stored = redis.call('HMGET', K_CONFIG, unpack(names))
    for i, name in ipairs(names) do
        local old, value = stored[i], ARGV[2 * i + 2]
        if name == 'changed' then
            changed, changed_before = tonumber(value), tonumber(old or '') or 0
        elseif old ~= value then
            before[name], after[name] = old or nil, value
        end
    end
    return before, after, changed, changed_before
end

local function replace_settings()
    local before, after, changed, changed_before = differences()
    if changed <= changed_before then
        return
    end
    local state = open_state()
    check_types()
    record_change('restore', before, after)
    redis.call('HSET', K_CONFIG, unpack(ARGV, 3))
    commit(state, {}, { { EVENT.config } }, ARGV[2])
end

if state_exists then
    redis.pcall('HSETNX', K_STATE, 'about', ABOUT) -- an earlier release did not; damage is found later
    if redis.call('EXISTS', K_CONFIG) == 1 then
        redis.pcall('HSETNX', K_CONFIG, 'about', ABOUT)
        if ARGV[1] == '1' then
            replace_settings()
        end
    end
    return 0
end

-- The record comes first: were its key of another type, nothing would be written.
local before, settings = differences()
for name in pairs(before) do
    settings[name] = nil -- settings that survived the state are newer
end
record_change('create', {}, settings)

redis.call('HSETNX', K_CONFIG, 'about', ABOUT)
for i = 3, #ARGV, 2 do
    redis.call('HSETNX', K_CONFIG, ARGV[i], ARGV[i + 1])
end
local t = redis.call('TIME')
local base = number_base(now_ms())
local base_seq = int(base + seqs_ahead(nil, now_ms())) -- of a lost generation, too
base = int(base)
local generation = int(math.max(t[1] * 1000000 + t[2], (tonumber(retired) or 0) + 1))
redis.call('HSET', K_STATE, 'generation', generation, 'store', store_id(), 'incarnation', 1,
    'seq', base_seq, 'event', base, 'fence', base, 'base_seq', base_seq,
    'about', ABOUT, 'waiting', 0, 'active', 0, 'joined', 0, 'admitted', 0, 'completed', 0, 'expired', 0, 'left', 0,
    'unclaimed', 0, 'absent', 0, 'removed', 0, 'marks', '', 'bucket', '', 'admit_capacity', 0, 'notice', '')
if by_hand then
    redis.call('HSETNX', K_CONFIG, 'changed', generation)
end
if away then
    -- No one may name the deleted generation as a lost one: its places are not given back.
    redis.call('HSET', K_STATE, 'lost_generation', generation, 'lost_by', NAMED_BY.operator)
    redis.call('HDEL', K_RETIRED, 'away')
    redis.call('PERSIST', key_of('changes'))
end
local window = recovery_window()
if ARGV[1] == '1' and window > 0 then
    redis.call('HSET', K_STATE, 'recover_since', int(now_ms()), 'recover_until', int(now_ms() + window))
end
return 1
