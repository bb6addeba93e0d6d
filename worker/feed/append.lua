-- SPDX-License-Identifier: Apache-2.0
-- append: appends a batch without joins to the ingest stream, at the memory limit too.
--
-- keys     tl:{q}:state alone: a worker may declare no other (deploy/redis/users.acl)
-- args     1 the batch
-- returns  the entry's id; nothing if the queue does not exist
entry('append', { 'allow-oom' }, function(keys, args)
    return call('XADD', state.begin(keys).key.ingest, 'NOMKSTREAM', '*', 'd', args[1])
end)
