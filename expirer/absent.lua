-- SPDX-License-Identifier: Apache-2.0
-- Waiting visitors who are absent: presence and absent.

local SEQ = state.fields({ 'seq' }, { 'marks' })
local TOTALS = state.fields({ 'expired', 'absent' }, { 'handed' })
local SETTINGS = settings.list({ 'waiting_ttl' })

-- presence: what the expirer needs to find them.
-- returns  PRESENCE
entry('presence', { 'no-writes' }, function(keys)
    local c = state.read(state.begin(keys), SEQ)
    local waiting_ttl = settings.read(c, SETTINGS).waiting_ttl
    local length, bucket = presence.length(waiting_ttl), presence.bucket(c.now, waiting_ttl)
    return { bucket, length, presence.is_observed(c, bucket, waiting_ttl) and 1 or 0,
        presence.last_seq_before(bucket - defs.PRESENCE_BUCKETS, c.marks, c.seq), (bucket + 1) * length - c.now }
end)

-- absent: drops those who have not been seen for waiting_ttl; who was seen since the caller looked stays.
-- args     1 bucket in which the caller judged   2 keep   3... places it found absent, which bound the work
-- returns  { dropped, Redis time ms }; dropped is 0 if the caller judged in an earlier bucket
entry('absent', { 'allow-oom' }, function(keys, args)
    local c = state.open(state.begin(keys, args[2]), TOTALS)
    local bucket = presence.bucket(c.now, settings.read(c, SETTINGS).waiting_ttl)
    if bucket ~= tonumber(args[1]) then return { 0, c.now } end
    state.check(c, { 'waiting', 'active', 'ended', 'events' })
    -- All are judged before the first is dropped: a bitmap that cannot be read ends the step.
    local ids, spans, found, bitmaps = {}, {}, {}, {}
    for i = 3, #args do
        local place = tonumber(args[i])
        local id = not presence.is_seen(c, place % defs.LANE, bucket, bitmaps)
            and call('ZRANGE', c.key.waiting, args[i], args[i], 'BYSCORE')[1]
        if id and not found[id] then -- a place may be given twice
            ids[#ids + 1], spans[#spans + 1], spans[#spans + 2], found[id] = id, place, 1, true
        end
    end
    visitor.drop(c, ids, spans, defs.REASON.absent)
    state.commit(c)
    return { #ids, c.now }
end)
