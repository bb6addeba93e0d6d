-- SPDX-License-Identifier: Apache-2.0
-- restore: whom the archive knows gets back the place, or the session, of the generation that the store has lost. The
-- archiver calls it: `begin`, `rows` until all are back, `done`; an operator asks for it, or a look finds that it is
-- possible (archiver/archive.lua). Field `restore` of the state says how far it has come:
--   asked   |   running:GENERATION:EVENT:CURSOR:RETURNED:ALL   |   done:GENERATION:RETURNED   |   none:WHY
-- Field `brought`: the generation that is back for good; its line is never brought again, whatever comes later.
-- Where the store has an old copy of the present generation (line/rewind.lua) that is the one to come back, with all
-- whose places the archive knows later: back until an operator asks, then asked:back.
-- Where that copy is from before the store lost the queue as a whole, and the archive knows the generation after it:
--   newer:GENERATION   |   newer:0, where that cannot come back
-- Nobody is admitted until an operator asks, for which the copy goes, or ends the recovery.
-- args     1 keep   2 'ask': and who   |   'none': 3 why, a word   |   'newer': 3 the later generation, or 0
--          'begin': 3 generation   4 its last event in the archive   5 its last seq   6 how many are to come back
--          'rows': 3 generation   4 cursor, that of the field   5 the next one   6... visitors: id, place, deadline of
--                  the session (0: waits; gone: minus the REASON), admitted ms, claimed 0 or 1, serial
--          'settings': 3 the notice   4... settings, names and values in turn, `changed` among them   and who
--          'done': 3 generation   4... totals of those who have ended, as TOTAL says   then the fronts: lane, seq, ...
-- returns  RESTORE. is_next 0: there is nothing (more) to do, or another archiver has done this step
-- fails    INVALID   an operator asks, but the queue has visitors and does not recover, or all are back
--
-- Invariants: as those of apply. A row that comes twice changes nothing the second time. Of visitors who came back by a
-- ticket or a pass before, the archive knows the later place, lane and session; what they and operators did since the
-- queue was created again is later than that. Nobody is admitted meanwhile. Work is bounded by the number of rows.

local ROW, LANE, REASON = 6, defs.LANE, defs.REASON
local TOTAL = { 'completed', 'left', 'expired', 'unclaimed', 'absent', 'removed', 'admitted' }
local FIELDS = state.fields({ 'seq', 'joined', 'completed', 'left', 'expired', 'unclaimed', 'absent', 'removed',
    'admitted' }, { 'restore', 'brought', 'back', 'handed', 'notice' })
local SETTINGS = settings.list({ 'waiting_ttl', 'session_ttl' })
local UNASKED = { old = true, recent = true } -- why nothing comes back that nobody asks for

local function running(c)
    local generation, event, cursor, returned, all = match(c.restore or '', '^running:(%d+):(%d+):(%d+):(%d+):(%d+)$')
    return generation and { generation = generation + 0, event = event + 0, cursor = cursor + 0,
        returned = returned + 0, all = all + 0 }
end

local function note_running(c, r)
    state.set(c, 'restore', format('running:%d:%d:%d:%d:%d', r.generation, r.event, r.cursor, r.returned, r.all))
end

local function ask(c, args)
    local of_present, later = rewind.stage(c, c.restore), match(c.restore or '', '^newer:(%d+)$')
    if c.waiting + c.active > 0 and not recovery.recovers(c) then
        state.fail('INVALID', 'the queue has visitors, and it does not recover: `tellerline queue recover --wait` opens'
            .. ' a recovery')
    end
    if recovery.is_retired(c) and not of_present then
        state.fail('INVALID', 'an operator deleted the queue: its places do not come back')
    elseif c.brought and not of_present then
        state.fail('INVALID', 'the archive has brought back the line of this generation already')
    elseif running(c) then
        return
    elseif (c.back or '') ~= '' and not of_present then
        state.fail('INVALID', 'the store came back from an old copy, and the queue has gone on as of that')
    elseif later == '0' then
        state.fail('INVALID', 'the line that is here is an old copy, and the archive cannot complete it: the log of the'
            .. ' archiver says what you can do')
    end
    changes.record(c, changes.actor(args), 'recover', {}, { from = 'archive' })
    if later then return recovery.start_over(c, later + 0) end
    recovery.reopen(c)
    if of_present then rewind.await(c) end
    state.set(c, 'restore', of_present and 'asked:back' or 'asked')
    state.commit_config(c)
