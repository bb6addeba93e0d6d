-- lag: how far the line is behind its ingest stream. Changes nothing.
--
-- ARGV     none
-- Returns  { entries not yet applied, age of the oldest of them in ms }; { 0, 0 } when there are none
--
-- Counts the entries that were delivered but not acknowledged, and those that no dispatcher has read. Where Redis
-- cannot tell the number of the latter, the length of the stream stands in: too high by the few applied entries that
-- trimming leaves.
if redis.call('EXISTS', K_INGEST) == 0 then
    return { 0, 0 }
end

-- XINFO GROUPS describes each group as a list: name, value, name, value, ...
local function read_group(name)
    for _, flat in ipairs(redis.call('XINFO', 'GROUPS', K_INGEST)) do
        local group = {}
        for i = 1, #flat, 2 do
            group[flat[i]] = flat[i + 1]
        end
        if group.name == name then
            return group
        end
    end
    return nil
end

local group = read_group(INGEST_GROUP)
if not group then
    return { 0, 0 }
end

local oldest = group.pending > 0 and redis.call('XPENDING', K_INGEST, INGEST_GROUP)[2]
local unread = redis.call('XRANGE', K_INGEST, '(' .. group['last-delivered-id'], '+', 'COUNT', 1)[1]
oldest = oldest or (unread and unread[1])
if not oldest then
    return { 0, 0 }
end

local entries = group.pending
if unread then
    entries = entries + (group.lag or redis.call('XLEN', K_INGEST))
end
return { entries, math.max(0, now_ms() - tonumber(string.match(oldest, '^%d+'))) }
