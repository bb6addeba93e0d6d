-- SPDX-License-Identifier: Apache-2.0
-- tl:{q}:ended is bounded by age and by size. The oldest ends are forgotten first: their visitors are told that the
-- place is not known, instead of how it ended.

local ENDED_KEPT_MS = 3600000 -- at least: the smallest retention.ended

-- Forgets at most `most` ends that are older than kept_ms (nil: of any age), or too many. Returns how many.
local function forget_ended(now, most, kept_ms)
    local ENDED_MAX = 500000 -- about 60 MB
    local old = kept_ms and redis.call('ZCOUNT', K_ENDED, '-inf', end_score(now - kept_ms, 0)) or 0
    local n = math.min(most, math.max(old, redis.call('ZCARD', K_ENDED) - ENDED_MAX))
    if n > 0 then
        redis.call('ZREMRANGEBYRANK', K_ENDED, 0, n - 1)
    end
    return n
end
