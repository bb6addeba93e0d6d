-- SPDX-License-Identifier: Apache-2.0
-- joins: appends a batch of joins that an operator asks for to the ingest stream, and records how many.
-- Parts: prelude.changes
--
-- ARGV     1 the batch   2 how many joins it has
--          and who (prelude.changes)
-- Returns  the stream id of the last event before, or '0-0': the outcome comes after it
-- Errors   NOQUEUE  the queue does not exist
--          OOM      the store is at its memory limit, where joins end: nothing was changed
if redis.call('EXISTS', K_STATE) == 0 or redis.call('EXISTS', K_INGEST) == 0 then
    return no_queue()
end
redis.call('XLEN', K_INGEST) -- fails when it is of another type, before anything is written
local last = redis.call('XREVRANGE', K_EVENTS, '+', '-', 'COUNT', 1)[1]
record_change('join', {}, { visitors = ARGV[2] })
redis.call('XADD', K_INGEST, 'NOMKSTREAM', '*', 'd', ARGV[1])
return last and last[1] or '0-0'
