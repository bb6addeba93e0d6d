-- SPDX-License-Identifier: Apache-2.0
-- Records: the texts and scores that scripts keep in the store. Each is built and parsed here; C reads those of places,
-- sessions and ends in common/store/records.c. docs/contributors/wire-format.md lists them.

---- tl:{q}:waiting: visitor -> place

-- Returns the place that a server wrote as a score, and its digits: some write 100000000 as 1e+8.
local function parse_place(score)
    local place = tonumber(score)
    if place % 100000 == 0 then
        return place, int(place)
    end
    return place, score
end

---- tl:{q}:sessions: visitor -> "place:admitted ms:claimed". claimed is 1 after the visitor's first RENEW, else 0.

-- What follows the place in the text. admitted_ms: as text.
local function session_tail(admitted_ms, claimed)
    return ':' .. admitted_ms .. (claimed and ':1' or ':0')
end

-- Returns place, admitted ms, claimed; nil for a missing or damaged text.
local function parse_session(text)
    local place, admitted_ms, claimed = string.match(text or '', '^(%d+):(%d+):([01])$')
    if place then
        return tonumber(place), tonumber(admitted_ms), claimed == '1'
    end
end

-- Returns place and claimed; nil for a missing or damaged text.
--
-- A fast path for a mass of sessions: what is not needed is not parsed, which saves 12 % and more of a step that ends
-- 1,000 sessions. It counts on the server's clock having 13 digits in ms, as it has from 2001 to 2286.
local function parse_session_fast(text)
    local place = tonumber(string.sub(text or '', 1, -17))
    if place and place >= 0 then -- damaged data may be "nan"
        return place, string.byte(text, -1) ~= 48 -- '0'
    end
end

-- The place alone, as text; nil for a missing or damaged one.
local function session_place(text)
    return string.match(text or '', '^%d+')
end

---- tl:{q}:ended: visitor -> end ms * 8 + reason

local function end_score(ms, reason)
    return int(ms * 8 + reason)
end

---- tl:{q}:batches: worker -> "last batch:applied at ms"

local function batch_record(batch, ms)
    return int(batch) .. ':' .. int(ms)
end

-- Returns batch, ms; nil for a missing text.
local function parse_batch(text)
    local batch, ms = string.match(text or '', '^(%d+):(%d+)$')
    return tonumber(batch), tonumber(ms)
end

---- tl:{q}:spent:<invite>: the visitor who spent the invite; and the same at ' ' and its digest

local function spent_key(invite)
    return key_of('spent:') .. invite
end

