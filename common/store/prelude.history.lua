-- SPDX-License-Identifier: Apache-2.0
-- When a place got its number, from the history of the queue (expirer/history.lua): each point has the last one given.

-- A point as { at = ms, values }.
local function point_of(entry)
    local values = {}
    for i = 1, #entry[2], 2 do
        values[entry[2][i]] = tonumber(entry[2][i + 1])
    end
    return { at = tonumber(string.match(entry[1], '^%d+')), values = values, seq = values.seq or 0 }
end

-- A history with a point every `step` ms, or fewer while nothing changes.
local function history_of(name, step)
    local history, probes = { key = key_of(name) }, {} -- searches begin alike

    -- The first point at this time or later, or false.
    function history.from(ms)
        if probes[ms] == nil then
            local entry = redis.call('XRANGE', history.key, int(ms), '+', 'COUNT', 1)[1]
            probes[ms] = entry and point_of(entry) or false
        end
        return probes[ms]
    end

    history.oldest = history.from(0)

    -- When a seq was given, ms: the time of the first point that knows it, or now. -1: before the history began.
    -- coarse: may be later by a 20th of the time from then to now, which a search for many seqs finds sooner.
    function history.joined_at(seq, now, coarse)
        local oldest = history.oldest
        if not oldest or oldest.seq >= seq then
            return -1
        end
        -- The point at low is before it; between high and found there is none.
        local low, high, found = oldest.at, now, now
        while high - low > step and not (coarse and high - low < (now - high) / 20) do
            local middle = math.floor((low + high) / 2)
            local point = history.from(middle)
            if point and point.at < high and point.seq < seq then
                low = point.at
            else
                found = point and point.at < high and point.at or found
                high = middle
            end
        end
        return found
    end

    return history
end

-- The history that reaches back to this seq, the exacter one if it does; and when the seq was given, as above.
local function history_with(seq, now, histories, coarse)
    for _, history in ipairs(histories) do
        local at = history.joined_at(seq, now, coarse)
        if at >= 0 then
            return history, at
        end
    end
    return nil, -1
end

-- 10 s for a day, minutes for a week.
local function both_histories()
    return { history_of('history', 10000), history_of('history:minutes', 60000) }
end
