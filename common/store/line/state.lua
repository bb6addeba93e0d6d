-- SPDX-License-Identifier: Apache-2.0
-- The state of a queue and its events: the only writer of tl:{q}:state and tl:{q}:events.
--
-- A step makes its context c with `begin`, reads with `open`, calls `check` before its first write, changes c through
-- the verbs of the other modules, and ends with `commit`. Whatever fails does so in open or check, or in a function
-- that says so: nothing undoes a step that fails half-way. Errors are raised, as { err = 'NOQUEUE ...' }.
--
-- The context:
--   key        the names of the keys of the queue, by what follows its tag     now   Redis time, ms
--   keep       about how many entries of the events stream are kept
--   generation event waiting active   and the other counters that the step named: numbers
--   store base_seq                    and the other fields that the step named: texts, or false
--   changes    field -> value, of the fields that change
--   told       spans of places by event and reason or deadline: JOINED, ADMITTED, REMOVED, FREED
--   events     other events, before those; later: other events, after them, or false
--   archive    false, or what the record may still hold (record.lua); notes: what this step writes there, or false
--   noted      how many notes these are
-- Others, such as overbook, drawn and joining, are set by the module that knows them.

local int, number, counter = text.int, text.number, text.counter

-- The command that counts what is in a key, or fails where it has another type.
local COUNTS, BY_TYPE = {}, { zset = 'ZCARD', hash = 'HLEN', stream = 'XLEN', string = 'STRLEN' }
for i = 1, #defs.KEY do COUNTS[defs.KEY[i].name] = BY_TYPE[defs.KEY[i].type] end

-- Ends the call. Before the first write only.
function state.fail(kind, sentence) error({ err = kind .. ' ' .. sentence }) end

---- the context of a call

local NAMES_MAX = 1000
local names, n_names = {}, 0 -- made once for each queue: they follow from the name of the state, whatever is in it

local function make_names(key)
    if n_names == NAMES_MAX then names, n_names = {}, 0 end
    local base = sub(key, 1, -6)
    local made = { base = base, none = base .. 'none' } -- that key never exists
    for _, each in ipairs(defs.KEY) do made[each.name] = base .. each.name end
    names[key], n_names = made, n_names + 1
    return made
end

-- A table with room for all fields need not grow, which takes Lua longer than the rest.
function state.begin(keys, keep)
    local t = redis.call('TIME') -- in these words: tests put a clock of their own there
    local us = t[2] + 0
    return { key = names[keys[1]] or make_names(keys[1]), keep = keep, now = t[1] * 1000 + (us - us % 1000) / 1000,
        changes = {}, told = {}, events = {}, later = false, generation = 0, event = 0, waiting = 0, active = 0,
        waiting_before = 0, active_before = 0, store = false, base_seq = false, called = false, named = false,
        ended = false, archive = false, notes = false, noted = 0 }
end

function state.no_queue() state.fail('NOQUEUE', 'the queue does not exist') end

-- As begin, for a step that reads none of the counters. Raises NOQUEUE.
function state.find(keys)
    local c = state.begin(keys)
    if call('EXISTS', c.key.state) == 0 then state.no_queue() end
    return c
end

-- Redis time in us, for what must differ from all before: generations and versions.
function state.now_us()
    local t = redis.call('TIME')
    return t[1] * 1000000 + t[2]
end

