-- SPDX-License-Identifier: Apache-2.0
-- Overbooking: the admitter may call more visitors than there is capacity, because some never come. Then the claimed
-- sessions must be known at every claim, without counting them. So those are counted who were called and have not
-- claimed yet; all others who are active count as claimed.
--
-- Field `called` of the state: "since:n:claims:noshows"; missing or '': nothing is counted, and a claim is never
-- refused.
--   since    sessions of visitors who were called from then on, ms, are counted. Those of before count as claimed, so
--            counting can begin at any time, without looking at every session
--   n        counted sessions that are not claimed
--   claims, noshows  how many of those counted claimed, and how many never did; both are halved when they are many, so
--            that the share follows a crowd that changes
--
-- tl:{q}:held: visitors who came when the capacity was claimed -> their places. They keep their session, unclaimed, and
-- the admitter claims it for them as soon as another one ends, in the order of their places, before anyone else's.

local function parse_called(text)
    local since, n, claims, noshows = string.match(text or '', '^(%d+):(%d+):(%d+):(%d+)$')
    if since then
        return { since = tonumber(since), n = tonumber(n), claims = tonumber(claims), noshows = tonumber(noshows) }
    end
end

local called_text, is_counted, held_key, end_unclaimed

-- Makes these four functions: only queues that count, or begin to, need them.
local function load_called()

-- '' when it cannot be right: something was damaged, and counting begins again.
called_text = function(called)
    local REMEMBERED_MAX = 2000 -- claims and noshows
    if not called or called.n < 0 then
        return ''
    end
    if called.claims + called.noshows > REMEMBERED_MAX then
        called.claims, called.noshows = math.floor(called.claims / 2), math.floor(called.noshows / 2)
    end
    return format('%.0f:%.0f:%.0f:%.0f', called.since, called.n, called.claims, called.noshows)
end

-- Is the unclaimed session of a visitor who was called then one of those counted?
is_counted = function(called, admitted_ms)
    return called and admitted_ms >= called.since
end

held_key = function()
    return key_of('held')
end

-- An unclaimed session ends. Returns whether it was counted.
end_unclaimed = function(called, visitor, admitted_ms)
    if not is_counted(called, admitted_ms) then
        return false
    end
    called.n = called.n - 1
    redis.call('ZREM', held_key(), visitor)
    return true
end

end
