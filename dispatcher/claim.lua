-- SPDX-License-Identifier: Apache-2.0
-- claim: takes over what another consumer of the group has read. Only a dispatcher may read the ingest stream, and all
-- dispatchers are one consumer. An entry read by any other program stays pending with it, and stops the queue.
--
-- args     1 most entries to claim   2 the dispatchers' consumer
-- returns  { name of another consumer that has read entries or '', claimed, id of an entry whose payload is gone... }
entry('claim', { 'allow-oom' }, function(keys, args)
    local stream, own, group = state.begin(keys).key.ingest, args[2], defs.INGEST_GROUP
    local other = nil
    for _, consumer in ipairs(call('XPENDING', stream, group)[4] or {}) do
        if consumer[1] ~= own then other = consumer[1] end
    end
    if not other then return { '', 0 } end

    local ids, missing = {}, {}
    for i, pending in ipairs(call('XPENDING', stream, group, '-', '+', args[1], other)) do
        ids[i], missing[pending[1]] = pending[1], true
    end
    ids[#ids + 1] = 'JUSTID'
    -- An entry that was trimmed away is dropped from the pending ones by XCLAIM.
    local claimed = call('XCLAIM', stream, group, own, 0, unpack(ids))
    for _, id in ipairs(claimed) do missing[id] = nil end
    local result = { other, #claimed }
    for _, id in ipairs(ids) do
        if missing[id] then result[#result + 1] = id end
    end
    return result
end)
