-- SPDX-License-Identifier: Apache-2.0
-- lag: how far the line is behind its ingest stream. Changes nothing.
--
-- args     none
-- returns  { entries not yet applied, age of the oldest of them in ms }; { 0, 0 } when there are none
--
-- Counts the entries that were delivered but not acknowledged, and those that no dispatcher has read. Where Redis
-- cannot tell the number of the latter, the length of the stream stands in: too high by the few applied entries that
-- trimming leaves.
entry('lag', { 'no-writes' }, function(keys)
    local c = state.begin(keys)
    local oldest, group, unread = ingest.oldest_unapplied(c)
    if not oldest then return { 0, 0 } end
    local n = group.pending + (unread and (group.lag or call('XLEN', c.key.ingest)) or 0)
    return { n, max(0, c.now - text.id_ms(oldest)) }
end)
