-- SPDX-License-Identifier: Apache-2.0
-- Runs: places in an event, as [first, count, gap, count, gap, count, ...] (docs/contributors/wire-format.md). Pure.

-- Puts the spans in the order of their places. Visitors who were admitted together end together, in the order of their
-- ids: their places lie close together, and ticking them off takes half as long as a sort.
local function ascending(spans)
    local n, low, high = #spans, spans[1], spans[1]
    for i = 3, n, 2 do
        local first = spans[i]
        if first < low then low = first elseif first > high then high = first end
    end
    local sorted, at = {}, 0
    if high - low > 2 * n then
        local rows = {}
        for i = 1, n, 2 do rows[#rows + 1] = { spans[i], spans[i + 1] } end
        sort(rows, function(a, b) return a[1] < b[1] end)
        for i = 1, #rows do sorted[2 * i - 1], sorted[2 * i] = rows[i][1], rows[i][2] end
        return sorted
    end
    local ticked, before = {}, low - 1
    for i = 1, high - before do ticked[i] = false end -- filled in order it stays a list; else Lua makes it a hash
    for i = 1, n, 2 do ticked[spans[i] - before] = spans[i + 1] end
    for i = 1, high - before do
        if ticked[i] then
            sorted[at + 1], sorted[at + 2], at = before + i, ticked[i], at + 2
        end
    end
    return sorted
end

-- The runs of spans first, count, first, count, ... that do not overlap.
function runs.of(spans)
    for i = 3, #spans, 2 do
        if spans[i] < spans[i - 2] then
            spans = ascending(spans)
            break
        end
    end
    local list, n, past = {}, 0, 0 -- past: the place after the last run
    for i = 1, #spans, 2 do
        local first, count = spans[i], spans[i + 1]
        if n > 0 and first == past then
            list[n] = list[n] + count
        else
            list[n + 1], list[n + 2], n = first - past, count, n + 2
        end
        past = first + count
    end
    return list
end
