-- SPDX-License-Identifier: Apache-2.0
-- lag: how far the line is behind its ingest stream. Changes nothing.
-- Flags: no-writes
-- Parts: prelude.unapplied
--
-- ARGV     none
-- Returns  { entries not yet applied, age of the oldest of them in ms }; { 0, 0 } when there are none
--
-- Counts the entries that were delivered but not acknowledged, and those that no dispatcher has read. Where Redis
-- cannot tell the number of the latter, the length of the stream stands in: too high by the few applied entries that
-- trimming leaves.
local oldest, group, unread = oldest_unapplied()
if not oldest then
    return { 0, 0 }
end

local entries = group.pending
if unread then
    entries = entries + (group.lag or redis.call('XLEN', K_INGEST))
end
return { entries, math.max(0, now_ms() - written_ms(oldest)) }
