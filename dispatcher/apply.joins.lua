-- JOIN and SPEND. Joins are gathered, over commands and batches, and enter the line with one ZADD.

-- The joins gathered: places and visitors in turn, as ZADD wants them; how many; and which, as spans
-- { first place, from, to, index of the first in its batch, exceptions of the batch } of the visitors ARGV[from..to].
local gathered, n_gathered, spans = {}, 0, {}

local texts = {} -- places of the joins of one step

local joined_spans = {} -- the places that joined in this call, as { first, count }

local function add_joined(first, count)
    local last = joined_spans[#joined_spans]
    if last and last[1] + last[2] == first then
        last[2] = last[2] + count
    else
        joined_spans[#joined_spans + 1] = { first, count }
    end
end

-- The gathered visitors who are active, as { visitor = deadline }; nil if none is.
local function find_active()
    local found = nil
    for _, span in ipairs(spans) do
        local from, to = span[2], span[3]
        local deadlines = redis.call('ZMSCORE', K_ACTIVE, unpack(ARGV, from, to))
        for i = 1, to - from + 1 do
            if deadlines[i] then
                found = found or {}
                found[ARGV[from + i - 1]] = deadlines[i]
            end
        end
    end
    return found
end

-- Removes the active visitors from what is gathered. Returns how many joins remain.
local function drop_active(deadlines)
    local n = 0
    for i = 1, 2 * n_gathered, 2 do
        if not deadlines[gathered[i + 1]] then
            gathered[n + 1], gathered[n + 2] = gathered[i], gathered[i + 1]
            n = n + 2
        end
    end
    return n / 2
end

-- Not all visitors of this call were new: finds out who of this span was, and notes an exception for each other one.
local function resolve_span(span, deadlines)
    local first, from, to, index, list = unpack(span)
    local places = redis.call('ZMSCORE', K_WAITING, unpack(ARGV, from, to))
    for i = 0, to - from do
        local visitor, place = ARGV[from + i], tonumber(places[i + 1])
        if deadlines[visitor] then
            add_exception(list, index + i, ACTIVE, read_session(visitor), tonumber(deadlines[visitor]))
        elseif place ~= first + i then
            add_exception(list, index + i, WAITING, place, 0)
        else
            add_joined(first + i, 1)
        end
    end
end

-- Lets the gathered joins enter the line, with a handful of calls however many they are.
local function flush_joins()
    if n_gathered == 0 then
        return
    end
    local deadlines = state.active > 0 and find_active() or nil
    local n = deadlines and drop_active(deadlines) or n_gathered
    local added = n > 0 and redis.call('ZADD', K_WAITING, 'NX', unpack(gathered, 1, 2 * n)) or 0
    for _, span in ipairs(spans) do
        if added < n_gathered then
            resolve_span(span, deadlines or {})
        else
            add_joined(span[1], span[3] - span[2] + 1)
        end
    end
    state.waiting, totals.joined = state.waiting + added, totals.joined + added
    n_gathered, spans = 0, {}
end

-- n joins of visitors ARGV[from...]. Every JOIN uses up one seq, so that the k-th JOIN of a batch has the k-th seq of it;
-- for a visitor who holds a place already, the seq stays unused.
local function join(index, lane, n, from)
    if n_gathered + n > JOINS_MAX then
        flush_joins()
    end
    local first, list, places, last, at_visitor = lane * LANE + state.seq + 1, gathered, texts, 2 * n_gathered, from - 1
    write_row(places, first, n, '')
    for i = 1, n do
        list[last + 1], list[last + 2] = places[i], ARGV[at_visitor + i]
        last = last + 2
    end
    spans[#spans + 1] = { first, from, from + n - 1, index, exceptions }
    n_gathered, state.seq = n_gathered + n, state.seq + n
end

local function holds_place(visitor)
    return redis.call('ZSCORE', K_WAITING, visitor) or redis.call('ZSCORE', K_ACTIVE, visitor)
end

-- Spends the invite. False if it was spent before; then the seq of the JOIN stays unused. The visitor who spent it and
-- still holds a place may send it again: the first answer may have been lost.
local function spend(index, invite, until_ms, visitor)
    local key = spent_key(invite)
    if redis.call('SET', key, visitor, 'NX', 'PX', math.max(1000, until_ms - now)) then
        return true
    end
    if redis.call('GET', key) == visitor and holds_place(visitor) then
        return true
    end
    state.seq = state.seq + 1
    add_exception(exceptions, index, SPENT, 0, 0)
    return false
end

