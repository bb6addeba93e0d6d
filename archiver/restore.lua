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
-- Invariants: as those of apply. A row that comes twice changes nothing the second time, nor does one whose visitor
-- came back before. Nobody is admitted meanwhile. Work is bounded by the number of rows.

local ROW = 6
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

-- A session that comes back. The visitor may have joined again meanwhile, at `held`.
local function bring_session(c, id, place, held, till, args, at, session_ttl)
    if held then visitor.give_up(c, id, held) end
    local admitted = min(c.now, args[at + 3] > '0' and args[at + 3] + 0 or till - session_ttl)
    visitor.restore(c, id, place, { place = place, admitted = admitted, claimed = args[at + 4] == '1' }, till)
    if c.active > c.admit_capacity then state.set(c, 'admit_capacity', c.active) end
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

-- The visitor was admitted, or the session ended, after what the archive has last, or while the store was away.
local function note_expired(c, deadline, is_unclaimed)
    state.count(c, 'joined', 1)
    state.count(c, 'expired', 1)
    if deadline > 0 then state.count(c, 'admitted', 1) end
    if deadline > 0 and is_unclaimed then state.count(c, 'unclaimed', 1) end
end

-- Visitors who are there again already, or came back and went, stay as they are. Returns how many came back.
local function bring(c, r, args, s)
    local ids, gone, line, places, handed, seen, sessions = {}, {}, {}, {}, {}, {}, 0
    for at = 6, #args, ROW do ids[#ids + 1] = args[at] end
    local waits, active, ended = call('ZMSCORE', c.key.waiting, unpack(ids)), call('ZMSCORE', c.key.active,
        unpack(ids)), call('ZMSCORE', c.key.ended, unpack(ids))
    for i, id in ipairs(ids) do
        local at = 6 + ROW * (i - 1)
        local place, deadline, held = args[at + 1] + 0, args[at + 2] + 0, text.number(waits[i])
        local has_gone = deadline < 0
        local is_back = seen[id] or active[i] or ended[i] or held and held % defs.LANE <= place % defs.LANE
        local till = not has_gone and not is_back and recovery.stands(c, place, deadline, r.event) or nil
        if has_gone then
            gone[#gone + 1] = args[at + 1]
        elseif till and till > 0 then
            bring_session(c, id, place, held, till, args, at, s.session_ttl)
            sessions = sessions + 1
        elseif till then
            if held then visitor.give_up(c, id, held) end
            line[#line + 1], places[#places + 1] = id, place
        end
        if not (till or is_back or has_gone) then note_expired(c, deadline, args[at + 4] == '0') end
        seen[id] = seen[id] or till
        local serial = args[at + 5] + 0
        if (till or held == place) and serial > 0 then handed[#handed + 1] = { id, place, serial } end
    end
    visitor.restore_waiting(c, line, places)
    for _, place in ipairs(places) do presence.mark(c, place % defs.LANE, 1, s.waiting_ttl) end
    for _, one in ipairs(handed) do visitor.hand_over(c, one[1], one[2], one[3], 0) end
    recovery.note_over(c, gone)
    return #line + sessions
end

-- The same of the present generation.
local function bring_later(c, args, s)
    local rows = {}
    for at = 6, #args, ROW do
        rows[#rows + 1] = { id = args[at], place = args[at + 1] + 0, deadline = args[at + 2] + 0,
            admitted = args[at + 3] + 0, claimed = args[at + 4] == '1', serial = args[at + 5] + 0 }
    end
    return rewind.settle(c, rows, s.waiting_ttl)
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
    local s, n = settings.read(c, SETTINGS), 0
    if #args > 5 then n = r.generation == c.generation and bring_later(c, args, s) or bring(c, r, args, s) end
    if n > 0 then state.count(c, 'restored', n) end
    r.cursor, r.returned = args[5] + 0, r.returned + n
    note_running(c, r)
    state.commit(c)
    return { 1, r.cursor, 0 }
end

local function done(c, args)
    local r = goes_on(c, args[3] + 0)
    if not r then return { 0, 0, 0 } end
    for i, total in ipairs(TOTAL) do state.count(c, total, args[3 + i] + 0) end
    state.count(c, 'joined', args[4] + args[5] + args[6])
    if r.generation == c.generation then state.set(c, 'called', '') end -- overbooking begins to count again
    recovery.release(c, { unpack(args, 4 + #TOTAL) })
    state.set(c, 'restore', format('done:%d:%d', r.generation, r.returned))
    state.set(c, 'brought', r.generation)
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
    local said, is_held = 'newer:' .. args[3], recovery.hold_on(c)
    if rewind.stage(c, c.restore) and (is_held or c.restore ~= said) then
        state.set(c, 'restore', said)
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
    reply[4] = c.now
    return reply
end)
