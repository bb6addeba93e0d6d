-- apply: ingest batches change the line, exactly once and in stream order.
--
-- ARGV  1 fence   2 events to keep
--       3... entries of the stream, oldest first, each with its commands
--         0 ENTRY id, worker, batch number: what follows is this entry's
--         1 JOIN  lane, n, visitor... : n commands of the batch, one for each visitor
--         2 LEAVE visitor, place   3 COMPLETE visitor, place   4 RENEW visitor, place   5 SEEN first seq, count
--         6 SPEND invite, until_ms: the JOIN right behind it, of one visitor, spends this invite; no command itself
-- Returns for each entry: 1 applied, 2 the batch had been applied before (its sender repeated it), 0 no longer pending.
-- Errors  STALE    the fence is out of date: another dispatcher holds the lease
--         ORDER    an older entry, or one between these, is still pending: apply that first
--         NOQUEUE  the queue does not exist
--         INVALID  a command makes no sense
--         After an error nothing was changed.
--
-- Holds: XACK and the changes are one step; entries are applied in the order of the stream; a visitor is in at most one
-- of waiting and active; state.waiting, state.active are the sizes of the sets;
-- joined = waiting + active + completed + expired + left. Work is bounded by the commands given.
local ENTRY, JOIN, LEAVE, COMPLETE, RENEW, SEEN, SPEND = 0, 1, 2, 3, 4, 5, 6
local WAITING, ACTIVE, GONE, SPENT = 1, 2, 3, 4
local APPLIED, REPEATED, NOT_PENDING = 1, 2, 0
local FIRST = 3
local LANES_MAX = 16
local JOINS_MAX = 1000  -- in one ZADD, and so on the stack of unpack
local ENTRIES_MAX = 100 -- TL_APPLY_CALL_ENTRIES_MAX
local BATCH_MEMORY_MS = 3600000

local ARGV, n_args = ARGV, #ARGV -- a local one is found faster
local fence, keep = ARGV[1], ARGV[2]

---- checks before the first write

local s = redis.call('HMGET', K_STATE, 'generation', 'fence', 'seq', 'event', 'waiting', 'active', 'joined',
    'completed', 'left', 'bucket', 'marks')
local generation = tonumber(s[1])
if not generation then
    return redis.error_reply('NOQUEUE the queue does not exist')
end
if s[2] ~= fence then
    return redis.error_reply('STALE another dispatcher holds the lease')
end

-- The whole number >= 0 in a text, nil for anything else.
local function whole(text)
    local n = tonumber(text)
    return n and n >= 0 and n % 1 == 0 and n or nil
end

-- The arguments as steps of four numbers each: { kind, a, b, at }, `at` being where in ARGV the texts of the step are.
-- One flat list: a table for each command, of which a call may have a thousand, costs more than the command.
--   ENTRY batch, 0, id and worker   JOIN lane, n, visitors   SPEND until_ms, 0, invite   SEEN first seq, count, -
--   others place, 0, visitor
local steps, n_steps = {}, 0
local entries, n_entries = {}, 0 -- ids of the entries
local at = FIRST

local function add_step(kind, a, b, texts)
    local n = n_steps * 4
    steps[n + 1], steps[n + 2], steps[n + 3], steps[n + 4] = kind, a, b, texts
    n_steps = n_steps + 1
    return true
end

local function parse_entry()
    local batch = whole(ARGV[at + 3])
    if not batch or n_entries == ENTRIES_MAX then
        return false
    end
    n_entries = n_entries + 1
    entries[n_entries] = ARGV[at + 1]
    add_step(ENTRY, batch, 0, at + 1)
    at = at + 4
    return true
end

local function parse_join(most)
    local lane, n, first = whole(ARGV[at + 1]), whole(ARGV[at + 2]), at + 3
    if not lane or lane >= LANES_MAX or not n or n < 1 or n > most or first + n - 1 > n_args then
        return false
    end
    at = first + n
    return add_step(JOIN, lane, n, first)
end

