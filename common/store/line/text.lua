-- SPDX-License-Identifier: Apache-2.0
-- Numbers and records as texts (docs/contributors/wire-format.md). Pure: nothing here calls Redis.

-- Exact digits of a whole number below 2^53: a server may write 100000000 as 1e+8, and '%.0f' takes twice as long.
function text.int(n) return format('%d', n) end

-- A whole number from 0 to 2^53; nil for any other text, and for none.
function text.number(t)
    local n = tonumber(t)
    return n and n >= 0 and n < 9007199254740992 and n % 1 == 0 and n or nil
end

-- The same, but raises for any other text, and for none. Adding 0 makes a number of a text in a third of the time of
-- tonumber.
function text.counter(t)
    local n = t + 0
    if n >= 0 and n < 9007199254740992 and n % 1 == 0 then return n end
    error({ err = 'DAMAGED a counter is no whole number' })
end

-- When the entry of a stream with this id was written, ms.
function text.id_ms(id) return tonumber(match(id, '^%d+')) end

-- A place and its digits, as the score of tl:{q}:waiting has it.
function text.place(score)
    local place = score + 0
    return place, place % 100000 == 0 and format('%d', place) or score
end

local ROW_MIN = 10 -- shorter rows are written one by one
local digits = {}  -- '00' to '99', made when first needed

-- The texts of `count` places in a row, each followed by `tail`: the same as int(place) .. tail, in a third of the
-- time, because only the last two digits differ.
function text.row(first, count, tail)
    local list = {}
    if count < ROW_MIN or first < 100 then
        for i = 1, count do list[i] = format('%d', first + i - 1) .. tail end
        return list
    end
    for i = #digits + 1, 100 do digits[i] = format('%02d', i - 1) end
    local low = first % 100
    local head = format('%d', (first - low) / 100)
    for i = 1, count do
        list[i], low = head .. digits[low + 1] .. tail, low + 1
        if low == 100 then head, low = format('%d', (first + i) / 100), 0 end
    end
    return list
end

-- tl:{q}:sessions: visitor -> "place:admitted ms:claimed". claimed is 1 after the visitor's first RENEW or CLAIM.
function text.session(s) return format('%d:%d:%d', s.place, s.admitted, s.claimed and 1 or 0) end

-- nil for a missing or damaged text.
function text.parse_session(t)
    local place, admitted, claimed = match(t or '', '^(%d+):(%d+):([01])$')
    return place and { place = place + 0, admitted = admitted + 0, claimed = claimed == '1' } or nil
end

-- For a mass of sessions: matches the place alone, and '1' if it was claimed.
text.SESSION = '^(%d+):%d+:([01])$'

-- tl:{q}:ended: visitor -> end ms * 8 + reason
function text.end_score(ms, reason) return format('%d', ms * 8 + reason) end

-- Field batch:WORKER of the state: "last batch:applied at ms"
function text.batch(batch, ms) return format('%d:%d', batch, ms) end

-- Returns batch and ms; nil for a missing or damaged text.
function text.parse_batch(t)
    local batch, ms = match(t or '', '^(%d+):(%d+)$')
    if batch then return batch + 0, ms + 0 end
end

-- A JSON object; nil for another text, and for none.
function text.object(t)
    local is_read, object = pcall(cjson.decode, t or '')
    return is_read and type(object) == 'table' and object or nil
end

-- A list name, value, name, value, ... as name -> value.
function text.fields(list)
    local fields = {}
    for i = 1, #list, 2 do fields[list[i]] = list[i + 1] end
    return fields
end

---- runs: places in an event, as [first, count, gap, count, gap, count, ...]

-- The spans in the order of their places. Lua sorts numbers in half the time that it takes for pairs.
local function ascending(spans)
    local firsts, counts, sorted = {}, {}, {}
    for i = 1, #spans, 2 do firsts[(i + 1) / 2], counts[spans[i]] = spans[i], spans[i + 1] end
    sort(firsts)
    for i = 1, #firsts do sorted[2 * i - 1], sorted[2 * i] = firsts[i], counts[firsts[i]] end
    return sorted
end

-- The runs of spans first, count, first, count, ... that do not overlap.
function text.runs(spans)
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
