-- SPDX-License-Identifier: Apache-2.0
-- Rewind: the store came back from an old copy of its own. It lacks a stretch of the history of this generation, of
-- which the archive may know more (archiver/restore.lua). Meanwhile nobody is admitted, and no session ends. So it is
-- where the store has a part of the queue, and an operator goes on with that.
--
-- Fields of the state: `back`, "FOUND:BASE:SEQ:MS:AT": the stretch lies between the events FOUND and BASE; those of its
-- seqs that no total counts yet are above SEQ; since MS, that of its first return, the store is there again; AT, ms:
-- when FOUND was. Of a part FOUND and AT are 0: any place may be missing. `restore`: back, until an operator asks or it
-- begins.

local LANE, REASON, int = defs.LANE, defs.REASON, text.int
local OLD_MS = 60000   -- a copy whose last event is older than that is an old one
local COMES_MS = 10000 -- within which an archiver comes: without one there is nothing to wait for
local STAGES = { ['^back$'] = 'back', ['^newer:'] = 'newer', ['^asked:back$'] = 'asked',
    ['^running:(%d+):'] = 'running' }
local MAY_RETURN = { [REASON.expired] = true, [REASON.unclaimed] = true, [REASON.absent] = true }

-- How far it has come: back, newer, asked or running; nil: there is nothing to bring back of this generation.
local function stage_of(generation, restore)
    for pattern, stage in pairs(STAGES) do
        local found = match(restore or '', pattern)
        if found and (stage ~= 'running' or found + 0 == generation) then return stage end
    end
end

function rewind.stage(c, restore) return stage_of(c.generation, restore) end

-- The stretch: found, base, seq, ms and at; or nil.
function rewind.stretch(c)
    local found, base, seq, ms, at = match(call('HGET', c.key.state, 'back') or '',
        '^(%d+):(%d+):(%d+):(%d+):(%d+)$')
    return found and { found = found + 0, base = base + 0, seq = seq + 0, ms = ms + 0, at = at + 0 }
end

-- Until when another recovery goes on that had not ended in this copy, whose last event was at that time, ms; nil:
-- there was none. While the store was away nobody could come back, so the window begins to pass again.
local function other_until(c, at, restore, window)
    local till = tonumber(call('HGET', c.key.state, 'recover_until')) or 0
    if till > at or match(restore, '^asked$') or match(restore, '^running:') then
        return max(till, c.now + window)
    end
end

-- For the step that begins an incarnation, before its first write: the fields, in turn with their values, that make the
-- queue recover where it is archived and the copy is old; else none. Where it recovered for another reason, that goes
-- on instead. at: when its last event was, ms; 0: the store has a part of the queue. base: the event from which numbers
-- go on.
function rewind.fields(c, at, seq, base)
    local window = c.archive and c.now - at > OLD_MS and recovery.window(c) or 0
    if window == 0 and (not c.archive or at > 0) then return {} end
    local found, restore = at > 0 and c.event or 0, call('HGET', c.key.state, 'restore') or ''
    local is_back = stage_of(c.generation, restore)
    local till = not is_back and other_until(c, at, restore, window)
    if till then return { 'recover_until', int(till) } end
    local before, since = is_back and rewind.stretch(c), c.now
    if before then -- it was not done yet
        found, seq, since, at = min(found, before.found), min(seq, before.seq), before.ms, min(at, before.at)
    end
    return { 'restore', 'back', 'back', concat({ int(found), int(base), int(seq), int(since), int(at) }, ':'),
        'recover_since', int(c.now), 'recover_until', int(c.now + min(window, COMES_MS)),
        'started', call('HGET', c.key.state, 'started') or int(c.now), -- it waits for an archiver, and for no worker
        'lost_generation', int(c.generation), 'lost_by', recovery.NAMED_BY.operator, 'lost_event', 0, 'lost_size', 0 }
end

-- An archiver is there, or an operator asks: from now on the recovery lasts the window, in which it compares; or until
-- an operator has chosen.
function rewind.await(c)
    if rewind.stage(c, c.restore) == 'newer' then
        recovery.hold_on(c)
    elseif recovery.recovers(c) and c.recover_until == c.recover_since + COMES_MS then
        state.set(c, 'recover_until', int(c.recover_since + max(c.window, COMES_MS)))
    end
end

-- Does every session go on for now, because the archive may know of a later end? c: with recover_until.
function rewind.holds_sessions(c)
    return (tonumber(c.recover_until) or 0) > c.now
        and stage_of(c.generation, call('HGET', c.key.state, 'restore')) ~= nil
end

---- what the archive knows of visitors

-- What is written here the archive knows already.
local function untold(c, verb, ...)
    local archive = c.archive
    c.archive = false
    verb(...)
    c.archive = archive
end

-- Is the place from before the one of this row, or the same?
local function is_up_to(held, row) return held and held % LANE <= row.place % LANE end

-- Gathers visitors who are no longer there, by reason.
local function gather(ends, reason, id, place)
    local of = ends[reason] or { ids = {}, spans = {} }
    local n = #of.ids
    ends[reason], of.ids[n + 1], of.spans[2 * n + 1], of.spans[2 * n + 2] = of, id, place, 1
end

-- Returns the place or session of the visitor that ends here, or nil. Places above the seq `counted` are counted when
-- all is done.
local function has_ended(c, row, now, ends, reason, counted)
    local of, here = ends.sessions, now.session and now.session.place
    if not here then of, here = ends.line, now.held end
    if not here and not now.reason then visitor.set_end(c, row.id, reason) end -- so that no ticket brings it back
    if not is_up_to(here, row) then return nil end
    gather(of, reason, row.id, here)
    if here % LANE > counted then
        visitor.uncount(c, reason, now.session)
    elseif not now.session and here % LANE == row.place % LANE and row.admitted > 0 then
        state.count(c, 'admitted', 1)
    end
    return here
