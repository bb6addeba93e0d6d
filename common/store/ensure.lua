-- SPDX-License-Identifier: Apache-2.0
-- ensure: creates a queue if it does not exist, and its consumer group if that is gone.
-- args     1 why (CREATION). in_force: if the queue is gone its data was lost, so it is created in recovery, and
--            settings of the store that are older are replaced, because it has lost their last change   2 keep
--          3... settings as names and values in turn, `changed` among them, when an operator changed them last, in us;
--            used when the queue is created, or its settings are older   and who
-- returns  1 created, 0 existed
-- fails    DAMAGED   the state is missing but a line exists: nothing was changed
--                    or there is a part of the queue
--          RETIRED   an operator deleted the queue, and only an operator creates it again: nothing was changed
--          BITS      the server is a program of 32 bits, which writes large numbers wrong: nothing was changed

local int, CREATION = text.int, defs.CREATION

local function replace_settings(c, actor, given)
    if not settings.are_newer(c, given) then return end
    state.open(c, state.CORE)
    state.check(c, { 'waiting', 'active', 'events' })
    settings.note_return(c, actor, given, {}, {})
    call('HSET', c.key.config, unpack(given))
    state.commit_config(c)
end

-- The settings given, and the state of a new generation. retired: the generation that an operator deleted, 0: none.
local function create(c, given, retired, why)
    call('HSETNX', c.key.config, 'about', state.ABOUT)
    for i = 1, #given, 2 do call('HSETNX', c.key.config, given[i], given[i + 1]) end
    local fields = state.first_numbers(c, retired)
    local generation = fields.generation
    if why == CREATION.by_hand then call('HSETNX', c.key.config, 'changed', generation) end
    if call('HDEL', c.key.retired, 'away') == 1 then
        -- No one may name the deleted generation as a lost one: its places are not given back.
        fields.lost_generation, fields.lost_by = generation, recovery.NAMED_BY.operator
        call('PERSIST', c.key.changes)
        call('PERSIST', c.key.record)
    end
    local window = why == CREATION.in_force and recovery.window(c) or 0
    if window > 0 then fields.recover_since, fields.recover_until = int(c.now), int(c.now + window) end
    state.create(c, fields)
end

entry('ensure', { 'allow-oom' }, function(keys, args)
    local why, c, actor = args[1] + 0, state.begin(keys, args[2]), changes.actor(args)
    local given, key, retired = { unpack(args, 3, #args - 3) }, c.key, {}
    if int(defs.LANE) ~= '281474976710656' then
        state.fail('BITS', 'the Redis server is a 32-bit program: use a 64-bit one')
    end
    local exists = call('EXISTS', key.state) == 1
    if not exists then
        retired = call('HMGET', key.retired, 'generation', 'away')
        if call('EXISTS', key.waiting, key.active, key.events) > 0
            or not retired[2] and call('EXISTS', key.sessions, key.ended, key.serials, key.held, key.drawn) > 0 then
            state.fail('DAMAGED', state.may_move() and state.part_without('state')
                or key.state .. ' is missing but the line exists: ' .. state.WITHOUT)
        end
        if retired[2] and why ~= CREATION.by_hand then
            state.fail('RETIRED', 'an operator deleted this queue; `tellerline queue create` creates it again')
        elseif retired[2] then -- what came in late
            call('UNLINK', key.ingest, key.ended, key.sessions)
        end
    end
    if exists and call('EXISTS', key.ingest) == 0 then
        local part = state.find_part(state.read(c, state.CORE))
        if part then state.fail('DAMAGED', part) end
    end
    local group = pcall_redis('XGROUP', 'CREATE', key.ingest, defs.INGEST_GROUP, '0', 'MKSTREAM')
    if group.err and not find(group.err, 'BUSYGROUP', 1, true) then return group end
    if exists then
        if why == CREATION.in_force and call('EXISTS', key.config) == 1 then replace_settings(c, actor, given) end
        return 0
    end

    -- The record comes first: were its key of another type, nothing would be written.
    local before, given_now = settings.differences(c, given)
    for name in pairs(before) do given_now[name] = nil end -- settings that survived the state are newer
    given_now.changed = nil
    changes.record(c, actor, 'create', {}, given_now)
    create(c, given, tonumber(retired[1]) or 0, why)
    return 1
end)
