-- SPDX-License-Identifier: Apache-2.0
-- told: a hook was told of entries of the journal, or could not be. Moves its cursor on, keeps its state for operators,
-- and trims what every hook was told of.
-- Flags: allow-oom
--
-- ARGV     1 name of the hook   2 its cursor, "ID N", or '': it stays   3 how many events it was told of
--          4 how many were lost to it   5 HTTP status of its last answer, 0: none   6 what went wrong, or ''
-- Returns  { Redis time ms, since when it fails, ms, or 0 }
-- Errors   NOQUEUE  the queue does not exist
--
-- Invariants: a cursor never goes back, so a process that lost its lease undoes nothing. An entry is trimmed when all
-- cursors are past it.
local hook, cursor, told, lost, status, problem = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local K_HOOKS, K_JOURNAL = key_of('hooks'), key_of('journal')

if redis.call('EXISTS', K_STATE) == 0 then
    return no_queue()
end
redis.call('XLEN', K_JOURNAL)

-- The parts of an id as numbers.
local function parts(of)
    local event, nth = string.match(of or '', '^(%d+)-(%d+) ')
    return tonumber(event), tonumber(nth)
end

local function is_before(a, b)
    local event_a, nth_a = parts(a)
    local event_b, nth_b = parts(b)
    return event_a < event_b or event_a == event_b and nth_a < nth_b
end

local now = now_ms()
local before, text = unpack(redis.call('HMGET', K_HOOKS, 'cursor:' .. hook, 'state:' .. hook))
if not parts(before) then -- a hook that is gone
    return { now, 0 }
end
local readable, old = pcall(cjson.decode, text or '')
if not readable or type(old) ~= 'table' then
    old = {}
end
local state = { at = now, status = tonumber(status), told = (tonumber(old.told) or 0) + tonumber(told),
    lost = (tonumber(old.lost) or 0) + tonumber(lost) }
if problem ~= '' then
    state.problem, state.since = problem, tonumber(old.since) or now
end
redis.call('HSET', K_HOOKS, 'state:' .. hook, cjson.encode(state))
if parts(cursor) and is_before(before, cursor) then
    redis.call('HSET', K_HOOKS, 'cursor:' .. hook, cursor)
    local found, least = redis.call('HGETALL', K_HOOKS), cursor
    for i = 1, #found, 2 do
        if string.sub(found[i], 1, 7) == 'cursor:' and parts(found[i + 1]) and is_before(found[i + 1], least) then
            least = found[i + 1]
        end
    end
    local event, nth = parts(least)
    redis.call('XTRIM', K_JOURNAL, 'MINID', '=', int(event) .. '-' .. int(nth + 1))
end
return { now, state.since or 0 }
