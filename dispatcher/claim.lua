-- SPDX-License-Identifier: Apache-2.0
-- claim: takes over what another consumer of the group has read. Only a dispatcher may read the ingest stream, and all
-- dispatchers are one consumer. An entry read by any other program stays pending with it, and stops the queue.
-- Flags: allow-oom
--
-- ARGV     1 most entries to claim   2 the dispatchers' consumer
-- Returns  { name of another consumer that has read entries or '', claimed, id of an entry whose payload is gone... }
local most, own = tonumber(ARGV[1]), ARGV[2]

local other = nil
for _, consumer in ipairs(redis.call('XPENDING', K_INGEST, INGEST_GROUP)[4] or {}) do
    if consumer[1] ~= own then
        other = consumer[1]
    end
end
if not other then
    return { '', 0 }
end

local ids, missing = {}, {}
for _, pending in ipairs(redis.call('XPENDING', K_INGEST, INGEST_GROUP, '-', '+', most, other)) do
    ids[#ids + 1] = pending[1]
    missing[pending[1]] = true
end
-- An entry that was trimmed away is dropped from the pending ones by XCLAIM.
ids[#ids + 1] = 'JUSTID'
local claimed = redis.call('XCLAIM', K_INGEST, INGEST_GROUP, own, 0, unpack(ids))
ids[#ids] = nil
for _, id in ipairs(claimed) do
    missing[id] = nil
end
local result = { other, #claimed }
for _, id in ipairs(ids) do
    if missing[id] then
        result[#result + 1] = id
    end
end
return result
