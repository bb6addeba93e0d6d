-- SPDX-License-Identifier: Apache-2.0
-- JOIN and SPEND. Joins are gathered, over commands and batches, and enter the line with one ZADD.

local joined_spans = {} -- the places that joined in this call, as { first, count }

local function add_joined(first, count)
    local last = joined_spans[#joined_spans]
    if last and last[1] + last[2] == first then
        last[2] = last[2] + count
    else
        joined_spans[#joined_spans + 1] = { first, count }
    end
end

local join
local flush_joins = do_nothing -- until there are joins

-- Makes these two functions: only calls with joins need them, and making them takes longer than many a step.
local load_joins = joins and function()
    -- The joins gathered: places and visitors in turn, as ZADD wants them; how many; and which, as spans
    -- { first place, from, to, index of the first in its batch, exceptions of the batch } of visitors ARGV[from..to].
    local gathered, n_gathered, spans = {}, 0, {}

    local texts = {} -- places of the joins of one step

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

    -- The gathered visitors who would be new in a line that has no room for them, as { visitor = true }; or nil.
    local function find_full(deadlines)
        local room, found, new = settings.limit - state.waiting, nil, {}
        if n_gathered <= room then
            return nil
        end
        for _, span in ipairs(spans) do
            local from, to = span[2], span[3]
            local places = redis.call('ZMSCORE', K_WAITING, unpack(ARGV, from, to))
            for i = 1, to - from + 1 do
                local visitor = ARGV[from + i - 1]
                if places[i] or new[visitor] or deadlines and deadlines[visitor] then
                    -- holds a place
                elseif room > 0 then
                    room, new[visitor] = room - 1, true
                else
                    found = found or {}
                    found[visitor] = true
                end
            end
        end
        return found
    end

    -- Removes these visitors from the first n joins gathered. Returns how many remain.
    local function drop(visitors, n)
        local kept = 0
        for i = 1, 2 * n, 2 do
            if not visitors[gathered[i + 1]] then
                gathered[kept + 1], gathered[kept + 2] = gathered[i], gathered[i + 1]
                kept = kept + 2
            end
        end
        return kept / 2
    end

    -- Not all visitors of this call were new: finds out who of this span was, and notes an exception for each other.
    local function resolve_span(span, deadlines, full)
        local first, from, to, index, list = unpack(span)
        local places = redis.call('ZMSCORE', K_WAITING, unpack(ARGV, from, to))
        for i = 0, to - from do
            local visitor, place = ARGV[from + i], tonumber(places[i + 1])
            if deadlines[visitor] then
                add_exception(list, index + i, OUTCOME.active, read_session(visitor), tonumber(deadlines[visitor]))
            elseif full[visitor] then
                add_exception(list, index + i, OUTCOME.full, 0, 0)
            elseif place ~= first + i then
                add_exception(list, index + i, OUTCOME.waiting, place, 0)
            else
                add_joined(first + i, 1)
            end
        end
    end

    -- Lets the gathered joins enter the line, with a handful of calls however many they are.
    flush_joins = function()
        if n_gathered == 0 then
            return
        end
        local deadlines = state.active > 0 and find_active() or nil
        local full = find_full(deadlines)
        local n = deadlines and drop(deadlines, n_gathered) or n_gathered
        n = full and drop(full, n) or n
        local added = n > 0 and redis.call('ZADD', K_WAITING, 'NX', unpack(gathered, 1, 2 * n)) or 0
        for _, span in ipairs(spans) do
            if added < n_gathered then
                resolve_span(span, deadlines or {}, full or {})
            else
                add_joined(span[1], span[3] - span[2] + 1)
            end
        end
        state.waiting, totals.joined = state.waiting + added, totals.joined + added
        n_gathered, spans = 0, {}
    end

    -- n joins of visitors ARGV[from...]. Every JOIN uses up one seq, so that the k-th JOIN of a batch has the k-th seq
    -- of it; for a visitor who holds a place already, or has no room, the seq stays unused.
    join = function(index, lane, n, from)
        if n_gathered + n > JOINS_MAX then
            flush_joins()
        end
        local first, list, places, last, at_visitor = lane * LANE + state.seq + 1, gathered, texts, 2 * n_gathered,
            from - 1
        write_row(places, first, n, '')
        for i = 1, n do
            list[last + 1], list[last + 2] = places[i], ARGV[at_visitor + i]
            last = last + 2
        end
        spans[#spans + 1] = { first, from, from + n - 1, index, exceptions }
        n_gathered, state.seq = n_gathered + n, state.seq + n
    end
end

local join_since

-- Makes this function: only calls with SINCE need it.
local load_since = late and function()
    local function refuse(index)
        state.seq = state.seq + 1
        add_exception(exceptions, index, OUTCOME.spent, 0, 0)
    end

    -- Joins that were made at this time, or later, and come late. A visitor whose place has ended since was placed
    -- through another worker meanwhile: a second place would be nobody's.
    join_since = function(index, lane, n, from, ms)
        local ends, first = redis.call('ZMSCORE', K_ENDED, unpack(ARGV, from, from + n - 1)), 0
        for i = 0, n - 1 do
            if ends[i + 1] and tonumber(ends[i + 1]) >= ms * 8 and not holds_place(ARGV[from + i]) then
                if i > first then
                    join(index + first, lane, i - first, from + first)
                end
                refuse(index + i)
                first = i + 1
            end
        end
        if first < n then
            join(index + first, lane, n - first, from + first)
        end
    end
end

local spend

-- Makes this function: only calls with SPEND need it.
local load_spend = invites and function()
    -- Marks these keys as spent by the visitor. False if they were spent before. The visitor who spent them and still
    -- holds a place may do so again: the first answer may have been lost.
    local function mark_spent(keys, until_ms, visitor)
        local is_new = true
        for _, key in ipairs(keys) do
            if not redis.call('SET', key, visitor, 'NX', 'PX', math.max(1000, until_ms - now)) then
                is_new = false
                if redis.pcall('GET', key) ~= visitor then -- or a key of another type
                    return false
                end
            end
        end
        return is_new or holds_place(visitor)
    end

    local CLOCK_MS = 5000 -- TL_TICKET_CLOCK_S

    -- May a visitor repeat a join with a pending ticket? Not once the place has ended. What ended shortly before the
    -- ticket was given may have been an earlier place, but then the visitor holds the one that was joined, because a
    -- ticket is given after its JOIN was sent. With an invite or a solution, only if that was not spent before.
    local function may_repeat(seconds, digest, until_ms, visitor)
        if has_ended_since(visitor, seconds * 1000 - CLOCK_MS) and not holds_place(visitor) then
            return false
        end
        return digest == '' or mark_spent({ spent_key(' ' .. digest) }, until_ms, visitor)
    end

    -- Spends an invite for a JOIN. False if that is not possible, or the line is full; then the seq of the JOIN stays
    -- unused.
    -- " seconds digest" is a join repeated with a pending ticket, given at this Unix time; an id of an invite has no
    -- space. The digest is that of the invite or the solution which opened the join, or empty.
    spend = function(index, invite, until_ms, visitor)
        if state.waiting >= settings.limit and not holds_place(visitor) then
            state.seq = state.seq + 1
            add_exception(exceptions, index, OUTCOME.full, 0, 0)
            return false
        end
        local seconds, digest = string.match(invite, '^ (%d+) ?(%x*)$')
        local may
        if seconds then
            may = may_repeat(tonumber(seconds), digest, until_ms, visitor)
        else
            digest = string.sub(redis.sha1hex(invite), 1, 16)
            may = mark_spent({ spent_key(invite), spent_key(' ' .. digest) }, until_ms, visitor)
        end
        if may then
            return true
        end
        state.seq = state.seq + 1
        add_exception(exceptions, index, OUTCOME.spent, 0, 0)
        return false
    end
end
