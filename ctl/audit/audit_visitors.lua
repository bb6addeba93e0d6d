-- SPDX-License-Identifier: Apache-2.0
-- Audits visitors, a page at a time, which bounds the work: audit_active, audit_waiting and audit_serials. All that a
-- step compares is read in it, so every finding is real. Findings: line/audit.lua. Changes nothing.
-- args     1 the cursor, '-' at the start   2 about how many at a time
-- returns  { cursor of the next page, '' after the last, findings, how many }

local int, LANE = text.int, defs.LANE
local PORTION = 1000 -- unpack is limited by Lua's stack
local OVERDUE_MS = 360000 -- the expirer holds a session for five minutes after its deadline at most

-- Checks a page of a sorted set or a hash, in portions: a small one comes in one page, whatever was asked for. Returns
-- the cursor of the next page.
local function scan(c, command, key, args, check)
    local found, portion = call(command, key, args[1] == '-' and '0' or args[1], 'COUNT', args[2]), {}
    for i = 1, #found[2], 2 do
        portion[#portion + 1] = found[2][i]
        if #portion == PORTION or i == #found[2] - 1 then
            check(c, portion)
            portion = {}
        end
    end
    return found[1] ~= '0' and found[1] or ''
end

-- A visitor who was moved is before some that were called before the move. While a queue recovers, and after it, places
-- that came back are before some that were called in the meantime.
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

local function check_active(c, ids)
    local active, waiting = call('ZMSCORE', c.key.active, unpack(ids)), call('ZMSCORE', c.key.waiting, unpack(ids))
    local sessions = call('HMGET', c.key.sessions, unpack(ids))
    for i, id in ipairs(ids) do
        local session = active[i] and text.parse_session(sessions[i])
        if active[i] then
            if waiting[i] then
                audit.found(c, 3, 'both:' .. id, 'remove them from the waiting set and correct the counter',
                    'visitor "%s" is both waiting and active', id)
            end
            check_deadline(c, id, active[i], c.longest)
            if not session then
                audit.found(c, 1, 'session:' .. id, 'remove them from the active set and correct the counter',
                    'visitor "%s" is active, but has no readable session', id)
            elseif audit.check_place(c, 'active visitor', id, session.place) then
                local place, n = session.place, #c.places
                local other = c.holders[place]
                    or call('ZRANGEBYSCORE', c.key.waiting, int(place), int(place), 'LIMIT', 0, 1)[1]
                c.holders[place], c.places[n + 1], c.places[n + 2] = id, id, int(place)
                check_order(c, id, place, session.admitted)
                if other and other ~= id then audit.share_place(c, id, other, place) end
            end
        end
    end
end

-- audit_active: those who are active.
-- args     3 the longest time in ms that any setting gives a session   4... visitors, instead of a page
-- returns  4 visitor, place of the session, ... in turn
entry('audit_active', { 'no-writes' }, function(keys, args)
    local c, following = audit.begin(keys), ''
    -- As numbers; unlike state.read, damaged ones too.
    local v = call('HMGET', c.key.state, 'base_seq', 'restored', 'recover_until', 'base_ms')
    c.base_seq, c.restored, c.base_ms = tonumber(v[1]) or 0, tonumber(v[2]) or 0, tonumber(v[4]) or 0
    c.recovers = (tonumber(v[3]) or 0) > 0
    c.longest, c.heads, c.moved, c.holders, c.places = args[3] + 0, {}, {}, {}, {} -- by lane and place, as needed
    if args[4] then
        check_active(c, { unpack(args, 4) })
    else
        following = scan(c, 'ZSCAN', c.key.active, args, check_active)
    end
    return { following, c.findings, c.n_findings, c.places }
end)

-- audit_waiting: those who wait, in the order of the line. The cursor is a score: a page begins with the last place of
-- the one before it, so that two visitors at one place meet on one.
entry('audit_waiting', { 'no-writes' }, function(keys, args)
    local c, most, last_id, last = audit.begin(keys), args[2] + 0, nil, nil
    local rows = call('ZRANGE', c.key.waiting, args[1] == '-' and '-inf' or args[1], '+inf', 'BYSCORE', 'LIMIT', 0,
        most, 'WITHSCORES')
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

local function check_serials(c, seqs)
    local named, ids = {}, {} -- by index of the seq
    local records = call('HMGET', c.key.serials, unpack(seqs))
    for i, seq in ipairs(seqs) do
        named[i] = match(seq, '^[1-9]%d*$') and match(records[i] or '', '^[1-9]%d*:%d+:(.+)$')
        ids[i] = named[i] or ''
    end
    local waiting = call('ZMSCORE', c.key.waiting, unpack(ids))
    local sessions = call('HMGET', c.key.sessions, unpack(ids))
    for i, seq in ipairs(seqs) do
        local place = tonumber(waiting[i] or match(sessions[i] or '', '^%d+'))
        local wrong = not named[i] and 'the serial of number %s cannot be read: %s'
            or not (place and place % LANE == tonumber(seq))
            and 'number %s has a serial, but visitor "%s" does not hold that place'
        if wrong then
            audit.found(c, 6, 'serial:' .. seq,
                format('HDEL %s %s; tickets from before the hand-over count again', c.key.serials, seq), wrong, seq,
                named[i] or records[i])
        end
    end
end

-- audit_serials: places that were handed over to another device: each must be held, by whom the record names.
entry('audit_serials', { 'no-writes' }, function(keys, args)
    local c = audit.begin(keys)
    return { scan(c, 'HSCAN', c.key.serials, args, check_serials), c.findings, c.n_findings }
end)
