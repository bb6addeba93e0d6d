-- SPDX-License-Identifier: Apache-2.0
-- The arguments of the function apply, checked one by one and kept as steps.

local FIRST = 3         -- argument, of the entries
local JOINS_MAX = 1000  -- in one ZADD: unpack is limited by Lua's stack

local ARGV, n_args = ARGV, #ARGV -- a local variable is found faster

-- The steps, as four numbers each: { kind, a, b, at }, where ARGV[at] is the first text of the step. One flat list: a
-- table for each of a thousand commands costs more than the commands.
--   ENTRY batch, 0, at id and worker   JOIN lane, n, at visitors   SPEND until_ms, 0, at invite
--   SEEN first seq, count, -   OF generation, 0, -   SINCE ms, 0, -
--   LEAVE, COMPLETE, RENEW, CLAIM, EXTEND place, 0, at visitor
--   RESTORE, LOST, CALLED, HAND_OVER 0, 0, at the first argument
local steps, n_steps = { 0, 0, 0, 0, 0, 0, 0, 0 }, 0 -- most calls have two: room for these, which need not grow
local entries, n_entries = {}, 0 -- the ids of the entries
-- Is among them a JOIN; a SPEND; a LEAVE, COMPLETE, RENEW, CLAIM, EXTEND or HAND_OVER; a SEEN; one of RESTORE, LOST and
-- CALLED; a HAND_OVER; a SINCE?
local joins, invites, sessions, presence, restores, handovers, late = false, false, false, false, false, false, false
local at = FIRST -- the argument to parse next; after a failure, the wrong one

-- A whole number >= 0; nil for any other text.
local function whole(text)
    local n = tonumber(text)
    return n and n >= 0 and n % 1 == 0 and n or nil
end

local function add_step(kind, a, b, texts)
    local n = n_steps * 4
    steps[n + 1], steps[n + 2], steps[n + 3], steps[n + 4] = kind, a, b, texts
    n_steps = n_steps + 1
    return true
end

local function parse_entry()
    local batch = whole(ARGV[at + 3])
    if not batch or n_entries == APPLY_CALL_ENTRIES_MAX then
        return false
    end
    n_entries = n_entries + 1
    entries[n_entries] = ARGV[at + 1]
    add_step(STEP.entry, batch, 0, at + 1)
    at = at + 4
    return true
end

local function parse_join(most)
    local lane, n, first = whole(ARGV[at + 1]), whole(ARGV[at + 2]), at + 3
    if not lane or lane >= LANES_MAX or not n or n < 1 or n > most or first + n - 1 > n_args then
        return false
    end
    joins, at = true, first + n
    return add_step(COMMAND.join, lane, n, first)
end

-- A command of n arguments, all of them numbers from the one at `from` on.
local function parse_numbers(kind, n, from)
    local texts = at + 1
    for i = from, n do
        if not whole(ARGV[at + i]) then
            return false
        end
    end
    at = at + 1 + n
    return add_step(kind, 0, 0, texts)
end

local function parse_step()
    local kind = whole(ARGV[at])
    if kind == STEP.entry then
        return parse_entry()
    elseif n_entries == 0 then
        return false
    elseif kind == COMMAND.join then
        return parse_join(JOINS_MAX)
    elseif kind == STEP.of or kind == STEP.since then
        local value = whole(ARGV[at + 1])
        at, late = at + 2, late or kind == STEP.since
        return value and add_step(kind, value, 0, at)
    elseif kind == COMMAND.restore or kind == COMMAND.lost or kind == COMMAND.called then
        restores = true
        return parse_numbers(kind, kind == COMMAND.restore and 6 or 4, kind == COMMAND.restore and 2 or 1)
    end
    if kind == COMMAND.hand_over then
        sessions, handovers = true, true
        return parse_numbers(COMMAND.hand_over, 4, 2)
    end
    local texts, b = at + 1, whole(ARGV[at + 2])
    if not kind or kind > STEP.spend and kind ~= COMMAND.claim and kind ~= COMMAND.extend or not b then
        return false
    end
    at = at + 3
    if kind == STEP.spend then
        invites = true
        return add_step(STEP.spend, b, 0, texts) and whole(ARGV[at]) == COMMAND.join and parse_join(1)
    elseif kind == COMMAND.seen then
        local first = whole(ARGV[texts])
        presence = true
        return first and add_step(COMMAND.seen, first, b, texts)
    end
    sessions = true
    return add_step(kind, b, 0, texts)
end

-- Fills steps and entries. False if an argument makes no sense.
local function parse_arguments()
    while at <= n_args do
        if not parse_step() then
            return false
        end
    end
    return n_entries > 0
end

local are_valid = parse_arguments() -- here, because the parts that follow make only what the steps need

