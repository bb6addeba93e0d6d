-- SPDX-License-Identifier: Apache-2.0
-- The ingest stream: what was not applied yet.

-- Returns the id of the oldest entry that was not applied, the group as XINFO describes it, and the first entry that no
-- dispatcher has read, or nil. Returns nil alone where every entry was applied, or there is no stream or no group.
local function oldest_unapplied()
    if redis.call('TYPE', K_INGEST).ok ~= 'stream' then
        return nil
    end
    -- XINFO GROUPS describes each group as a list: name, value, name, value, ...
    for _, flat in ipairs(redis.call('XINFO', 'GROUPS', K_INGEST)) do
        local group = {}
        for i = 1, #flat, 2 do
            group[flat[i]] = flat[i + 1]
        end
        if group.name == INGEST_GROUP then
            local pending = group.pending > 0 and redis.call('XPENDING', K_INGEST, INGEST_GROUP)[2]
            local unread = redis.call('XRANGE', K_INGEST, '(' .. group['last-delivered-id'], '+', 'COUNT', 1)[1]
            return pending or (unread and unread[1]), group, unread
        end
    end
    return nil
end

-- When the entry with this id was written, ms.
local function written_ms(id)
    return tonumber(string.match(id, '^%d+'))
end
