-- SPDX-License-Identifier: Apache-2.0
-- The moves of a visitor, each as a whole: the sets, the sizes and totals, and what readers are told. The only writer
-- of tl:{q}:waiting, active, sessions, ended and serials.
--
-- Invariants: a visitor is in at most one of waiting and active; joined = waiting + active + completed + left +
-- expired. A verb that refuses changes nothing, and returns an OUTCOME and a place. The step has called state.check for
-- the keys that its verbs write, and reads the totals that they count.

local EVENT, REASON, OUTCOME, NOTE, LANE = defs.EVENT, defs.REASON, defs.OUTCOME, defs.NOTE, defs.LANE
local int, number = text.int, text.number
local ADMIT_PORTION, PORTION = 250, 1000 -- visitors in one call of Redis; unpack is limited by Lua's stack
local ROW_MIN = 50   -- with fewer visitors, to look whether they stand in a row costs more than it saves
local ENDED_MAX = 500000 -- about 60 MB
local WAITING, ACTIVE = { 'waiting' }, { 'active' }
local TOTALS = { [REASON.completed] = { 'completed' }, [REASON.left] = { 'left' }, [REASON.expired] = { 'expired' },
    [REASON.unclaimed] = { 'expired', 'unclaimed' }, [REASON.absent] = { 'expired', 'absent' },
    [REASON.removed] = { 'expired', 'removed' } }

---- reading

-- { place, admitted ms, claimed }, or nil.
function visitor.session(c, id) return text.parse_session(call('HGET', c.key.sessions, id)) end

-- Where the visitor waits, or nil.
function visitor.place(c, id) return number(call('ZSCORE', c.key.waiting, id)) end

-- A move to another lane keeps the seq, so the seq tells whether two places are one.
local function is_same(held, place) return held and held % LANE == place % LANE end

-- Is `held`, where a visitor waits, or nil, this place, or the one that this place was drawn to?
local function is_held(c, held, place)
    if not held then return false end
    if is_same(held, place) then return true end
    if not c.is_draw_open then draw.open(c) end
    return c.drawn and draw.is_drawn_to(c.drawn, place, held)
end

-- Where the visitor waits, if that is this place; else nil.
function visitor.waits_at(c, id, place)
    local held = visitor.place(c, id)
    return is_held(c, held, place) and held or nil
end

-- The session of the visitor, if it is at this place; else nil.
local function session_at(c, id, place)
    local session = visitor.session(c, id)
    return session and is_same(session.place, place) and session or nil
end

-- The visitor has no session at this place.
local function refuse(c, id, place) return visitor.waits_at(c, id, place) and OUTCOME.waiting or OUTCOME.gone, place end

---- into the line