end

local function begin(c, args)
    local generation, r = args[3] + 0, running(c)
    local of_present = generation == c.generation and rewind.stage(c, c.restore)
    if c.brought and not of_present then return { 0, 0, 0 } end
    if of_present then
        recovery.keep_present(c, args[4] + 0, args[5] + 0)
    elseif not recovery.known(c, generation, args[5] + 0) then
        state.set(c, 'restore', 'none:lost')
        state.commit(c)
        return { 0, 0, 0 }
    end
    local is_new = not r or r.generation ~= generation
    if is_new then
        r = { generation = generation, event = args[4] + 0, cursor = 0, returned = 0, all = args[6] + 0 }
        note_running(c, r)
    end
    if is_new then recovery.hold(c) end -- who goes on with it holds it by its steps
    local wait = recovery.begins_after(c)
    state.commit_config(c)
    return { 1, r.cursor, wait }
end

-- Settings that an operator changed later than those that are there, and the notice, where there is none. The step that
-- comes twice finds them there.
local function bring_settings(c, args)
    local given, before, after = { unpack(args, 4, #args - 3) }, {}, {}
    if not settings.are_newer(c, given) then given = {} end
    if (c.notice or '') == '' and args[3] ~= '' then
        before.notice, after.notice = '', args[3]
        state.set(c, 'notice', args[3])
        state.event(c, defs.EVENT.notice, args[3])
    elseif #given == 0 then
        return
    end
    settings.note_return(c, changes.actor(args), given, before, after)
    if #given > 0 then call('HSET', c.key.config, unpack(given)) end
    state.commit_config(c)
end

-- The place is over: the visitor was admitted, or the session ended, after what the archive has last, or while the
-- store was away. held: where the visitor waits there, by a ticket; or nil.
local function expire(c, row, held)
    local is_called = row.deadline > 0
    if is_called then state.count(c, 'admitted', 1) end
    if held then
        visitor.drop(c, { row.id }, { held, 1 }, row.claimed and REASON.expired or REASON.unclaimed)
    else
        state.count(c, 'joined', 1)
        state.count(c, 'expired', 1)
        if is_called and not row.claimed then state.count(c, 'unclaimed', 1) end
    end
end

-- The visitor came back to the place, or to an earlier one, by a ticket or a pass, and it had ended. gone: such places.
local function take_back(c, id, now, reason, gone)
    local place = now.session and now.session.place or now.held
    visitor.take_back(c, id, place, reason, now.session)
    gone[#gone + 1] = place
    now.session, now.held = nil, nil
end

-- A session that comes back. held: where the visitor waits by a ticket, or nil.
local function bring_session(c, row, held, till, session_ttl)
    local place = held or row.place
    local admitted = min(c.now, row.admitted > 0 and row.admitted or till - session_ttl)
    visitor.restore(c, row.id, place, { place = place, admitted = admitted, claimed = row.claimed }, till, held)
    if c.active > c.admit_capacity then state.set(c, 'admit_capacity', c.active) end
end

-- An open place. till: until when it has a session, 0: it waits, nil: it is over; now: what there is of the visitor.
-- Returns whether the visitor comes back, and whether into the line.
local function bring_open(c, row, now, till, session_ttl)
    local session, held = now.session, now.held
    local same = held and held % LANE == row.place % LANE and held
    if session then
        if till and till > now.deadline and session.place % LANE == row.place % LANE then
            visitor.prolong(c, row.id, session, till, false)
        end
    elseif not till then
        if row.deadline > 0 or not same then expire(c, row, same) end
    else
        if same and not recovery.was_moved(c, same) and same ~= row.place then
            visitor.move(c, row.id, same, floor(row.place / LANE))
            same = row.place
        elseif held and not same then -- joined again
            visitor.give_up(c, row.id, held)
        end
        if till > 0 then bring_session(c, row, same, till, session_ttl) end
        return not same, till == 0
    end
end

-- Returns how many came back.
local function bring(c, event, all_rows, s)
    local ids, last, gone, line, places, n = {}, {}, {}, {}, {}, 0
    for i, row in ipairs(all_rows) do
        ids[i] = row.id
        if row.deadline >= 0 then last[row.id] = row end -- of two open places the archive knows the end of one not yet
    end
    local found = rewind.look(c, ids, 1)
    for i, row in ipairs(all_rows) do
        local now, seq = found[i], row.place % LANE
        local here = now.session and now.session.place or now.held
        if row.deadline < 0 then
            if here and here % LANE == seq then take_back(c, row.id, now, -row.deadline, gone) end
            gone[#gone + 1] = row.place
        elseif not now.reason and last[row.id] == row then
            if here and here % LANE < seq then
                take_back(c, row.id, now, now.session and REASON.completed or REASON.left, gone)
            end
            local till = recovery.stands(c, row.place, row.deadline, event)
            local comes, waits = bring_open(c, row, now, till, s.session_ttl)
            if comes then n = n + 1 end
            if comes and waits then line[#line + 1], places[#places + 1] = row.id, row.place end
        end
    end
    visitor.restore_waiting(c, line, places)
    for _, place in ipairs(places) do presence.mark(c, place % LANE, 1, s.waiting_ttl) end
    recovery.note_over(c, gone)
    return n
end

local function read_rows(args)
    local all = {}
    for at = 6, #args, ROW do
        all[#all + 1] = { id = args[at], place = args[at + 1] + 0, deadline = args[at + 2] + 0,
            admitted = args[at + 3] + 0, claimed = args[at + 4] == '1', serial = args[at + 5] + 0 }
    end
    return all
end

-- Is this generation being brought back? Not when the recovery has ended meanwhile, by itself or by an operator: then
-- visitors are admitted.
local function goes_on(c, generation)
    local r = running(c)
    if not r or r.generation ~= generation then return nil end
    if recovery.recovers(c) then return r end
    state.set(c, 'restore', 'none:ended')
    state.commit(c)
    return nil
end

local function rows(c, args)
    local r = goes_on(c, args[3] + 0)
    if not r or r.cursor ~= args[4] + 0 then return { 0, r and r.cursor or 0, 0 } end
    recovery.hold(c)
    draw.open(c)
    local s, n, all = settings.read(c, SETTINGS), 0, read_rows(args)
    if r.generation == c.generation then
        n = rewind.settle(c, all, s.waiting_ttl)
    elseif #all > 0 then
        n = bring(c, r.event, all, s)
    end
    for _, row in ipairs(all) do
        if row.serial > 0 and row.deadline >= 0 then visitor.hand_over(c, row.id, row.place, row.serial, 0) end
    end
    if n > 0 then state.count(c, 'restored', n) end
    r.cursor, r.returned = args[5] + 0, r.returned + n
    note_running(c, r)
    record.count_from_here(c)
    state.commit(c)
    return { 1, r.cursor, 0 }
end

local function done(c, args)
    local r = goes_on(c, args[3] + 0)
    if not r then return { 0, 0, 0 } end
    for i, total in ipairs(TOTAL) do state.count(c, total, args[3 + i] + 0) end
    state.count(c, 'joined', args[4] + args[5] + args[6])
    if r.generation == c.generation then state.set(c, 'called', '') end -- overbooking begins to count again
    state.set(c, 'admit_capacity', min(c.admit_capacity, c.active)) -- sessions may have gone that passes brought back
    recovery.release(c, { unpack(args, 4 + #TOTAL) })
    state.set(c, 'restore', format('done:%d:%d', r.generation, r.returned))
    state.set(c, 'brought', r.generation)
    record.count_from_here(c)
    state.commit_config(c)
    return { 1, r.returned, 0 }
end

local function none(c, args)
    if UNASKED[args[3]] and match(c.restore or '', '^asked') then return { 0, 0, 0 } end
    if rewind.stage(c, c.restore) then recovery.finish(c) end
    if args[3] == 'whole' then state.set(c, 'back', '') end -- what an earlier generation lost may still come back
    state.set(c, 'restore', 'none:' .. args[3])
    state.commit_config(c)
    return { 0, 0, 0 }
end

local function newer(c, args)
    local said = 'newer:' .. args[3]
    if rewind.stage(c, c.restore) and c.restore ~= said then
        state.set(c, 'restore', said)
        rewind.await(c)
        state.commit_config(c)
    end
    return { 0, 0, 0 }
end

local STEPS = { ask = ask, newer = newer, begin = begin, settings = bring_settings, rows = rows, done = done,
    none = none }

entry('restore', { 'allow-oom' }, function(keys, args)
    local c = state.open(state.begin(keys, args[1]), FIELDS)
    state.check(c, { 'waiting', 'active', 'ended', 'sessions', 'lost', 'serials', 'events' })
    local reply = STEPS[args[2]](c, args) or { 1, 0, 0 }
    reply[4], reply[5] = c.now, c.event
    return reply
end)
