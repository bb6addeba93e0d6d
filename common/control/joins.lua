-- SPDX-License-Identifier: Apache-2.0
-- joins: appends a batch of joins that an operator asks for to the ingest stream, and records how many.
--
-- args     1 the batch   2 how many joins it has   and who (line/changes.lua)
-- returns  the stream id of the last event before, or '0-0': the outcome comes after it
-- fails    OOM      the store is at its memory limit, where joins end: nothing was changed
entry('joins', {}, function(keys, args)
    local c = state.find(keys)
    if call('EXISTS', c.key.ingest) == 0 then
        state.fail('NOQUEUE', 'the queue does not exist')
    end
    call('XLEN', c.key.ingest) -- fails when it is of another type, before anything is written
    local last = call('XREVRANGE', c.key.events, '+', '-', 'COUNT', 1)[1]
    changes.record(c, changes.actor(args), 'join', {}, { visitors = args[2] })
    call('XADD', c.key.ingest, 'NOMKSTREAM', '*', 'd', args[1])
    return last and last[1] or '0-0'
end)
