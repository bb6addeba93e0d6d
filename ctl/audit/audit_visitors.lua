-- SPDX-License-Identifier: Apache-2.0
-- Audits visitors, a page at a time, which bounds the work: audit_active, audit_waiting and audit_serials. All that a
-- step compares is read in it, so every finding is real. Findings: line/audit.lua. Changes nothing.

local int, LANE = text.int, defs.LANE
local OVERDUE_MS = 360000 -- the expirer holds a session for five minutes after its deadline at most

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
        audit.found(c, 4, 'order:' .. id, 'report how it came to this',
            'visitor "%s" (%s) is active, while "%s" (number %.0f) still waits', id, audit.place(place), head,
            ahead % LANE)
    end
end

local function check_deadline(c, id, score, longest)
    local deadline = tonumber(score)
    if not deadline or deadline ~= floor(deadline) or deadline <= 0 or deadline > c.now + longest then
        audit.found(c, 9, 'deadline:' .. id, 'ZADD ' .. c.key.active .. ' XX with a deadline in ms, or end the session',
            'the session of visitor "%s" ends at %s, which no setting allows', id, score)
    elseif c.now - max(deadline, c.base_ms) > OVERDUE_MS then -- or after the store was there again
        audit.found(c, 9, 'overdue:' .. id, 'look at the log of the expirer; is one running?',
            'the session of visitor "%s" should have ended %.0f s ago', id, (c.now - deadline) / 1000)
    end
end

-- audit_active: visitors who were active a moment ago.
-- args     1 the longest time in ms that any setting gives a session   2... visitors: a page of the active set
-- returns  { findings, how many, places }: for each visitor the place of the session, '' when there is none
entry('audit_active', { 'no-writes' }, function(keys, args)
    local c, longest, ids, places = audit.begin(keys), args[1] + 0, { unpack(args, 2) }, {}
    -- As numbers; unlike state.read, damaged ones too.
    local v = call('HMGET', c.key.state, 'base_seq', 'restored', 'recover_until', 'base_ms')
    c.base_seq, c.restored, c.base_ms = tonumber(v[1]) or 0, tonumber(v[2]) or 0, tonumber(v[4]) or 0
    c.recovers = (tonumber(v[3]) or 0) > 0
    c.heads, c.moved, c.holders = {}, {}, {} -- by lane, by lane and by place, as they are needed
    local active, waiting = call('ZMSCORE', c.key.active, unpack(ids)), call('ZMSCORE', c.key.waiting, unpack(ids))
    local sessions = call('HMGET', c.key.sessions, unpack(ids))
    for i, id in ipairs(ids) do
        local session = active[i] and text.parse_session(sessions[i])
        places[i] = session and session.place < 32 * LANE and int(session.place) or ''
        if active[i] then
            if waiting[i] then
                audit.found(c, 3, 'both:' .. id, 'remove them from the waiting set and correct the counter',
                    'visitor "%s" is both waiting and active', id)
            end
            check_deadline(c, id, active[i], longest)
            if not session then
                audit.found(c, 1, 'session:' .. id, 'remove them from the active set and correct the counter',
                    'visitor "%s" is active, but has no readable session', id)
            elseif audit.check_place(c, 'active visitor', id, session.place) then
                local place = session.place
                local other = c.holders[place]
                    or call('ZRANGEBYSCORE', c.key.waiting, int(place), int(place), 'LIMIT', 0, 1)[1]
                c.holders[place] = id
                check_order(c, id, place, session.admitted)
                if other and other ~= id then audit.share_place(c, id, other, place) end
            end
        end
    end
    return { c.findings, c.n_findings, places }
end)

-- audit_waiting: those who wait, in the order of the line.
-- args     1 the score from which on ('-inf' at the start)   2 how many visitors at most
-- returns  { the score from which on the next page begins, or '' after the last, findings, how many }. A page begins
--          with the last place of the one before it, so that two visitors at one place meet on one
entry('audit_waiting', { 'no-writes' }, function(keys, args)
    local c, most, last_id, last = audit.begin(keys), args[2] + 0, nil, nil
    local rows = call('ZRANGE', c.key.waiting, args[1], '+inf', 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
    for i = 1, #rows, 2 do
        local id, place = rows[i], tonumber(rows[i + 1])
        if audit.check_place(c, 'waiting visitor', id, place) and place == last then
            audit.share_place(c, id, last_id, place)
        end
        last_id, last = id, place
    end
    local following = ''
    if #rows == 2 * most and last < 1 / 0 then
        following = format('%.17g', last)
        if tonumber(rows[2]) == last then following = '(' .. following end -- a page of one place: go on behind it
    end
    return { following, c.findings, c.n_findings }
end)

-- audit_serials: places that were handed over to another device: each must be held, by whom the record names.
-- args     seqs: a page of tl:{q}:serials
-- returns  { findings, how many }
entry('audit_serials', { 'no-writes' }, function(keys, args)
    local c, named, ids = audit.begin(keys), {}, {} -- by index of the seq
    local records = call('HMGET', c.key.serials, unpack(args))
    for i, seq in ipairs(args) do
        named[i] = match(seq, '^[1-9]%d*$') and match(records[i] or '', '^[1-9]%d*:%d+:(.+)$')
        ids[i] = named[i] or ''
    end
    local waiting = call('ZMSCORE', c.key.waiting, unpack(ids))
    local sessions = call('HMGET', c.key.sessions, unpack(ids))
    for i, seq in ipairs(args) do
        local place = tonumber(waiting[i] or match(sessions[i] or '', '^%d+'))
        local wrong = not named[i] and 'the serial of number %s cannot be read: %s'
            or not (place and place % LANE == tonumber(seq))
            and 'number %s has a serial, but visitor "%s" does not hold that place'
        if records[i] and wrong then -- else the place has ended since the page was read
            audit.found(c, 6, 'serial:' .. seq,
                format('HDEL %s %s; tickets of before the hand-over count again', c.key.serials, seq), wrong, seq,
                named[i] or records[i])
        end
    end
    return { c.findings, c.n_findings }
end)
