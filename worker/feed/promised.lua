-- SPDX-License-Identifier: Apache-2.0
-- promised: counts what came true of the waits that visitors were told (worker/queue/promises.h).
--
-- KEYS     tl:{q}:state alone: a worker may declare no other, and writes tl:{q}:promised (deploy/redis/users.acl)
-- ARGV     1 waits told that came true  2 of these, admitted before the range told  3 after it
--          4 distances of the waits told from the true ones, in percent of these, added up
-- Returns  nothing
-- Errors   NOQUEUE  the queue does not exist
--
-- Invariants: only these four totals change. No script that decides reads them.
local FIELDS = { 'eta_judged', 'eta_early', 'eta_late', 'eta_error' }
local K_PROMISED = key_of('promised')
if redis.call('EXISTS', K_STATE) == 0 then
    return no_queue()
end
local totals, changes = redis.call('HMGET', K_PROMISED, unpack(FIELDS)), {}
for i, field in ipairs(FIELDS) do
    changes[2 * i - 1], changes[2 * i] = field, int((tonumber(totals[i] or '') or 0) + tonumber(ARGV[i]))
end
redis.call('HSET', K_PROMISED, unpack(changes))