local function parse_step()
    local kind = whole(ARGV[at])
    if kind == ENTRY then
        return parse_entry()
    elseif n_entries == 0 then
        return false
    elseif kind == JOIN then
        return parse_join(JOINS_MAX)
    end
    local texts, b = at + 1, whole(ARGV[at + 2])
    if not kind or kind > SPEND or not b then
        return false
    end
    at = at + 3
    if kind == SPEND then
        return add_step(SPEND, b, 0, texts) and whole(ARGV[at]) == JOIN and parse_join(1)
    elseif kind == SEEN then
        local first = whole(ARGV[texts])
        return first and add_step(SEEN, first, b, texts)
    end
    return add_step(kind, b, 0, texts)
end

while at <= n_args do
    if not parse_step() then
        return redis.error_reply('INVALID argument ' .. at)
    end
end
if n_entries == 0 then
    return redis.error_reply('INVALID nothing to apply')
end

-- Everything pending up to the last of these entries must be one of them.
local results, ids = {}, {}
for i = 1, n_entries do
    results[i] = NOT_PENDING
end
local next_entry = 1
for _, pending in ipairs(redis.call('XPENDING', K_INGEST, 'dispatchers', '-', entries[n_entries], n_entries + 1)) do
    local id = pending[1]
    while entries[next_entry] and entries[next_entry] ~= id do
        next_entry = next_entry + 1
    end
    if not entries[next_entry] then
        return redis.error_reply('ORDER an older entry is pending')
    end
    results[next_entry], ids[#ids + 1] = APPLIED, id
    next_entry = next_entry + 1
end
if #ids == 0 then
    return results
end
local c = redis.call('HMGET', K_CONFIG, 'session_ttl', 'session_sliding', 'session_max', 'waiting_ttl')
local session_ttl, sliding, session_max = tonumber(c[1]), c[2] == 'true', tonumber(c[3])
local waiting_ttl = tonumber(c[4])
if not session_ttl or not session_max or not waiting_ttl then
    return redis.error_reply('NOQUEUE the queue has no settings')
end

---- from here on the entries are ours

redis.call('XACK', K_INGEST, 'dispatchers', unpack(ids))

local now = now_ms()

-- The last batch of each worker. known: as stored; latest: with those of this call.
local known, latest = {}, {}

local function is_repeated(worker, batch)
    if not latest[worker] then
        local text = redis.call('HGET', K_BATCHES, worker)
        known[worker] = text and tonumber(string.match(text, '^%d+'))
    end
    local last = latest[worker] or known[worker]
    if last and last >= batch then
        return true
    end
    latest[worker] = batch
    return false
end

-- Forgets workers that have been silent for an hour.
local function forget_silent_workers()
    local all = redis.call('HGETALL', K_BATCHES)
    for i = 1, #all, 2 do
        if tonumber(string.match(all[i + 1], '%d+$')) < now - BATCH_MEMORY_MS then
            redis.call('HDEL', K_BATCHES, all[i])
        end
    end
end

local function remember_batches()
    local fields, any_new = {}, false
    for worker, batch in pairs(latest) do
        fields[#fields + 1] = worker
        fields[#fields + 1] = int(batch) .. ':' .. int(now)
        any_new = any_new or not known[worker]
    end
    if any_new and redis.call('HLEN', K_BATCHES) >= 100 then
        forget_silent_workers()
    end
    redis.call('HSET', K_BATCHES, unpack(fields))
end

local seq, waiting, active = tonumber(s[3]), tonumber(s[5]), tonumber(s[6])
local joined, completed, left = tonumber(s[7]), tonumber(s[8]), tonumber(s[9])
local last_seq = seq                                                 -- before this call
local applied, exceptions = {}, nil                                  -- exceptions: of the entry at work
local renewed = {}
local came = {}                                                      -- places that joined, as { first, count }
local removed = {}                                                   -- places that left the waiting line
local freed = { [REASON.completed] = {}, [REASON.left] = {} }        -- places that ended a session, by reason
local bucket = math.floor(now / bucket_length(waiting_ttl))

local function except(list, index, outcome, place, deadline)
    list[#list + 1] = { index, outcome, place, deadline }
end

-- A session is kept as place:admitted_ms:claimed(0|1).
local function session(visitor)
    local text = redis.call('HGET', K_SESSIONS, visitor)
    if not text then
        return nil
    end
    local place, admitted, claimed = string.match(text, '^(%d+):(%d+):(%d)$')
    return tonumber(place), tonumber(admitted), claimed == '1'
end

-- Redis takes text as it is, but formats a number slowly. Of numbers in a row only the last two digits differ.
local DIGITS = {
    '00', '01', '02', '03', '04', '05', '06', '07', '08', '09',
    '10', '11', '12', '13', '14', '15', '16', '17', '18', '19',
    '20', '21', '22', '23', '24', '25', '26', '27', '28', '29',
    '30', '31', '32', '33', '34', '35', '36', '37', '38', '39',
    '40', '41', '42', '43', '44', '45', '46', '47', '48', '49',
    '50', '51', '52', '53', '54', '55', '56', '57', '58', '59',
    '60', '61', '62', '63', '64', '65', '66', '67', '68', '69',
    '70', '71', '72', '73', '74', '75', '76', '77', '78', '79',
    '80', '81', '82', '83', '84', '85', '86', '87', '88', '89',
    '90', '91', '92', '93', '94', '95', '96', '97', '98', '99',
}

-- The joins gathered for one ZADD, of one entry or several: places and visitors in turn; how many; and which, as spans
-- { first place, from, to, index of the first in its entry, exceptions of the entry }, the visitors being
-- ARGV[from..to].
local scored, n_gathered, spans = {}, 0, {}

-- Gathers the visitors ARGV[from..to], who get the places from `place` on.
local function number_visitors(place, from, to)
    local argv, digits_of, list, n = ARGV, DIGITS, scored, 2 * n_gathered
    n_gathered = n_gathered + to - from + 1
    while from <= to do
        local digits = place % 100
        local head = int((place - digits) / 100)
        local last = math.min(to, from + 99 - digits)
        local shift = digits + 1 - from
        place = place + last - from + 1
        for i = from, last do
            n = n + 2
            list[n - 1] = head .. digits_of[i + shift]
            list[n] = argv[i]
        end
        from = last + 1
    end
end

-- Those gathered who are active, as visitor -> deadline; nil if nobody is.
local function find_active()
    local found = nil
    for _, span in ipairs(spans) do
        local from, to = span[2], span[3]
        local deadlines = redis.call('ZMSCORE', K_ACTIVE, unpack(ARGV, from, to))
        for i = 1, to - from + 1 do
            if deadlines[i] then
                found = found or {}
                found[ARGV[from + i - 1]] = deadlines[i]
            end
        end
    end
    return found
end

-- Drops from what is gathered those who are active. Returns how many remain.
local function drop(deadlines)
    local n = 0
    for i = 1, 2 * n_gathered, 2 do
        if not deadlines[scored[i + 1]] then
            scored[n + 1], scored[n + 2] = scored[i], scored[i + 1]
            n = n + 2
        end
    end
    return n / 2
end

local function note_came(first, count)
    local last = came[#came]
    if last and last[1] + last[2] == first then
        last[2] = last[2] + count
    else
        came[#came + 1] = { first, count }
    end
end

-- Tells these joins apart: not all of the visitors were new.
local function tell_apart(span, deadlines)
    local first, from, to, index, exceptions = unpack(span)
    local stands = redis.call('ZMSCORE', K_WAITING, unpack(ARGV, from, to))
    for i = 0, to - from do
        local visitor, stand = ARGV[from + i], tonumber(stands[i + 1] or nil)
        if deadlines[visitor] then
            local place = session(visitor)
            except(exceptions, index + i, ACTIVE, place, tonumber(deadlines[visitor]))
        elseif stand ~= first + i then
            except(exceptions, index + i, WAITING, stand, 0)
        else
            note_came(first + i, 1)
        end
    end
end

-- The gathered join: a handful of calls, however many they are.
local function join_gathered()
    if n_gathered == 0 then
        return
    end
    local deadlines = active > 0 and find_active() or nil
    local n = deadlines and drop(deadlines) or n_gathered
    local added = n > 0 and redis.call('ZADD', K_WAITING, 'NX', unpack(scored, 1, 2 * n)) or 0
    for _, span in ipairs(spans) do
        if added < n_gathered then
            tell_apart(span, deadlines or {})
        else
            note_came(span[1], span[3] - span[2] + 1)
        end
    end
    waiting, joined = waiting + added, joined + added
    n_gathered, spans = 0, {}
end

-- Every JOIN uses up one seq, so that the k-th JOIN of a batch has the k-th seq of it; one that holds a place already
-- leaves its seq unused.
local function join(index, lane, n, from)
    if n_gathered + n > JOINS_MAX then
        join_gathered()
    end
    local first, to = lane * LANE + seq + 1, from + n - 1
    spans[#spans + 1] = { first, from, to, index, exceptions }
    number_visitors(first, from, to)
    seq = seq + n
end

-- runs_of for places given as spans { first, count } that do not overlap; sorts them in place.
local function runs_of_spans(spans)
    table.sort(spans, function(a, b) return a[1] < b[1] end)
    local runs, n, past = {}, 0, 0
    for i, span in ipairs(spans) do
        if i > 1 and span[1] == past then
            runs[n] = runs[n] + span[2]
        else
            runs[n + 1] = span[1] - past
            runs[n + 2] = span[2]
            n = n + 2
        end
        past = span[1] + span[2]
    end
    return runs
end

local function stands(visitor)
    return redis.call('ZSCORE', K_WAITING, visitor) or redis.call('ZSCORE', K_ACTIVE, visitor)
end

-- Spends the invite. False if somebody did before; then the JOIN's seq stays unused. Who did and still stands here may
-- come with it again: the answer to the first time was lost on the way.
local function spend(index, invite, until_ms, by_visitor)
    local key = string.gsub(K_STATE, 'state$', 'spent:') .. invite
    if redis.call('SET', key, by_visitor, 'NX', 'PX', math.max(1000, until_ms - now)) then
        return true
    end
    if redis.call('GET', key) == by_visitor and stands(by_visitor) then
        return true
    end
    seq = seq + 1
    except(exceptions, index, SPENT, 0, 0)
    return false
end

local function remember_end(visitor, reason)
    redis.call('ZADD', K_ENDED, now * 8 + reason, visitor)
end

-- Ends the active session of this visitor at this place. False if there is none.
local function end_session(visitor, place, reason)
    if session(visitor) ~= place then
        return false
    end
    redis.call('ZREM', K_ACTIVE, visitor)
    redis.call('HDEL', K_SESSIONS, visitor)
    remember_end(visitor, reason)
    active = active - 1
    local list = freed[reason]
    list[#list + 1] = place
    return true
end

local function leave(index, visitor, place)
    if tonumber(redis.call('ZSCORE', K_WAITING, visitor) or nil) == place then
        redis.call('ZREM', K_WAITING, visitor)
        remember_end(visitor, REASON.left)
        waiting, left = waiting - 1, left + 1
        removed[#removed + 1] = place
    elseif end_session(visitor, place, REASON.left) then
        left = left + 1
    else
        except(exceptions, index, GONE, place, 0)
    end
end

local function waits(visitor, place)
    return tonumber(redis.call('ZSCORE', K_WAITING, visitor) or nil) == place
end

local function complete(index, visitor, place)
    if end_session(visitor, place, REASON.completed) then
        completed = completed + 1
    else
        except(exceptions, index, waits(visitor, place) and WAITING or GONE, place, 0)
    end
end

-- The first RENEW after admission claims the session: claim_ttl gives way to session_ttl. Later ones move the deadline
-- only when sessions slide, and never past session_max.
local function renew(index, visitor, place)
    local held, admitted, claimed = session(visitor)
    if held ~= place then
        except(exceptions, index, waits(visitor, place) and WAITING or GONE, place, 0)
        return
    end
    local deadline = admitted + session_ttl
    if sliding then
        deadline = math.min(now + session_ttl, admitted + session_max)
    elseif claimed then
        return
    end
    redis.call('ZADD', K_ACTIVE, 'XX', deadline, visitor)
    if not claimed then
        redis.call('HSET', K_SESSIONS, visitor, int(place) .. ':' .. int(admitted) .. ':1')
    end
    renewed[#renewed + 1] = { EVENT.renewed, place, deadline }
end

-- Sets the bits [first, first + count) of the presence bitmap of this moment; whole bytes at once.
local seen_key
local function seen(first, count)
    if not seen_key then
        seen_key = K_SEEN .. int(bucket)
        redis.call('SETBIT', seen_key, 0, 0) -- seq 0 is nobody: the key's existence says that presence was observed
        redis.call('PEXPIRE', seen_key, 8 * bucket_length(waiting_ttl))
    end
    local from, past = first, math.min(first + count, seq + 1) -- a seq not given out yet is nobody
    while from < past and from % 8 ~= 0 do
        redis.call('SETBIT', seen_key, from, 1)
        from = from + 1
    end
    local bytes = math.floor((past - from) / 8)
    if bytes > 0 then
        redis.call('SETRANGE', seen_key, from / 8, string.rep('\255', bytes))
        from = from + bytes * 8
    end
    while from < past do
        redis.call('SETBIT', seen_key, from, 1)
        from = from + 1
    end
end

-- Does a step of an entry, whose command it is being `index`. Returns the number of the next step.
local function apply(i, index)
    local kind, a, b, texts = unpack(steps, 4 * i - 3, 4 * i)
    if kind == JOIN then
        join(index, a, b, texts)
        return i + 1, index + b
    end
    join_gathered() -- what follows sees those who came before
    if kind == SPEND then
        local lane, visitor = steps[4 * i + 2], steps[4 * i + 4]
        if spend(index, ARGV[texts], a, ARGV[visitor]) then
            join(index, lane, 1, visitor)
        end
        return i + 2, index + 1
    elseif kind == LEAVE then
        leave(index, ARGV[texts], a)
    elseif kind == COMPLETE then
        complete(index, ARGV[texts], a)
    elseif kind == RENEW then
        renew(index, ARGV[texts], a)
    else
        seen(a, b)
    end
    return i + 1, index + 1
end

-- Begins an entry. False if it is not ours, or its batch a repeated one.
local function begin(k, batch, worker)
    if results[k] == NOT_PENDING then
        return false
    elseif is_repeated(worker, batch) then
        results[k] = REPEATED
        return false
    end
    exceptions = {}
    applied[#applied + 1] = { EVENT.applied, worker, batch, seq + 1, exceptions }
    return true
end

local i, k, index, ours = 1, 0, 0, false
while i <= n_steps do
    if steps[4 * i - 3] == ENTRY then
        k, index = k + 1, 0
        ours = begin(k, steps[4 * i - 2], ARGV[steps[4 * i] + 1])
        i = i + 1
    elseif ours then
        i, index = apply(i, index)
    else
        i = i + 1
    end
end
join_gathered()
if #applied == 0 then
    return results
end
remember_batches()

---- tell everyone, in the same step

local events = applied
if #came > 0 then
    events[#events + 1] = { EVENT.joined, runs_of_spans(came) }
end
if #removed > 0 then
    events[#events + 1] = { EVENT.removed, runs_of(removed), REASON.left }
end
for reason, places in pairs(freed) do
    if #places > 0 then
        events[#events + 1] = { EVENT.freed, runs_of(places), reason }
    end
end
for _, event in ipairs(renewed) do
    events[#events + 1] = event
end

-- When a presence bucket sees its first join, notes the last seq before it: whoever has a smaller or equal seq
-- joined before that bucket began. Six notes span more than waiting_ttl.
local marks, noted = s[11] or '', tonumber(s[10])
if #came > 0 and noted ~= bucket then
    noted = bucket
    marks = int(bucket) .. ':' .. int(last_seq) .. (marks ~= '' and ',' .. marks or '')
    local _, stop = string.find(marks, '^[^,]*,[^,]*,[^,]*,[^,]*,[^,]*,[^,]*')
    marks = stop and string.sub(marks, 1, stop) or marks
end

local number = tonumber(s[4]) + 1
redis.call('HSET', K_STATE, 'seq', int(seq), 'event', int(number), 'waiting', int(waiting), 'active', int(active),
    'joined', int(joined), 'completed', int(completed), 'left', int(left), 'bucket', noted and int(noted) or '',
    'marks', marks)
emit(number, generation, waiting, active, events, keep)
return results