-- The fields that a step reads: counters, which must be whole numbers, and texts. own: how many; a step may put others
-- behind them.
function state.fields(counters, texts)
    local list = { 'generation', 'event', 'waiting', 'active' }
    for i = 1, #counters do list[#list + 1] = counters[i] end
    list.counters = #list
    list[#list + 1], list[#list + 2], list[#list + 3] = 'store', 'base_seq', 'archive'
    for i = 1, #texts do list[#list + 1] = texts[i] end
    list.own = #list
    return list
end

state.CORE = state.fields({}, {}) -- no others than those that each step reads

-- Reads fields into c, for a step that writes nothing to the queue. Raises NOQUEUE; and DAMAGED for a counter that is
-- no whole number: mend writes it again.
function state.read(c, fields)
    local found, counters = call('HMGET', c.key.state, unpack(fields)), fields.counters
    if not found[1] then state.no_queue() end
    for i = 1, counters do
        local n = found[i] + 0 -- as text.counter: this loop is in every step
        c[fields[i]] = n >= 0 and n < 9007199254740992 and n % 1 == 0 and n or counter(found[i])
    end
    for i = counters + 1, #fields do c[fields[i]] = found[i] end
    c.base_seq, c.waiting_before, c.active_before = c.base_seq or '0', c.waiting, c.active
    return c
end

---- incarnations: numbers that are never used twice (docs/contributors/wire-format.md)

-- What `seq`, `event` and `fence` start at: it grows with the server's clock, faster than a queue can use numbers up.
-- Where a draw has opened, the seqs of its latecomers are ahead of that (line/draw.lua).
function state.number_base(ms) return max(0, floor((ms - defs.SEQ_EPOCH_MS) * defs.SEQ_PER_MS)) end

state.BASE_GAP = 67108864 -- 2^26: where the clock went back, at least

-- The number to go on from when the store was found with this one. Where the clock went back, the gap still grows with
-- it: an incarnation that is lost itself must not be repeated.
local function number_after(found, base)
    return base > found and base or found + state.BASE_GAP + base % 4294967296
end

-- Those of a new generation, which is later than this one. c: with now.
function state.first_numbers(c, before)
    local base = int(state.number_base(c.now))
    local base_seq = int(base + draw.seqs_ahead(c, nil)) -- of a lost generation, too
    return { generation = int(max(state.now_us(), before + 1)), incarnation = 1, seq = base_seq, base_seq = base_seq,
        event = base, fence = base }
end

-- The replication id of the server names the history of its data: a start and the promotion of a replica make another
-- one. It is looked up where the state names another id, and every 100 ms, because that costs as much as seven other
-- commands. The memory of it cannot hide another history: it is gone after a start, and where the server took its data,
-- and so the library, from another one; to be a replica that takes less, and then a master again, takes longer.
local LOOK_MS = 100
local looked_ms, server = -1, ''

local function look_up(now)
    local info = call('INFO', 'replication')
    local _, past = find(info, 'master_replid:', 1, true)
    looked_ms, server = now, sub(info, past + 1, past + 40)
    return server
end

-- An entry of the events: a msgpack array of six, which is written without making a table of them.
local function entry_of(c, event, events)
    return '\150' .. pack(defs.EVENTS_VERSION, event, c.generation, c.waiting, c.active, events)
end

-- What to do about a queue that has lost its state, and cannot get it back from what is left (mend.lua).
state.WITHOUT = 'bring the rest of the data back, or start with an empty line: `tellerline queue delete QUEUE`, then '
    .. '`tellerline queue create QUEUE`'

-- May a key be missing because the queue was on its way to another node? Elsewhere mend.lua brings back what it can.
function state.may_move() return find(call('INFO', 'cluster'), 'cluster_enabled:1', 1, true) end

-- What the operator is told of a queue without these keys.
function state.part_without(names)
    return 'only a part of the queue is in this store, without ' .. names
        .. '. Bring the rest back, or go on without it: `tellerline queue recover QUEUE --wait 5m`'
end

-- Which keys of the queue are missing, by what its state says, as a sentence; nil: none. Keys are lost as a whole:
-- where only sizes differ, something was changed by hand, and the next step corrects them (state.check).
local function find_part(c)
    local names, due = {}, { waiting = c.waiting, active = c.active, sessions = c.active,
        events = c.waiting + c.active }
    if state.may_move() then due.config, due.ingest = 1, 1 end
    for name, size in pairs(due) do
        if size > 0 and call('EXISTS', c.key[name]) == 0 then names[#names + 1] = name end
    end
    sort(names)
    return #names > 0 and state.part_without(concat(names, ', ')) or nil
end

-- A store that has lost the end of its history still has the whole queue of an earlier time: it logs and replicates
-- each step whole. One that was promoted while the queue moved to another node of a Redis Cluster has a part of it,
-- which nobody may go on with. Returns what is missing, as a sentence, where the store is not the one of the last
-- write; else nil.
function state.find_part(c)
    if c.store == 'lost' or c.store == look_up(c.now) then return nil end -- lost: mend has written the state again
    return find_part(c)
end

-- The store was restarted, or is another server: its last entries may be missing. Moves the numbers on, and appends an
-- entry without events: every reader finds a gap and rebuilds. Raises DAMAGED for a part of a queue, unless
-- c.takes_part: then all places that are missing may come back, as those of a lost end, and c.took_part is true.
local function begin_incarnation(c)
    call('XLEN', c.key.events) -- fails before the first write if it is no stream
    local part = c.store ~= 'lost' and find_part(c)
    if part and not c.takes_part then state.fail('DAMAGED', part) end
    c.took_part = part and true
    local found = call('HMGET', c.key.state, 'seq', 'fence', 'incarnation', 'draw')
    local seq, fence, base = number(found[1]) or 0, number(found[2]) or 0, state.number_base(c.now)
    local base_seq = int(number_after(seq, base + draw.seqs_ahead(c, found[4])))
    local event, last = number_after(c.event, base), state.last_entry(c)
    local at = last and min(c.now, text.id_ms(last[1])) or c.now -- when this history ends
    local back = rewind.fields(c, part and 0 or at, seq, event)
    call('HSET', c.key.state, 'store', server, 'incarnation', int((number(found[3]) or 0) + 1), 'found_seq',
        part and 0 or int(seq), 'seq', base_seq, 'base_seq', base_seq, 'base_ms', int(c.now), 'found_event',
        part and 0 or int(c.event), 'event',
        int(event), 'fence', int(number_after(fence, base)), unpack(back))
    call('XADD', c.key.events, '*', 'd', entry_of(c, event, {}))
    if c.archive then call('HSET', c.key.state, 'standing', record.from_start(c, defs.GAP.store, at)) end
end

-- As read, for a step that writes: first begins a new incarnation if the store is not the one of the last write.
function state.open(c, fields)
    state.read(c, fields)
    local is_known = c.store == server and c.now < looked_ms + LOOK_MS and c.now >= looked_ms
    if is_known or c.store == look_up(c.now) then return c end
    begin_incarnation(c)
    return state.read(c, fields)
end

-- The field `about` of the state and of the settings. A value of more than 64 bytes (hash-max-listpack-value) makes
-- them hash tables. Else Redis reads through all fields for each one, which is 10 % of a join.
state.ABOUT = 'Numbers or settings of a queue. A text of this length makes Redis find fields by hash.'

-- Writes the state of a new queue, or of one whose state was lost, with these fields. store: nil: of this server.
function state.create(c, fields)
    call('HSET', c.key.state, 'about', state.ABOUT, 'store', fields.store or look_up(c.now), 'marks', '',
        'admit_capacity', 0, 'notice', '')
    for _, counter in ipairs(defs.COUNTER) do call('HSET', c.key.state, counter, 0) end
    state.repair(c, fields)
end

-- Writes fields that were lost or damaged; one that is false goes.
function state.repair(c, fields)
    for field, value in pairs(fields) do
        if value then call('HSET', c.key.state, field, value) else call('HDEL', c.key.state, field) end
    end
end

-- Counts the fence: what the holder of a lease before did not finish is out of date.
function state.next_fence(c) return call('HINCRBY', c.key.state, 'fence', 1) end

---- before the first write

-- Looks at the keys that the step is about to write: fails where one has another type. Corrects the sizes of the line.
-- Where the step may end visitors: c.ended, how many ends there are.
function state.check(c, keys)
    local key, waiting, active = c.key, c.waiting, c.active
    for i = 1, #keys do
        local name = keys[i]
        local n = call(COUNTS[name], key[name])
        if name == 'waiting' then
            waiting = n
        elseif name == 'active' then
            active = n
        elseif name == 'ended' then
            c.ended = n
        end
    end
    -- In a Redis Cluster whose slot of the queue moves, what looks at a key that is not here fails: so, here.
    if c.ended then call('EXISTS', key.none) end
    if waiting == c.waiting and active == c.active then return end
    -- The sets are right and the state is wrong, because a set was lost or changed by hand: missing visitors have
    -- ended, additional ones have joined. Readers find that their line has other sizes, and rebuild. Overbooking
    -- begins to count again.
    local missing = c.waiting + c.active - waiting - active
    local total = missing < 0 and 'joined' or 'expired'
    local n = counter(call('HGET', c.key.state, total))
    c.waiting, c.active, c.is_corrected, c.overbook = waiting, active, true, nil
    state.set(c, total, n + max(missing, -missing))
    state.set(c, 'called', '')
    if c.archive then state.set(c, 'standing', record.from_start(c, defs.GAP.corrected)) end
end

---- changes

function state.set(c, field, value) c[field], c.changes[field] = value, value end

-- Counts n more in a total that was read as a counter.
function state.count(c, total, n) state.set(c, total, c[total] + n) end

-- Adds an event, before those that are told by places.
function state.event(c, ...) c.events[#c.events + 1] = { ... } end

-- The same after them: of places that may be told in this step, too.
function state.event_later(c, ...)
    c.later = c.later or {}
    c.later[#c.later + 1] = { ... }
end

local OF_EVENT = 8796093022208 -- 2^43: events by their kinds, then by reasons or deadlines

-- Tells readers of places, as spans: first, n, first, n, ... The table becomes a part of the context. detail: the
-- reason; of ADMITTED the deadline; of JOINED 0.
function state.tell(c, event, detail, spans)
    local key = event * OF_EVENT + detail
    local told, n = c.told[key], #spans
    if not told then
        c.told[key] = n > 0 and spans or nil
        return
    end
    local last = #told
    for i = 1, n do told[last + i] = spans[i] end
end

function state.is_told(c, event, detail) return c.told[event * OF_EVENT + detail] ~= nil end

-- The events told by places, in the order of their kinds, then of reasons or deadlines; and the later ones.
local function add_told(c)
    local told, events, keys, n = c.told, c.events, {}, 0
    for key in pairs(told) do n, keys[n + 1] = n + 1, key end
    if n > 1 then sort(keys) end
    for i = 1, n do
        local detail = keys[i] % OF_EVENT
        events[#events + 1] = { (keys[i] - detail) / OF_EVENT, text.runs(told[keys[i]]), detail > 0 and detail or nil }
    end
    for i = 1, c.later and #c.later or 0 do events[#events + 1] = c.later[i] end
end

-- Ends a step: writes what has changed, and appends one entry to the events, number c.event. Does nothing where there
-- is nothing to tell.
function state.commit(c)
    add_told(c)
    local entry = c.notes and record.take(c)
    local events, list, n = c.events, { 'event' }, 2
    if c.waiting ~= c.waiting_before then list[3], list[4], n = 'waiting', int(c.waiting), 4 end
    if c.active ~= c.active_before then list[n + 1], list[n + 2], n = 'active', int(c.active), n + 2 end
    for field, value in pairs(c.changes) do
        list[n + 1], list[n + 2], n = field, type(value) == 'number' and int(value) or value, n + 2
    end
    if n == 2 and #events == 0 and not entry then return end
    c.event = c.event + 1
    list[2] = int(c.event)
    call('HSET', c.key.state, unpack(list))
    call('XADD', c.key.events, 'MAXLEN', '~', c.keep, '*', 'd', entry_of(c, c.event, events))
    if entry then record.append(c, entry) end
end

-- The same, and tells all readers to read the settings and the state again.
function state.commit_config(c)
    state.event(c, defs.EVENT.config)
    settings.note_rules(c)
    state.commit(c)
end

---- what is in the events

-- The last entry, id and fields; nil: there is none.
function state.last_entry(c) return call('XREVRANGE', c.key.events, '+', '-', 'COUNT', 1)[1] end

-- An entry by its fields: { version, number, generation, waiting, active, events }. nil when it cannot be read:
-- something else wrote it.
function state.entry(fields)
    local is_read, found = pcall(unpack_message, fields[2] or '')
    return is_read and type(found) == 'table' and found[1] == defs.EVENTS_VERSION and type(found[2]) == 'number'
        and type(found[5]) == 'number' and type(found[6]) == 'table' and found or nil
end

-- The highest seq with which a visitor joined or was called by the last `most` entries, of this generation or nil: any;
-- 0: nobody.
function state.highest_seq(c, most, generation)
    local highest = 0
    for _, row in ipairs(call('XREVRANGE', c.key.events, '+', '-', 'COUNT', most)) do
        local found = state.entry(row[2])
        local events = found and (not generation or found[3] == generation) and found[6] or {}
        for _, event in ipairs(events) do
            local is_new = event[1] == defs.EVENT.joined or event[1] == defs.EVENT.admitted
            local list, past = is_new and type(event[2]) == 'table' and event[2] or {}, 0
            for i = 1, #list, 2 do
                past = past + list[i] + (list[i + 1] or 1)
                highest = max(highest, (past - 1) % defs.LANE)
            end
        end
    end
    return highest
end
