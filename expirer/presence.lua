-- SPDX-License-Identifier: Apache-2.0
-- presence: what the expirer needs to find waiting visitors who are absent. Changes nothing.
--
-- returns  PRESENCE: current bucket; its length ms; observed: 1 when absence may be judged (presence.is_observed), else
--          0; the last seq that joined before the oldest bucket began; ms until the next bucket begins

local R = defs.PRESENCE
local FIELDS = state.fields({ 'seq' }, { 'marks' })
local SETTINGS = settings.list({ 'waiting_ttl' })

entry('presence', { 'no-writes' }, function(keys)
    local c = state.read(state.begin(keys), FIELDS)
    local waiting_ttl = settings.read(c, SETTINGS).waiting_ttl
    local length, bucket = presence.length(waiting_ttl), presence.bucket(c.now, waiting_ttl)
    return { [R.bucket] = bucket, [R.length] = length,
        [R.observed] = presence.is_observed(c, bucket, waiting_ttl) and 1 or 0,
        [R.joined_seq] = presence.last_seq_before(bucket - defs.PRESENCE_BUCKETS, c.marks, c.seq),
        [R.again] = (bucket + 1) * length - c.now }
end)
