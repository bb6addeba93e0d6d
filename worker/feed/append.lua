-- SPDX-License-Identifier: Apache-2.0
-- What a worker writes: it may declare tl:{q}:state alone (deploy/redis/users.acl).

-- append: appends a batch without joins to the ingest stream, at the memory limit too.
-- args     1 the batch
-- returns  the entry's id; nothing if the queue does not exist
entry('append', { 'allow-oom' }, function(keys, args)
    return call('XADD', state.begin(keys).key.ingest, 'NOMKSTREAM', '*', 'd', args[1])
end)

-- promised: counts what came true of the waits that visitors were told (worker/queue/eta.h). No function that
-- decides reads these totals.
-- args     1 waits told that came true  2 of these, admitted before the range told  3 after it
--          4 distances of the waits told from the true ones, in percent of these, added up
entry('promised', {}, function(keys, args)
    local key, list = state.find(keys).key.promised, {}
    for i, total in ipairs(call('HMGET', key, unpack(defs.PROMISED))) do
        list[2 * i - 1], list[2 * i] = defs.PROMISED[i], text.int((tonumber(total) or 0) + args[i])
    end
    call('HSET', key, unpack(list))
end)
