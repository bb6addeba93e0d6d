-- SPDX-License-Identifier: Apache-2.0
-- group: makes the consumer group of an ingest stream again, and the stream where that is missing, too.
--
-- args     none
-- returns  nothing
-- fails    NOQUEUE    the queue does not exist: what a deletion took away must not come back
--          BUSYGROUP  the group is there
entry('group', { 'allow-oom' }, function(keys)
    call('XGROUP', 'CREATE', state.find(keys).key.ingest, defs.INGEST_GROUP, '0', 'MKSTREAM')
end)
