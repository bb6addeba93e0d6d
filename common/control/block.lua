-- SPDX-License-Identifier: Apache-2.0
-- block: blocks a prefix of addresses, or ends that, or only forgets the blocks that are over.
-- Flags: allow-oom
-- Parts: prelude.changes
--
-- KEYS     1 tl:blocks   2 tl:changes      (not the keys of the other scripts)
-- ARGV     1 'block', 'unblock' or 'clean'   2 the entry: the prefix, and for one queue a space and its name
--          3 block: for how many ms; 0: until unblock
--          and who (prelude.changes)
-- Returns  1 done; 0 unblock: it was not blocked
-- Errors   FULL     there are BLOCKS_MAX entries
--
-- A hash: entry -> Unix ms at which it ends, or 0. Its field `version` is another one after each change, and stays when
-- the last entry goes: a worker that finds none knows that the store has lost the table.
local K_BLOCKS, what, entry = KEYS[1], ARGV[1], ARGV[2]

local now, is_changed = now_ms(), false

-- Records the block of this entry as it was and as it is: nil, or when it ends in ms, '0' for never.
local function record_block(old, new)
    if old == new then
        return
    end
    local prefix, queue = string.match(entry, '^(%S+) ?(.*)$')
    record_change_in(KEYS[2], what, old and { prefix = prefix, ['until'] = old } or {},
        new and { prefix = prefix, ['until'] = new } or {}, queue ~= '' and queue or nil)
end

local entries = redis.call('HGETALL', K_BLOCKS)
redis.call('XLEN', KEYS[2]) -- fails when it is of another type, before anything is written
local n = 0
for i = 1, #entries, 2 do
    local till = tonumber(entries[i + 1]) or 0
    if entries[i] ~= 'version' and till > 0 and till <= now then
        redis.call('HDEL', K_BLOCKS, entries[i])
        is_changed = true
    elseif entries[i] ~= 'version' and entries[i] ~= entry then
        n = n + 1
    end
end

local result = 1
local old = redis.call('HGET', K_BLOCKS, entry) or nil
if what == 'block' then
    if n >= BLOCKS_MAX then
        return redis.error_reply('FULL there are ' .. n .. ' blocks already; unblock some, or block a wider prefix')
    end
    local ms = tonumber(ARGV[3])
    local new = ms > 0 and int(now + ms) or '0'
    record_block(old, new)
    redis.call('HSET', K_BLOCKS, entry, new)
    is_changed = true
elseif what == 'unblock' then
    record_block(old, nil)
    result = redis.call('HDEL', K_BLOCKS, entry)
    is_changed = is_changed or result == 1
end
if is_changed then
    local t = redis.call('TIME')
    redis.call('HSET', K_BLOCKS, 'version', int(t[1] * 1000000 + t[2]))
end
return result
