-- SPDX-License-Identifier: Apache-2.0
-- durable: a write of the caller's connection, for WAIT and WAITAOF, which wait for such a write and thereby for all
-- before it.
--
-- keys     1 a key of the caller's own (not the keys of the other functions)
-- args     1 milliseconds after which the key is gone
-- returns  1
entry('durable', { 'allow-oom' }, function(keys, args)
    call('SET', keys[1], '', 'PX', args[1])
    return 1
end)
