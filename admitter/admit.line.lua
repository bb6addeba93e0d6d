-- SPDX-License-Identifier: Apache-2.0
-- Takes visitors from the line, in portions, and makes them active.

local PORTION = 250         -- visitors in one call of Redis; unpack is limited by Lua's stack
local LOOK_FOR_ROW_MIN = 50 -- with fewer visitors, looking for a row costs more than it saves

-- score, tail: deadline of the sessions, and the end of their texts. Notes the places, and in `named`, if it is a list,
-- who is admitted, a text for each portion. Returns admit_from(rank, count), which admits so many visitors from this
-- rank of the line on; take_popped(popped), which admits those who were taken, given with their places in turn; and
-- make_active(), to be called after these: the sessions of several lanes are written together.
local function line_taker(score, tail, places, named)

local texts = {} -- of the sessions of one portion
local scored, fields, n_taken = {}, {}, 0 -- deadline, visitor, ... and visitor, session, ... of those to make active

-- Notes visitors who were taken, given with their places in turn. Returns them, and for each the text of the session.
local function note_popped(popped)
    local visitors, nth = {}, #places
    for i = 1, #popped / 2 do
        local place, digits = parse_place(popped[2 * i])
        visitors[i], texts[i], places[nth + i] = popped[2 * i - 1], digits .. tail, place
    end
    return visitors, texts
end

-- Takes `count` visitors from this rank of the line on. Returns them, and for each the text of the session.
--
-- A fast path: most of the time they stand in a row, without gaps, as their first and last place tell. Then Redis need
-- not print their places, nor Lua parse them. This saves 17 % of a step that admits 1,400.
local function take(rank, count)
    local last, first, past = rank + count - 1, nil, nil
    if count >= LOOK_FOR_ROW_MIN then
        first = tonumber(redis.call('ZRANGE', K_WAITING, rank, rank, 'WITHSCORES')[2])
        past = tonumber(redis.call('ZRANGE', K_WAITING, last, last, 'WITHSCORES')[2]) + 1
    end
    if first and past - first == count then
        local visitors = redis.call('ZRANGE', K_WAITING, rank, last)
        redis.call('ZREMRANGEBYRANK', K_WAITING, rank, last)
        local nth = #places
        for i = 1, count do
            places[nth + i] = first + i - 1
        end
        write_row(texts, first, count, tail)
        return visitors, texts
    end
    if rank == 0 then
        return note_popped(redis.call('ZPOPMIN', K_WAITING, count))
    end
    local popped = redis.call('ZRANGE', K_WAITING, rank, last, 'WITHSCORES')
    redis.call('ZREMRANGEBYRANK', K_WAITING, rank, last)
    return note_popped(popped)
end

local function make_active()
    if n_taken > 0 then
        redis.call('ZADD', K_ACTIVE, unpack(scored, 1, 2 * n_taken))
        redis.call('HSET', K_SESSIONS, unpack(fields, 1, 2 * n_taken))
        n_taken = 0
    end
end

local function add(visitors, sessions)
    local n = #visitors
    if n_taken + n > PORTION then
        make_active()
    end
    for i = 1, n do
        local at, visitor = 2 * (n_taken + i), visitors[i]
        scored[at - 1], scored[at] = score, visitor
        fields[at - 1], fields[at] = visitor, sessions[i]
    end
    n_taken = n_taken + n
    if named then
        named[#named + 1] = table.concat(visitors, ' ')
    end
end

-- Admits `count` visitors from this rank of the line on.
local function admit_from(rank, count)
    for done = 0, count - 1, PORTION do
        add(take(rank, math.min(PORTION, count - done)))
    end
end

return admit_from, function(popped)
    add(note_popped(popped))
end, make_active

end
