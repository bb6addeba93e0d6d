-- SPDX-License-Identifier: Apache-2.0
-- When a place got its number, from the history of the queue (expirer/history.lua): each point has the last one given.

-- A point as { at = ms, values, seq }.
function history.point(one)
    local values = text.fields(one[2])
    for name, value in pairs(values) do values[name] = tonumber(value) end
    return { at = text.id_ms(one[1]), values = values, seq = values.seq or 0 }
end

-- Those with a point every 10 s for a day, and every minute for a week, or fewer while nothing changes. probes:
-- searches begin alike.
function history.both(c)
    local both = { { key = c.key.history, step = defs.HISTORY_STEP_MS, probes = {} },
        { key = c.key['history:minutes'], step = defs.HISTORY_MINUTE_MS, probes = {} } }
    for _, h in ipairs(both) do h.oldest = history.from(h, 0) end
    return both
end

-- The first point at this time or later, or false.
function history.from(h, ms)
    if h.probes[ms] == nil then
        local one = call('XRANGE', h.key, text.int(ms), '+', 'COUNT', 1)[1]
        h.probes[ms] = one and history.point(one) or false
    end
    return h.probes[ms]
end

-- When a seq was given, ms: the time of the first point that knows it, or now. -1: before the history began. coarse:
-- may be later by a 20th of the time from then to now, which a search for many seqs finds sooner.
local function search(h, seq, now, coarse)
    if not h.oldest or h.oldest.seq >= seq then return -1 end
    -- The point at low is before it; between high and found there is none.
    local low, high, found = h.oldest.at, now, now
    while high - low > h.step and not (coarse and high - low < (now - high) / 20) do
        local middle = floor((low + high) / 2)
        local point = history.from(h, middle)
        if point and point.at < high and point.seq < seq then
            low = point.at
        else
            found = point and point.at < high and point.at or found
            high = middle
        end
    end
    return found
end

-- When this seq was given, as above, and the history that reaches back to it, the exacter one if it does; -1 alone if
-- none does. both: of history.both.
function history.joined_at(both, seq, now, coarse)
    for _, h in ipairs(both) do
        local at = search(h, seq, now, coarse)
        if at >= 0 then return at, h end
    end
    return -1
end
