-- SPDX-License-Identifier: Apache-2.0
-- poison: sets an entry that cannot be decoded aside, so that it does not stop the queue.
--
-- args     1 fence   2 stream id of the entry   3 why it is set aside   4 its payload
-- returns  1 set aside in tl:{q}:poison, which keeps the last 100 entries; 0 the entry was no longer pending
-- fails    STALE    the fence is out of date: another dispatcher holds the lease

local FIELDS = state.fields({}, { 'fence' })

entry('poison', { 'allow-oom' }, function(keys, args)
    local c = state.open(state.begin(keys), FIELDS)
    if c.fence ~= args[1] then state.fail('STALE', 'another dispatcher holds the lease') end
    call('XLEN', c.key.poison) -- fails before the first write if it is no stream
    if call('XACK', c.key.ingest, defs.INGEST_GROUP, args[2]) == 0 then return 0 end
    call('XADD', c.key.poison, 'MAXLEN', 100, '*', 'entry', args[2], 'why', args[3], 'd', args[4])
    return 1
end)
