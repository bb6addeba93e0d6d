-- SPDX-License-Identifier: Apache-2.0
-- Runs: places in an event, as [first, count, gap, count, gap, count, ...] (docs/contributors/wire-format.md).

-- The places in ascending order; may sort the given list. Visitors who were admitted together end together, in the
-- order of their ids: their places lie close together, and ticking them off takes half as long as table.sort.
local function ascending(places)
    local n, in_order = #places, true
    for i = 2, n do
        if places[i] < places[i - 1] then
            in_order = false
            break
        end
    end
    if in_order then
        return places
    end
    local low, high = places[1], places[1]
    for i = 2, n do
        local place = places[i]
        if place < low then
            low = place
        elseif place > high then
            high = place
        end
    end
    if high - low > 4 * n then
        table.sort(places)
        return places
    end
    local before, ticked, sorted = low - 1, {}, {}
    for i = 1, high - before do
        ticked[i] = false -- filled in order it stays a list; otherwise Lua makes it a hash
    end
    for i = 1, n do
        ticked[places[i] - before] = true
    end
    local nth = 0
    for i = 1, #ticked do
        if ticked[i] then
            nth = nth + 1
            sorted[nth] = before + i
        end
    end
    return sorted
end

-- The runs of these places; may sort the given list.
local function runs_of(places)
    places = ascending(places)
    local runs, n, past = {}, 0, 0 -- past: the number after the last run
    for i = 1, #places do
        local place = places[i]
        if place == past and n > 0 then
            runs[n] = runs[n] + 1
        else
            runs[n + 1] = place - past
            runs[n + 2] = 1
            n = n + 2
        end
        past = place + 1
    end
    return runs
end

-- The runs of places given as spans { first, count } that do not overlap; sorts the spans.
local function runs_of_spans(spans)
    table.sort(spans, function(a, b) return a[1] < b[1] end)
    local runs, n, past = {}, 0, 0
    for i, span in ipairs(spans) do
        if i > 1 and span[1] == past then
            runs[n] = runs[n] + span[2]
        else
            runs[n + 1] = span[1] - past
            runs[n + 2] = span[2]
            n = n + 2
        end
        past = span[1] + span[2]
    end
    return runs
end

