-- SPDX-License-Identifier: Apache-2.0
-- The ingest stream: what was not applied yet.

-- Returns the id of the oldest entry that was not applied, or nil; the group as XINFO describes it; and the first entry
-- that no dispatcher has read, or nil. Returns nil alone where there is no stream or no group.
function ingest.oldest_unapplied(c)
    local groups = pcall_redis('XINFO', 'GROUPS', c.key.ingest)
    if groups.err and call('TYPE', c.key.ingest).ok ~= 'stream' then return nil end
    if groups.err then error(groups) end
    for i = 1, #groups do
        local group = text.fields(groups[i])
        if group.name == defs.INGEST_GROUP then
            local pending = group.pending > 0 and call('XPENDING', c.key.ingest, defs.INGEST_GROUP)[2]
            local unread = call('XRANGE', c.key.ingest, '(' .. group['last-delivered-id'], '+', 'COUNT', 1)[1]
            return pending or (unread and unread[1]), group, unread
        end
    end
    return nil
end
