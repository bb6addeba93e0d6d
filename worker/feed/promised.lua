-- SPDX-License-Identifier: Apache-2.0
-- promised: counts what came true of the waits that visitors were told (worker/queue/promises.h).
--
-- keys     tl:{q}:state alone: a worker may declare no other, and writes tl:{q}:promised (deploy/redis/users.acl)
-- args     1 waits told that came true  2 of these, admitted before the range told  3 after it
--          4 distances of the waits told from the true ones, in percent of these, added up
-- returns  nothing
--
-- Invariants: only these four totals change. No function that decides reads them.

entry('promised', {}, function(keys, args)
    local key, list = state.find(keys).key.promised, {}
    for i, total in ipairs(call('HMGET', key, unpack(defs.PROMISED))) do
        list[2 * i - 1], list[2 * i] = defs.PROMISED[i], text.int((tonumber(total) or 0) + args[i])
    end
    call('HSET', key, unpack(list))
end)
