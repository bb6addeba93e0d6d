-- SPDX-License-Identifier: Apache-2.0
-- Which sessions may end now. Redis may not know yet, or no more, that a visitor has claimed or lengthened a session.

-- Entries of the ingest stream wait while no dispatcher runs. One that was written before a deadline may hold the claim
-- or renewal of that session, so it does not end before the entry is applied. But no session is held for longer than
-- this: a stream that nobody reads must not hold places for ever. A supervisor starts a dispatcher again in seconds,
-- and people answer an alarm in minutes.
local UNAPPLIED_MOST_MS = 300000

-- The store was restarted or is another server, and may lack the end of its history. For so long no session ends, so
-- that workers, which reconnect and load the line within this time, can tell the later ends that they remember.
local RETURN_MS = 5000

-- Returns the latest deadline of a session that may end now, and when to look again at those that are held, ms.
-- base_ms: when the incarnation began, text; nil for the first one.
local function ends_until(now, base_ms)
    local began = tonumber(base_ms or '')
    if began and began <= now and now < began + RETURN_MS then
        return -1, began + RETURN_MS
    end
    local id = oldest_unapplied()
    local oldest = id and written_ms(id)
    if not oldest or oldest > now then
        return now, now
    end
    local again = math.max(10, math.min(500, math.floor((now - oldest) / 4)))
    return math.max(oldest - 1, now - UNAPPLIED_MOST_MS), now + again
end
