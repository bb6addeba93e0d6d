-- SPDX-License-Identifier: Apache-2.0
-- audit_active: checks visitors who were active a moment ago, at one moment. Changes nothing.
--
-- args     1 the longest time in ms that any setting gives a session
--          2... visitors: one page of the active set, which bounds the work
-- returns  { findings (line/audit.lua), how many, places }: for each visitor the place of the session, '' when there is
--          none. All that is compared is read here, so every finding is real.

local int, LANE = text.int, defs.LANE
local OVERDUE_MS = 360000 -- the expirer holds a session for five minutes after its deadline at most

-- c: with what the checks compare, as numbers. Unlike state.read it takes damaged fields.
local function begin(keys, longest)
    local c = audit.begin(keys)
    local v = call('HMGET', c.key.state, 'seq', 'base_seq', 'restored', 'recover_until', 'base_ms')
    c.seq, c.n_lanes, c.longest = tonumber(v[1]), audit.lanes(c), longest
    c.base_seq, c.restored, c.base_ms = tonumber(v[2]) or 0, tonumber(v[3]) or 0, tonumber(v[5]) or 0
    c.recovers = (tonumber(v[4]) or 0) > 0
    c.heads, c.moved, c.holders = {}, {}, {} -- by lane, by lane and by place, as they are needed
    return c
end

-- Who was moved stands before some that were called before the move. While a queue recovers, and after it, places that
-- came back stand before some that were called meanwhile.
local function check_order(c, id, place, admitted)
    local lane = floor(place / LANE)
    if not c.heads[lane] then
        c.heads[lane] = call('ZRANGEBYSCORE', c.key.waiting, int(lane * LANE), '(' .. int((lane + 1) * LANE),
            'WITHSCORES', 'LIMIT', 0, 1)
        c.moved[lane] = tonumber(call('HGET', c.key.state, 'moved:' .. lane)) or 0 -- when the operator last did so, ms
    end
    local head, ahead = c.heads[lane][1], tonumber(c.heads[lane][2])
    if ahead and ahead < place and admitted > c.moved[lane]
        and not (c.recovers or c.restored > 0 and ahead % LANE <= c.base_seq) then
        audit.found(c, 4, 'order:' .. id,
            format('visitor "%s" (%s) is active, while "%s" (number %.0f) still waits', id, audit.place(place), head,
                ahead % LANE), 'report how it came to this')
    end
end

local function check_holder(c, id, place)
    local other = c.holders[place] or call('ZRANGEBYSCORE', c.key.waiting, int(place), int(place), 'LIMIT', 0, 1)[1]
    c.holders[place] = id
    if other and other ~= id then audit.share_place(c, id, other, place) end
end

local function check_deadline(c, id, score)
    local deadline = tonumber(score)
    if not deadline or deadline ~= floor(deadline) or deadline <= 0 or deadline > c.now + c.longest then
        audit.found(c, 9, 'deadline:' .. id,
            format('the session of visitor "%s" ends at %s, which no setting allows', id, tostring(score)),
            'ZADD ' .. c.key.active .. ' XX with a deadline in ms, or end the session')
    elseif c.now - max(deadline, c.base_ms) > OVERDUE_MS then -- or after the store was there again
        audit.found(c, 9, 'overdue:' .. id,
            format('the session of visitor "%s" should have ended %.0f s ago', id, (c.now - deadline) / 1000),
            'look at the log of the expirer; is one running?')
    end
end

entry('audit_active', { 'no-writes' }, function(keys, args)
    local c, ids, places = begin(keys, args[1] + 0), { unpack(args, 2) }, {}
    local active, waiting = call('ZMSCORE', c.key.active, unpack(ids)), call('ZMSCORE', c.key.waiting, unpack(ids))
    local sessions = call('HMGET', c.key.sessions, unpack(ids))
    for i, id in ipairs(ids) do
        local session = active[i] and text.parse_session(sessions[i])
        places[i] = session and session.place < 32 * LANE and int(session.place) or ''
        if active[i] then
            if waiting[i] then
                audit.found(c, 3, 'both:' .. id, 'visitor "' .. id .. '" is both waiting and active',
                    'remove them from the waiting set and correct the counter')
            end
            check_deadline(c, id, active[i])
            if not session then
                audit.found(c, 1, 'session:' .. id, 'visitor "' .. id .. '" is active, but has no readable session',
                    'remove them from the active set and correct the counter')
            elseif audit.check_place(c, 'active visitor', id, session.place, c.seq, c.n_lanes) then
                check_order(c, id, session.place, session.admitted)
                check_holder(c, id, session.place)
            end
        end
    end
    return { c.findings, c.n_findings, places }
end)