end

-- The session was due while the store was away, so that the archive does not know of its end. Totals of a place of the
-- stretch that is not in the store are counted here.
local function is_overdue(c, row, now, ends, stretch)
    local reason, seq = row.claimed and REASON.expired or REASON.unclaimed, row.place % LANE
    local ended = has_ended(c, row, now, ends, reason, 1 / 0)
    if now.reason then return end
    if c.archive then record.one(c, defs.NOTE.ended, reason, row.id, row.place) end
    if seq <= stretch.seq or ended and ended % LANE == seq then return end
    for _, total in ipairs({ 'joined', 'admitted', 'expired' }) do state.count(c, total, 1) end
    if not row.claimed then state.count(c, 'unclaimed', 1) end
end

-- The visitor no longer has an earlier place or session. Returns false where there is a later one. counted: as above.
local function leave_earlier(c, row, now, counted)
    local session, held = now.session, now.held
    if session and session.place % LANE >= row.place % LANE then return false end
    if session then
        untold(c, visitor.revoke, c, { row.id }, REASON.completed)
        if session.place % LANE > counted then visitor.uncount(c, REASON.completed, true) end
    elseif held and held % LANE < row.place % LANE then
        untold(c, visitor.give_up, c, row.id, held)
        if held % LANE > counted then visitor.uncount(c, REASON.left) end
        now.held = nil
    elseif held and held % LANE > row.place % LANE then -- joined again since the store is there
        visitor.give_up(c, row.id, held)
        now.held = nil
    end
    return true
end

local function move(c, row, held)
    local lane = floor(row.place / LANE)
    if floor(held / LANE) == lane or recovery.was_moved(c, held) then return end
    untold(c, visitor.move, c, row.id, held, lane)
    state.set(c, 'moved:' .. int(lane), c.now)
end

-- Returns whether the visitor is to be put back into the line.
local function waits(c, row, now, counted)
    if now.reason and not MAY_RETURN[now.reason] then return false end
    if not leave_earlier(c, row, now, counted) then return false end
    if now.held then move(c, row, now.held) end
    return not now.held
end

-- Returns whether the visitor has come back.
local function is_active(c, row, now, till, counted)
    local session, deadline = now.session, now.deadline
    if session and session.place % LANE == row.place % LANE then
        if till > deadline then
            session.claimed = session.claimed or row.claimed
            untold(c, visitor.prolong, c, row.id, session, till, true)
        end
        return false
    end
    if now.reason and not MAY_RETURN[now.reason] or not leave_earlier(c, row, now, counted) then return false end
    if now.held then move(c, row, now.held) end
    visitor.restore(c, row.id, row.place,
        { place = row.place, admitted = min(c.now, row.admitted), claimed = row.claimed }, till, now.held)
    if c.active > c.admit_capacity then state.set(c, 'admit_capacity', c.active) end
    return true
end

-- What the store knows of these visitors, a table for each: held, where they wait; session and its deadline; reason of
-- an end since, ms.
function rewind.look(c, ids, since)
    local places, sessions = call('ZMSCORE', c.key.waiting, unpack(ids)), call('HMGET', c.key.sessions, unpack(ids))
    local active, ended = call('ZMSCORE', c.key.active, unpack(ids)), call('ZMSCORE', c.key.ended, unpack(ids))
    local all, of = {}, {}
    for i = 1, #ids do
        local at, id = tonumber(ended[i]) or 0, ids[i]
        of[id] = of[id] or { held = text.number(places[i]), session = active[i] and text.parse_session(sessions[i]),
            deadline = tonumber(active[i]), reason = at >= since * 8 and floor(at % 8) or nil }
        all[i] = of[id]
    end
    return all
end

-- Visitors as the archive knows them since, a row each: { id, place, deadline, admitted, claimed, serial }; deadline 0:
-- waits, negative: minus the REASON of the end. c: with all totals and admit_capacity. Returns how many came back.
function rewind.settle(c, rows, waiting_ttl)
    local ids, stretch, ends, line, places, n = {}, rewind.stretch(c), { line = {}, sessions = {} }, {}, {}, 0
    if #rows == 0 or not stretch then return 0 end
    for i, row in ipairs(rows) do ids[i] = row.id end
    local all = rewind.look(c, ids, stretch.ms)
    for i, row in ipairs(rows) do
        local till = row.deadline > 0 and max(row.deadline, recovery.remembered(c, row.place)) or row.deadline
        if till < 0 then
            has_ended(c, row, all[i], ends, -till, stretch.seq)
        elseif till == 0 then
            if waits(c, row, all[i], stretch.seq) then line[#line + 1], places[#places + 1] = row.id, row.place end
        elseif till <= c.now then
            is_overdue(c, row, all[i], ends, stretch)
        elseif is_active(c, row, all[i], till, stretch.seq) then
            n = n + 1
        end
    end
    for reason, of in pairs(ends.line) do untold(c, visitor.drop, c, of.ids, of.spans, reason) end
    for reason, of in pairs(ends.sessions) do untold(c, visitor.revoke, c, of.ids, reason) end
    visitor.restore_waiting(c, line, places)
    for _, place in ipairs(places) do presence.mark(c, place % LANE, 1, waiting_ttl) end
    return n + #line
end
