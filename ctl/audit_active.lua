-- SPDX-License-Identifier: Apache-2.0
-- audit_active: checks visitors who were active a moment ago, at one moment. Changes nothing.
-- Flags: no-writes
-- Parts: prelude.records audit.findings
--
-- ARGV     1 the longest time in ms that any setting gives a session
--          2... visitors: one page of the active set, which bounds the work
-- Returns  { findings (audit.findings.lua), how many, places }: for each visitor the place of the session, '' when
--          there is none. All that is compared is read here, so every finding is real.
local longest = tonumber(ARGV[1])
local visitors = { unpack(ARGV, 2) }
local active = redis.call('ZMSCORE', K_ACTIVE, unpack(visitors))
local waiting = redis.call('ZMSCORE', K_WAITING, unpack(visitors))
local sessions = redis.call('HMGET', K_SESSIONS, unpack(visitors))
local state = redis.call('HMGET', K_STATE, 'seq', 'base_seq', 'restored', 'recover_until', 'base_ms')
local seq, base_seq, restored = tonumber(state[1]), tonumber(state[2]) or 0, tonumber(state[3]) or 0
local recovers, base_ms = (tonumber(state[4]) or 0) > 0, tonumber(state[5] or '') or 0
local now, lanes = now_ms(), count_lanes()

local heads = {} -- lane -> { visitor, score } of the first who waits in it, or {}
local function head_of(lane)
    if not heads[lane] then
        heads[lane] = redis.call('ZRANGEBYSCORE', K_WAITING, int(lane * LANE), '(' .. int((lane + 1) * LANE),
            'WITHSCORES', 'LIMIT', 0, 1)
    end
    return heads[lane]
end

-- While a queue recovers, and after it, places that came back stand before some that were called meanwhile.
local function is_late(head_seq)
    return recovers or (restored > 0 and head_seq <= base_seq)
end

local moves = {} -- lane -> when the operator last moved a visitor into it, ms; 0: not known
local function moved_into(lane)
    moves[lane] = moves[lane] or tonumber(redis.call('HGET', K_STATE, 'moved:' .. lane)) or 0
    return moves[lane]
end

-- Who was moved stands before some that were called before the move.
local function check_order(visitor, place, admitted_ms)
    local head = head_of(math.floor(place / LANE))
    local ahead = head[1] and tonumber(head[2])
    if ahead and ahead < place and not is_late(ahead % LANE) and admitted_ms > moved_into(math.floor(place / LANE)) then
        found(4, 'order:' .. visitor,
            format('visitor "%s" (%s) is active, while "%s" (number %.0f) still waits', visitor, place_text(place),
                head[1], ahead % LANE), 'report how it came to this')
    end
end

local holders = {} -- place -> visitor of this page
local function check_holder(visitor, place)
    local other = holders[place] or redis.call('ZRANGEBYSCORE', K_WAITING, int(place), int(place), 'LIMIT', 0, 1)[1]
    holders[place] = visitor
    if other and other ~= visitor then
        share_place(visitor, other, place)
    end
end

-- The expirer holds a session for five minutes after its deadline at most, and after the store was there again.
local OVERDUE_MS = 360000
local function check_deadline(visitor, score)
    local deadline = tonumber(score)
    if not deadline or deadline ~= math.floor(deadline) or deadline <= 0 or deadline > now + longest then
        found(9, 'deadline:' .. visitor,
            format('the session of visitor "%s" ends at %s, which no setting allows', visitor, tostring(score)),
            'ZADD ' .. K_ACTIVE .. ' XX with a deadline in ms, or end the session')
    elseif now - math.max(deadline, base_ms) > OVERDUE_MS then
        found(9, 'overdue:' .. visitor,
            format('the session of visitor "%s" should have ended %.0f s ago', visitor, (now - deadline) / 1000),
            'look at the log of the expirer; is one running?')
    end
end

local places = {}
for i, visitor in ipairs(visitors) do
    local place, admitted_ms
    if active[i] then
        place, admitted_ms = parse_session(sessions[i])
    end
    places[i] = place and place < 32 * LANE and int(place) or ''
    if active[i] then
        if waiting[i] then
            found(3, 'both:' .. visitor, 'visitor "' .. visitor .. '" is both waiting and active',
                'remove them from the waiting set and correct the counter')
        end
        check_deadline(visitor, active[i])
        if not place then
            found(1, 'session:' .. visitor, 'visitor "' .. visitor .. '" is active, but has no readable session',
                'remove them from the active set and correct the counter')
        elseif check_place('active visitor', visitor, place, seq, lanes) then
            check_order(visitor, place, admitted_ms)
            check_holder(visitor, place)
        end
    end
end
return { findings, n_findings, places }
