-- SPDX-License-Identifier: Apache-2.0
-- The ingest stream of a queue, beside apply.

-- claim: takes over what another consumer of the group has read. Only a dispatcher may read the ingest stream, and all
-- dispatchers are one consumer. An entry read by any other program stays pending with it, and stops the queue.
-- args     1 most entries to claim, the oldest first: also the dispatchers' own   2 the dispatchers' consumer
-- returns  { name of another consumer that has read entries or '', claimed, id of an entry whose payload is gone... }
entry('claim', { 'allow-oom' }, function(keys, args)
    local stream, own, group = state.begin(keys).key.ingest, args[2], defs.INGEST_GROUP
    for _, consumer in ipairs(call('XPENDING', stream, group)[4] or {}) do
        if consumer[1] ~= own then
            -- Entries that were trimmed away are dropped from the pending ones, and named.
            local found = call('XAUTOCLAIM', stream, group, own, 0, '-', 'COUNT', args[1], 'JUSTID')
            return { consumer[1], #found[2], unpack(found[3]) }
        end
    end
    return { '', 0 }
end)

-- group: makes the consumer group again, and the stream where that is missing, too; but not of a queue that was
-- deleted. Fails with BUSYGROUP where the group is there.
entry('group', { 'allow-oom' }, function(keys)
    call('XGROUP', 'CREATE', state.find(keys).key.ingest, defs.INGEST_GROUP, '0', 'MKSTREAM')
end)

-- lag: how far the line is behind. Counts the entries that were delivered but not acknowledged, and those that no
-- dispatcher has read. Where Redis cannot tell the number of the latter, the length of the stream stands in: too high
-- by the few applied entries that trimming leaves.
-- returns  { entries not yet applied, age of the oldest of them in ms }; { 0, 0 } when there are none
entry('lag', { 'no-writes' }, function(keys)
    local c = state.begin(keys)
    local oldest, group, unread = ingest.oldest_unapplied(c)
    if not oldest then return { 0, 0 } end
    local n = group.pending + (unread and (group.lag or call('XLEN', c.key.ingest)) or 0)
    return { n, max(0, c.now - text.id_ms(oldest)) }
end)

-- poison: sets an entry that cannot be decoded aside, so that it does not stop the queue.
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