-- Notes in `list` that a command did not come out as asked.
function visitor.except(list, index, outcome, place, deadline)
    list[#list + 1] = { index, outcome, place, deadline or 0 }
end

-- n visitors ids[from], ... enter a lane in this order; each uses up one seq. They are gathered, over commands and
-- batches, until visitor.settle lets them in together. list: is to have an exception for each who gets no new place;
-- index: that of the first.
function visitor.enter(c, lane, ids, from, n, list, index)
    if c.leaving or c.joining and c.joining.n + n > PORTION then visitor.settle(c) end
    local joining, first = c.joining or { n = 0, ids = {}, texts = {}, spans = {} }, lane * LANE + c.seq + 1
    local all, texts, at, row = joining.ids, joining.texts, joining.n, text.row(first, n, '')
    for i = 1, n do
        local id = ids[from + i - 1]
        at = at + 1
        all[at], texts[2 * at - 1], texts[2 * at] = id, row[i], id
    end
    joining.spans[#joining.spans + 1] = { first = first, n = n, at = joining.n, list = list, index = index }
    joining.n, c.joining = joining.n + n, joining
    state.set(c, 'seq', c.seq + n)
end

-- A visitor does not enter, but uses up a seq.
function visitor.skip(c, list, index, outcome)
    state.set(c, 'seq', c.seq + 1)
    visitor.except(list, index, outcome, 0)
end

-- Of these visitors, those in a sorted set: visitor -> score.
local function scores_of(key, ids)
    local scores, found = call('ZMSCORE', key, unpack(ids)), {}
    for i = 1, #ids do found[ids[i]] = scores[i] or nil end
    return found
end

-- Not all of a span were new: tells who was, and adds them to the note `new`, unless it is false.
local function resolve(c, span, ids, held, active, new)
    for i = 0, span.n - 1 do
        local id, at = ids[span.at + i + 1], span.index + i
        local place = number(held[id])
        if active[id] then
            local session = visitor.session(c, id)
            visitor.except(span.list, at, OUTCOME.active, session and session.place, tonumber(active[id]))
        elseif not held[id] then
            visitor.except(span.list, at, OUTCOME.full, 0)
        elseif place ~= span.first + i then
            visitor.except(span.list, at, OUTCOME.waiting, place)
        else
            state.tell(c, EVENT.joined, 0, { place, 1 })
            if new then new.ids[#new.ids + 1], new.spans[#new.spans + 1], new.spans[#new.spans + 2] = id, place, 1 end
        end
    end
end

-- Lets those gathered enter the line; c.limit: nobody new enters a line of this length.
local function settle_joining(c)
    local joining = c.joining
    c.joining = nil
    local key, ids, texts, room = c.key, joining.ids, joining.texts, c.limit - c.waiting
    local active, n = c.active > 0 and scores_of(key.active, ids) or {}, joining.n
    if next(active) or n > room then -- those who are new and for whom there is room
        local known = scores_of(key.waiting, ids)
        n = 0
        for i, id in ipairs(ids) do
            if n < room and not (known[id] or active[id]) then
                texts[2 * n + 1], texts[2 * n + 2], known[id], n = texts[2 * i - 1], id, true, n + 1
            end
        end
    end
    local added = n > 0 and call('ZADD', key.waiting, 'NX', unpack(texts, 1, 2 * n)) or 0
    local held = added < joining.n and scores_of(key.waiting, ids)
    local spans, is_row = joining.spans, not held and not joining.spans[2]
    local new = c.archive and not is_row and { ids = held and {} or ids, spans = {} }
    for _, span in ipairs(spans) do
        if held then
            resolve(c, span, ids, held, active, new)
        else
            state.tell(c, EVENT.joined, 0, { span.first, span.n })
            if new then new.spans[#new.spans + 1], new.spans[#new.spans + 2] = span.first, span.n end
        end
    end
    if new and new.spans[1] then
        record.note(c, NOTE.entered, 0, new.ids, new.spans)
    elseif c.archive and is_row and joining.n == 1 then
        record.one(c, NOTE.entered, 0, ids[1], spans[1].first)
    elseif c.archive and is_row then
        record.note(c, NOTE.entered, 0, ids, { spans[1].first, joining.n })
    end
    c.waiting = c.waiting + added
    state.count(c, 'joined', added)
end

-- A visitor comes back to a place that the store had lost. session: nil, or what it had there, until the deadline; then
-- the place itself may have been kept: waits.
function visitor.restore(c, id, place, session, deadline, waits)
    if waits then
        call('ZREM', c.key.waiting, id)
        c.waiting = c.waiting - 1
    end
    if session then
        call('ZADD', c.key.active, int(deadline), id)
        call('HSET', c.key.sessions, id, text.session(session))
        c.active = c.active + 1
        state.count(c, 'admitted', 1)
        state.tell(c, EVENT.admitted, deadline, { place, 1 })
    else
        call('ZADD', c.key.waiting, int(place), id)
        c.waiting = c.waiting + 1
        state.tell(c, EVENT.joined, 0, { place, 1 })
    end
    if c.archive then record.one(c, NOTE.restored, session and deadline or 0, id, place) end
    if not waits then state.count(c, 'joined', 1) end
end

-- The same for at most PORTION visitors who wait there, in the order of their places.
function visitor.restore_waiting(c, ids, places)
    local n, scored, spans, past = #ids, {}, {}, nil
    if n == 0 then return end
    for i = 1, n do
        local place, last = places[i], #spans
        scored[2 * i - 1], scored[2 * i] = int(place), ids[i]
        if place == past then spans[last] = spans[last] + 1 else spans[last + 1], spans[last + 2] = place, 1 end
        past = place + 1
    end
    call('ZADD', c.key.waiting, unpack(scored))
    c.waiting = c.waiting + n
    if c.archive then record.note(c, NOTE.restored, 0, ids, spans) end
    state.tell(c, EVENT.joined, 0, spans)
    state.count(c, 'joined', n)
end

-- To another lane, with the same seq: readers are told that the old place moved, and that a visitor joined at the new.
function visitor.move(c, id, place, lane)
    local moved = lane * LANE + place % LANE
    call('ZADD', c.key.waiting, 'XX', int(moved), id)
    state.event(c, EVENT.removed, { place, 1 }, REASON.moved)
    state.event(c, EVENT.joined, { moved, 1 })
    if c.archive then record.one(c, NOTE.lane, moved, id, place) end
end

-- The draw gives numbers: of these visitors, those who wait at a seq up to `cut` get the next seqs from `first` on, in
-- this order, and stay in their lanes. A place that was handed over to another device keeps its serial under the new
-- number. Returns their indices. Tells nobody: a reader rebuilds when the draw is done.
function visitor.renumber(c, ids, cut, first)
    local places, scored, old, found = call('ZMSCORE', c.key.waiting, unpack(ids)), {}, {}, {}
    for i = 1, #ids do
        local place = number(places[i])
        local seq = place and place % LANE
        if seq and seq <= cut then
            local n = #found
            scored[2 * n + 1], scored[2 * n + 2] = int(place - seq + first + n), ids[i]
            old[n + 1], found[n + 1] = int(seq), i
        end
    end
    if #found == 0 then return found end
    call('ZADD', c.key.waiting, 'XX', unpack(scored))
    if c.archive then
        local drawn, spans = {}, {}
        for k, i in ipairs(found) do drawn[k], spans[2 * k - 1], spans[2 * k] = ids[i], number(places[i]), 1 end
        record.note(c, NOTE.drawn, first, drawn, spans)
    end
    for i, serial in ipairs(call('HMGET', c.key.serials, unpack(old))) do
        if serial then
            call('HDEL', c.key.serials, old[i])
            call('HSET', c.key.serials, int(first + i - 1), serial)
        end
    end
    return found
end

---- to the counter

-- Takes n visitors from this rank of the line on. Returns them, and the texts of their sessions; tells their places.
-- Most of the time they stand in a row, without gaps, as their first and last place tell. Then Redis need not print
-- their places, nor Lua parse them.
local function take(c, rank, n, deadline, tail)
    local key, last = c.key.waiting, rank + n - 1
    if n >= ROW_MIN then
        local first = number(call('ZRANGE', key, rank, rank, 'WITHSCORES')[2])
        if first and number(call('ZRANGE', key, last, last, 'WITHSCORES')[2]) == first + n - 1 then
            local ids = call('ZRANGE', key, rank, last)
            call('ZREMRANGEBYRANK', key, rank, last)
            state.tell(c, EVENT.admitted, deadline, { first, n })
            if c.archive then record.note(c, NOTE.admitted, deadline, ids, { first, n }) end
            return ids, text.row(first, n, tail)
        end
    end
    local taken = rank == 0 and call('ZPOPMIN', key, n) or call('ZRANGE', key, rank, last, 'WITHSCORES')
    if rank > 0 then call('ZREMRANGEBYRANK', key, rank, last) end
    local ids, sessions, spans, place_of = {}, {}, {}, text.place
    for i = 1, #taken, 2 do
        local at, place, digits = (i + 1) / 2, place_of(taken[i + 1])
        ids[at], sessions[at], spans[i], spans[i + 1] = taken[i], digits .. tail, place, 1
    end
    if c.archive then record.note(c, NOTE.admitted, deadline, ids, spans) end
    state.tell(c, EVENT.admitted, deadline, spans)
    return ids, sessions
end

-- The same for one visitor, who becomes active: short lists need not be made.
local function admit_one(c, rank, deadline, score, tail)
    local key = c.key
    local taken = rank == 0 and call('ZPOPMIN', key.waiting) or call('ZRANGE', key.waiting, rank, rank, 'WITHSCORES')
    if rank > 0 then call('ZREM', key.waiting, taken[1]) end
    local place, digits = text.place(taken[2])
    call('ZADD', key.active, score, taken[1])
    call('HSET', key.sessions, taken[1], digits .. tail)
    state.event(c, EVENT.admitted, { place, 1 }, deadline)
    if c.named then c.named[1] = taken[1] end
    if c.archive then record.one(c, NOTE.admitted, deadline, taken[1], place) end
end

-- Calls visitors: each has a session until the deadline, and must claim it by then. shares: rank, n, rank, n, ...: who
-- is taken from the line in turn, all of them `all`. c.named: a list for the journal, of texts.
function visitor.admit(c, shares, all, deadline)
    local score, tail = int(deadline), ':' .. int(c.now) .. ':0'
    c.waiting, c.active = c.waiting - all, c.active + all
    state.count(c, 'admitted', all)
    if all == 1 then return admit_one(c, shares[1], deadline, score, tail) end
    local key, active, fields, n, named = c.key, {}, {}, 0, c.named
    for i = 1, #shares, 2 do
        local rank, count = shares[i], shares[i + 1]
        for done = 0, count - 1, ADMIT_PORTION do
            local ids, sessions = take(c, rank, min(ADMIT_PORTION, count - done), deadline, tail)
            if n + 2 * #ids > 2 * ADMIT_PORTION then
                call('ZADD', key.active, unpack(active, 1, n))
                call('HSET', key.sessions, unpack(fields, 1, n))
                n = 0
            end
            for k = 1, #ids do
                local id = ids[k]
                active[n + 1], active[n + 2], fields[n + 1], fields[n + 2], n = score, id, id, sessions[k], n + 2
            end
            if named then named[#named + 1] = concat(ids, ' ') end
        end
    end
    call('ZADD', key.active, unpack(active, 1, n))
    call('HSET', key.sessions, unpack(fields, 1, n))
end

-- Of a part of a queue, before state.check: a session is in two keys. Where one of them is missing, the other goes too,
-- so that all who had one come back by their passes.
function visitor.drop_half_sessions(c)
    if call('EXISTS', c.key.active, c.key.sessions) == 1 then call('UNLINK', c.key.active, c.key.sessions) end
end

-- The session ends at this time instead.
function visitor.set_deadline(c, id, session, deadline)
    call('ZADD', c.key.active, 'XX', int(deadline), id)
    if c.archive then
        record.one(c, session.claimed and NOTE.claimed or NOTE.extended, deadline, id, session.place)
    end
end

-- The same, and tells it: a claimed session is renewed, another one extended. is_changed: it is written, too.
function visitor.prolong(c, id, session, deadline, is_changed)
    visitor.set_deadline(c, id, session, deadline)
    if is_changed then call('HSET', c.key.sessions, id, text.session(session)) end
    state.event_later(c, session.claimed and EVENT.renewed or EVENT.extended, session.place, deadline)
end

-- The visitor has come: session_ttl takes the place of claim_ttl. Later a session that slides is extended, and never
-- past session_max, unless the command only claims. s: settings session_ttl, session_max, session_sliding.
function visitor.claim(c, id, place, s, only_claims)
    local session = session_at(c, id, place)
    if not session then return refuse(c, id, place) end
    if c.overbook and not session.claimed and not overbook.may_claim(c, id, place, session) then
        return OUTCOME.waiting, place
    end
    if session.claimed and (only_claims or not s.session_sliding) then return end
    local deadline = s.session_sliding and min(c.now + s.session_ttl, session.admitted + s.session_max)
        or session.admitted + s.session_ttl
    local was_claimed = session.claimed
    session.claimed = true
    visitor.prolong(c, id, session, deadline, not was_claimed)
end

-- Gives a visitor who has not claimed the session claim_ttl once more, at most as long as the session would last. It is
-- counted from the admission, so a second time changes nothing. A visitor held for a claim has a turn, and no deadline.
function visitor.extend(c, id, place, s)
    local session = session_at(c, id, place)
    if not session then return refuse(c, id, place) end
    local deadline = session.admitted + min(2 * s.claim_ttl, s.session_ttl)
    if not session.claimed and not (c.overbook and call('ZSCORE', c.key.held, id))
        and deadline > (tonumber(call('ZSCORE', c.key.active, id)) or deadline) then
        visitor.prolong(c, id, session, deadline, false)
    end
end

---- out

-- The place is another device's from now on: tickets with a lower serial no longer count. Compares and sets: of
-- all codes made for one serial, the first that comes wins. The same device may repeat its command, because the first
-- answer may have been lost. device 0: a ticket with this serial was seen, so the store has lost the hand-over. Only a
-- place that waits is handed over, so the pass of the session to come is given to the new device only; and not before
-- the draw: until then a place has no number that lasts.
function visitor.hand_over(c, id, place, serial, device)
    local waits = visitor.waits_at(c, id, place)
    local session = not waits and session_at(c, id, place)
    local held = waits or session and session.place
    if not held or c.opens_at and not (c.drawn and c.drawn.phase == draw.DONE) then return OUTCOME.gone, place end
    local seq = int(held % LANE)
    local known, by = match(call('HGET', c.key.serials, seq) or '', '^(%d+):(%d+):')
    known = tonumber(known) or 0
    if device == 0 and known >= serial or known == serial and tonumber(by) == device then return end
    if device > 0 and (not waits or known >= serial) then return waits and OUTCOME.waiting or OUTCOME.active, held end
    call('HSET', c.key.serials, seq, int(serial) .. ':' .. int(device) .. ':' .. id)
    state.set(c, 'handed', '1')
    state.event_later(c, EVENT.handed, held, serial)
    if c.archive then record.one(c, NOTE.handed, serial, id, held) end
end

-- The serials of these places go with them, if any was ever handed over. A key of another type must not stop a step
-- half-way.
local function forget_serials(c, spans)
    if c.handed == nil then c.handed = call('HGET', c.key.state, 'handed') end
    if not c.handed or #spans == 0 then return end
    local seqs = {}
    for i = 1, #spans, 2 do seqs[#seqs + 1] = int(spans[i] % LANE) end
    pcall_redis('HDEL', c.key.serials, unpack(seqs))
end

-- Ends visitors, at most PORTION, and tells it. event: removed, from the line; or freed, from a session. spans: their
-- places; {} where damaged sessions do not tell them: readers find that the sizes differ, and rebuild. goes_on: it is
-- the end of a place, but not of the visitor.
local function finish(c, event, reason, ids, spans, goes_on)
    local n, score, ended = #ids, text.end_score(c.now, reason), {}
    if n == 0 then return end
    if c.is_lone then state.check(c, event == EVENT.removed and WAITING or ACTIVE) end
    for i = 1, n do ended[2 * i - 1], ended[2 * i] = score, ids[i] end
    if not goes_on then call('ZADD', c.key.ended, unpack(ended)) end -- first: a lone end has not looked at this key
    forget_serials(c, spans)
    if c.archive then record.ended(c, reason, ids, spans) end
    state.tell(c, event, reason, spans)
    if event == EVENT.removed then
        call('ZREM', c.key.waiting, unpack(ids))
        c.waiting = c.waiting - n
    else
        call('ZREM', c.key.active, unpack(ids))
        call('HDEL', c.key.sessions, unpack(ids))
        c.active = c.active - n
    end
    if c.ended and not goes_on then c.ended = c.ended + n end
    local totals = TOTALS[reason]
    for i = 1, #totals do state.count(c, totals[i], n) end
end

-- Gives up the place or the session. Only a session completes: who waits is refused. Those who go are gathered, as
-- those who enter; list: is to have an exception for one who cannot go; index: of the command.
function visitor.leave(c, id, place, reason, list, index)
    if c.joining or c.leaving and #c.leaving == PORTION then visitor.settle(c) end
    c.leaving = c.leaving or {}
    c.leaving[#c.leaving + 1] = { id, place, reason, list, index }
end

-- Lets those gathered go.
local function settle_leaving(c)
    local leaving, ids, gone, ends, places = c.leaving, {}, {}, {}, nil
    c.leaving = nil
    for i = 1, #leaving do ids[i] = leaving[i][1] end
    local sessions = call('HMGET', c.key.sessions, unpack(ids))
    for i = 1, #leaving do
        local id, place, reason, list, index = unpack(leaving[i])
        local session, event = not gone[id] and text.parse_session(sessions[i]), EVENT.freed
        local held = session and is_same(session.place, place) and session.place
        if held then
            overbook.note_end(c, id, session, reason)
        else
            places, event = places or call('ZMSCORE', c.key.waiting, unpack(ids)), EVENT.removed
            held = not gone[id] and number(places[i])
            local waits = is_held(c, held, place)
            if not waits or reason == REASON.completed then
                visitor.except(list, index, waits and OUTCOME.waiting or OUTCOME.gone, place)
                held = nil
            end
        end
        if held then
            local kind = event * 8 + reason
            local of_kind = ends[kind] or { event, reason, {}, {} }
            local spans = of_kind[4]
            ends[kind], of_kind[3][#of_kind[3] + 1], gone[id] = of_kind, id, true
            spans[#spans + 1], spans[#spans + 2] = held, 1
            -- Drawn: the lines of workers have the earlier place until the draw is done.
            if not is_same(held, place) then state.tell(c, event, reason, { place, 1 }) end
        end
    end
    for _, of_kind in pairs(ends) do finish(c, unpack(of_kind)) end
end

-- Lets those gathered enter or go, with a handful of calls however many they are. Other verbs do not see them before.
function visitor.settle(c)
    if c.joining then settle_joining(c) end
    if c.leaving then settle_leaving(c) end
end

-- Takes at most PORTION visitors at these places from the line.
function visitor.drop(c, ids, spans, reason) finish(c, EVENT.removed, reason, ids, spans) end

-- The visitor comes back to a lost place, and has joined again meanwhile, at `held`: gives that place up. Counts as
-- left, but is no end of the visitor.
function visitor.give_up(c, id, held)
    call('ZREM', c.key.waiting, id)
    c.waiting = c.waiting - 1
    state.count(c, 'left', 1)
    state.tell(c, EVENT.removed, REASON.left, { held, 1 })
    forget_serials(c, { held, 1 })
    if c.archive then record.one(c, NOTE.ended, REASON.left, id, held) end
end

-- Ends the sessions of these visitors: for this reason; or, nil, because they are overdue: of those who came, expired,
-- else unclaimed.
function visitor.revoke(c, ids, reason)
    for from = 1, #ids, PORTION do
        local portion = { unpack(ids, from, min(from + PORTION - 1, #ids)) }
        local sessions = call('HMGET', c.key.sessions, unpack(portion))
        local came, came_at, not_come, not_come_at, damaged = {}, {}, {}, {}, {}
        for i = 1, #portion do
            local id, place, claimed = portion[i], match(sessions[i] or '', text.SESSION)
            local ids_of, spans = came, came_at
            if claimed == '0' and not reason then ids_of, spans = not_come, not_come_at end
            if not place then ids_of = damaged end
            ids_of[#ids_of + 1] = id
            if place then spans[#spans + 1], spans[#spans + 2] = place + 0, 1 end
            if c.overbook then overbook.note_end(c, id, text.parse_session(sessions[i]), reason or REASON.unclaimed) end
        end
        finish(c, EVENT.freed, reason or REASON.expired, came, came_at)
        finish(c, EVENT.freed, reason or REASON.expired, damaged, {})
        finish(c, EVENT.freed, REASON.unclaimed, not_come, not_come_at)
    end
end

-- The end of a place for this reason, which was counted, is counted elsewhere, too, with its join and admission.
function visitor.uncount(c, reason, was_admitted)
    local totals = TOTALS[reason]
    for i = 1, #totals do state.count(c, totals[i], -1) end
    state.count(c, 'joined', -1)
    if was_admitted then state.count(c, 'admitted', -1) end
end

-- The visitor came back to this place, or to the session there, which had ended for this reason, and is counted
-- elsewhere. The visitor may have a later place.
function visitor.take_back(c, id, place, reason, session)
    finish(c, session and EVENT.freed or EVENT.removed, reason, { id }, { place, 1 }, true)
    visitor.uncount(c, reason, session)
end

-- The end counts as of now.
function visitor.set_end(c, id, reason) call('ZADD', c.key.ended, text.end_score(c.now, reason), id) end

-- Forgets at most `most` ends, the oldest first, that are older than kept_ms (nil: of any age), or too many: their
-- visitors are told that the place is not known, instead of how it ended. Returns how many.
function visitor.forget_ended(c, most, kept_ms)
    local n = kept_ms and call('ZCOUNT', c.key.ended, '-inf', text.end_score(c.now - kept_ms, 0)) or 0
    if c.ended > ENDED_MAX then n = max(n, call('ZCARD', c.key.ended) - ENDED_MAX) end
    n = min(n, most)
    if n > 0 then call('ZREMRANGEBYRANK', c.key.ended, 0, n - 1) end
    return n
end

-- Erases what is kept of a visitor who is no longer in the line. Returns in how many places.
function visitor.forget(c, id)
    return call('ZREM', c.key.ended, id) + call('ZREM', c.key.held, id) + call('HDEL', c.key.sessions, id)
end
