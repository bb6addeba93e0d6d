-- SPDX-License-Identifier: Apache-2.0
-- block: blocks a prefix of addresses, or ends that, or only forgets the blocks that are over.
-- keys     1 tl:blocks   2 tl:changes
-- args     1 'block', 'unblock' or 'clean'   2 the entry: the prefix, and for one queue a space and its name
--          3 block: for how many ms; 0: until unblock   and who
-- returns  1 done; 0 unblock: it was not blocked
-- fails    FULL     there are BLOCKS_MAX entries
--
-- The field `version` stays when the last entry goes: a worker that finds none knows that the store has lost the table.

-- As members of the record of changes: nothing where there is no block, or it stays as it is. till: '0' for ever.
local function member(prefix, till, other)
    return till and till ~= other and { prefix = prefix, ['until'] = till } or {}
end

entry('block', { 'allow-oom' }, function(keys, args)
    local blocks, what, this, us, actor = keys[1], args[1], args[2], state.now_us(), changes.actor(args)
    local now, n, is_changed, entries = floor(us / 1000), 0, false, call('HGETALL', blocks)
    call('XLEN', keys[2]) -- fails when it is of another type, before anything is written
    for i = 1, #entries, 2 do -- n: the others, beside this one and those that are over
        local till = tonumber(entries[i + 1]) or 0
        if entries[i] ~= 'version' and till > 0 and till <= now then
            call('HDEL', blocks, entries[i])
            is_changed = true
        elseif entries[i] ~= 'version' and entries[i] ~= this then
            n = n + 1
        end
    end
    local old, new, result = call('HGET', blocks, this), false, 1
    if what == 'block' then
        if n >= defs.BLOCKS_MAX then
            state.fail('FULL', 'there are ' .. n .. ' blocks already; unblock some, or block a wider prefix')
        end
        new = args[3] ~= '0' and text.int(now + args[3]) or '0'
    end
    if what ~= 'clean' then
        local prefix, queue = match(this, '^(%S+) ?(.*)$')
        changes.record_in(keys[2], now, actor, what, member(prefix, old, new), member(prefix, new, old),
            queue ~= '' and queue or nil)
        if new then call('HSET', blocks, this, new) else result = call('HDEL', blocks, this) end
        is_changed = is_changed or result == 1
    end
    if is_changed then call('HSET', blocks, 'version', text.int(us)) end
    return result
end)
