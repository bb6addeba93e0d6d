-- SPDX-License-Identifier: Apache-2.0
-- Overbooking: the admitter may call more visitors than there is capacity, because some never come. Then the claimed
-- sessions must be known at every claim, without counting them: field `called` of the state and tl:{q}:held, which only
-- this module writes, are in docs/contributors/wire-format.md. c.overbook is what is counted, or nil; with `capacity`,
-- `claim_ttl` and `held`, how many are held, where claims are made.

local int, REASON = text.int, defs.REASON
local REMEMBERED_MAX = 2000 -- claims and noshows
local LEARNED_MIN = 50      -- claims and no-shows: with fewer of them, the share is not known
local CAUTION = 1.645       -- standard deviations by which the share is taken lower: one guess in twenty is too high

local function parse(t)
    local since, n, claims, noshows = match(t or '', '^(%d+):(%d+):(%d+):(%d+)$')
    return since and { since = since + 0, n = n + 0, claims = claims + 0, noshows = noshows + 0 } or nil
end

-- c: with the field called. Call it after state.check, which may have begun to count again. Of a step with claims, the
-- capacity that counts now, and claim_ttl.
function overbook.open(c, capacity, claim_ttl)
    local o = parse(c.called)
    c.overbook = o
    if o and capacity then o.capacity, o.claim_ttl, o.held = capacity, claim_ttl, call('ZCARD', c.key.held) end
end

-- Before the commit. What cannot be right is emptied: something was damaged, and counting begins again.
function overbook.save(c)
    local o, t = c.overbook, ''
    if o and o.n >= 0 then
        if o.claims + o.noshows > REMEMBERED_MAX then
            o.claims, o.noshows = floor(o.claims / 2), floor(o.noshows / 2)
        end
        t = format('%.0f:%.0f:%.0f:%.0f', o.since, o.n, o.claims, o.noshows)
    end
    if t ~= (c.called or '') then state.set(c, 'called', t) end
end

local function is_counted(o, session) return session.admitted >= o.since end

-- May this visitor claim the session now? Else it is held for the visitor, who is here: not before another session
-- ends, and not before those held for longer.
function overbook.may_claim(c, id, place, session)
    local o = c.overbook
    if not is_counted(o, session) then return true end
    local is_held = call('ZSCORE', c.key.held, id)
    if not is_held and o.capacity - (c.active - o.n) - o.held > 0 then
        o.n, o.claims = o.n - 1, o.claims + 1
        return true
    end
    if not is_held then
        call('ZADD', c.key.held, int(place), id)
        o.held = o.held + 1
    end
    visitor.set_deadline(c, id, session, c.now + o.claim_ttl)
    return false
end

-- A session ends, or is claimed by what a worker remembers (completed). nil: a damaged one, which tells nothing.
function overbook.note_end(c, id, session, reason)
    local o = c.overbook
    if not o or o.n < 0 then return end
    if not session then
        o.n = -1
    elseif not session.claimed and is_counted(o, session) then
        o.n = o.n - 1
        if call('ZREM', c.key.held, id) == 1 and o.held then o.held = o.held - 1 end
        if reason == REASON.completed then o.claims = o.claims + 1 end
        if reason == REASON.unclaimed then o.noshows = o.noshows + 1 end
    end
end

---- of the admit step

-- Of a queue that is overbooked, or was: begins to count, and ends where it no longer is, nobody is held and all who
-- are active fit.
function overbook.open_admit(c, most, capacity)
    local o, held = parse(c.called), call('ZCARD', c.key.held)
    if most > 0 and (not o or o.since > c.now + 1000) then -- or the clock was ahead
        o = { since = c.now + 1, n = 0, claims = 0, noshows = 0 }
    elseif most == 0 and o and held == 0 and c.active <= capacity then
        o = nil
    end
    c.overbook = o
    if o then o.held = held end
end

-- Claims sessions for those who came while the capacity was claimed.
function overbook.grant(c, capacity, session_ttl, most)
    local o = c.overbook
    local free = o and min(capacity - (c.active - o.n), most) or 0
    if free > 0 and o.held > 0 then state.check(c, { 'events', 'sessions' }) end
    while free > 0 and o.held > 0 do
        local id = call('ZPOPMIN', c.key.held)[1]
        local session = visitor.session(c, id)
        o.held = o.held - 1
        if session and not session.claimed and is_counted(o, session) then -- else it has ended
            session.admitted, session.claimed = c.now, true
            visitor.prolong(c, id, session, c.now + session_ttl, true)
            o.n, o.claims, free = o.n - 1, o.claims + 1, free - 1
        end
    end
end

-- How many more may be called: so that those who come are expected to fit, and at most `most` above the capacity.
function overbook.left(c, capacity, most)
    local o, missing = c.overbook, 0 -- the share of those called who never come, cautiously
    local free, total = capacity - (c.active - o.n) - o.held, o.claims + o.noshows
    if total >= LEARNED_MIN then
        local share = o.noshows / total
        missing = min(0.9, max(0, share - CAUTION * (share * (1 - share) / total) ^ 0.5))
    end
    local more = floor(free / (1 - missing) + 1e-9) - (o.n - o.held)
    return max(0, min(more, capacity + most - c.active))
end

---- of an audit

local COUNTED_MOST = 5000 -- sessions, one by one

-- admit_capacity: as the state has it, or nil.
function overbook.check(c, active, admit_capacity)
    local t = audit.record(c, 'called')
    if not t then return end
    local o, n = parse(t), 0
    local sessions = o and active <= COUNTED_MOST and call('HGETALL', c.key.sessions) or {}
    for i = 2, #sessions, 2 do
        local session = text.parse_session(sessions[i])
        if session and not session.claimed and is_counted(o, session) then n = n + 1 end
    end
    if o and active > COUNTED_MOST then n = o.n end
    local wrong = not o and 'what is counted of those called cannot be read: ' .. t
        or o.n > active and format('%.0f were called and have not claimed, but only %.0f are active', o.n, active)
        or n ~= o.n and format('%.0f sessions are not claimed, but the state counts %.0f', n, o.n)
    if wrong then audit.found_record(c, 1, 'called', 'called', 'the admitter begins to count again', '%s', wrong) end
    local capacity = tonumber(call('HGET', c.key.config, 'capacity')) or 0
    if o and admit_capacity and active - o.n > max(admit_capacity, capacity) then
        audit.found(c, 2, 'claimed', 'none is admitted until enough have gone; report how it came to this',
            '%.0f have claimed, more than the capacity was', active - o.n)
    end
end
