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
local ENTRIES_MAX = 100
local BATCH_MEMORY_MS = 3600000

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

-- JOINs in a row become one command { spans, n, invite or nil }, a span being { lane, from, to } with the visitors
-- ARGV[from..to]; others are { a, b }. Each has a kind, and as index that of its first JOIN, or its own, in the batch.
local entries, entry, at = {}, nil, FIRST

local function parse_entry(batch)
    if not batch or #entries == ENTRIES_MAX then
        return false
    end
    entry = { id = ARGV[at + 1], worker = ARGV[at + 2], batch = batch, commands = {}, size = 0 }
    entries[#entries + 1] = entry
    at = at + 4
    return true
end

local function parse_join(invite)
    local lane, n = whole(ARGV[at + 1]), whole(ARGV[at + 2])
    if not lane or lane >= LANES_MAX or not n or n < 1 or n > JOINS_MAX or at + 2 + n > #ARGV
        or (invite and n > 1) then
        return false
    end
    local commands = entry.commands
    local span, last = { lane = lane, from = at + 3, to = at + 2 + n }, commands[#commands]
    if not invite and last and last.spans and not last.invite and last.n + n <= JOINS_MAX then
        last.spans[#last.spans + 1] = span
        last.n = last.n + n
    else
        commands[#commands + 1] = { kind = JOIN, spans = { span }, invite = invite, index = entry.size, n = n }
    end
    entry.size, at = entry.size + n, at + 3 + n
    return true
end

local function parse_command()
    local kind, a, b = whole(ARGV[at]), ARGV[at + 1], whole(ARGV[at + 2])
    if kind == ENTRY then
        return parse_entry(whole(ARGV[at + 3]))
    elseif not entry then
        return false
    elseif kind == JOIN then
        return parse_join()
    end
    if not kind or kind > SPEND or not b or (kind == SEEN and not whole(a)) then
        return false
    end
    at = at + 3
    if kind == SPEND then
        return whole(ARGV[at]) == JOIN and parse_join({ a, b })
    end
    entry.commands[#entry.commands + 1] = { kind = kind, a = a, b = b, index = entry.size }
    entry.size = entry.size + 1
    return true
end

while at <= #ARGV do
    if not parse_command() then
        return redis.error_reply('INVALID argument ' .. at)
    end
end
if not entry then
    return redis.error_reply('INVALID nothing to apply')
end

-- Everything pending up to the last of these entries must be one of them.
local results, due, ids = {}, {}, {}
for i = 1, #entries do
    results[i] = NOT_PENDING
end
local next_entry = 1
for _, pending in ipairs(redis.call('XPENDING', K_INGEST, 'dispatchers', '-', entry.id, #entries + 1)) do
    while entries[next_entry] and entries[next_entry].id ~= pending[1] do
        next_entry = next_entry + 1
    end
    if not entries[next_entry] then
        return redis.error_reply('ORDER an older entry is pending')
    end
    due[#due + 1], ids[#ids + 1] = next_entry, pending[1]
    next_entry = next_entry + 1
end
if #due == 0 then
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

local function except(index, outcome, place, deadline)
    exceptions[#exceptions + 1] = { index, outcome, place, deadline }
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

-- Appends to `scored`, of which n are filled, a place for each visitor of the span, from `place` on. Returns the new n.
local function number_span(scored, n, place, span)
    local from = span.from
    while from <= span.to do
        local digits = place % 100
        local head = int((place - digits) / 100)
        local last = math.min(span.to, from + 99 - digits)
        place = place + last - from + 1
        for i = from, last do
            digits = digits + 1
            scored[n + 1], scored[n + 2] = head .. DIGITS[digits], ARGV[i]
            n = n + 2
        end
        from = last + 1
    end
    return n
end

local function visitors_of(command)
    local visitors, n = {}, 0
    for _, span in ipairs(command.spans) do
        for i = span.from, span.to do
            n = n + 1
            visitors[n] = ARGV[i]
        end
    end
    return visitors
end

-- What ZMSCORE says of these visitors in the active set; nil if none of them is in it.
local function deadlines_of(visitors)
    local deadlines = redis.call('ZMSCORE', K_ACTIVE, unpack(visitors))
    for i = 1, #visitors do
        if deadlines[i] then
            return deadlines
        end
    end
    return nil
end

-- `scored` but for those who are active.
local function but_for(deadlines, scored)
    local rest, n = {}, 0
    for i = 1, #scored / 2 do
        if not deadlines[i] then
            rest[n + 1], rest[n + 2] = scored[2 * i - 1], scored[2 * i]
            n = n + 2
        end
    end
    return rest
end

-- Tells these joins apart: not all of the visitors were new.
local function tell_apart(command, scored, deadlines)
    local visitors = visitors_of(command)
    local stands = redis.call('ZMSCORE', K_WAITING, unpack(visitors))
    for i = 1, command.n do
        local place = tonumber(scored[2 * i - 1])
        if deadlines[i] then
            except(command.index + i - 1, ACTIVE, session(visitors[i]), tonumber(deadlines[i]))
        elseif tonumber(stands[i]) ~= place then
            except(command.index + i - 1, WAITING, tonumber(stands[i]), 0)
        else
            came[#came + 1] = { place, 1 }
        end
    end
end

-- A handful of calls, however many join. Every JOIN uses up one seq, so that the k-th JOIN of a batch has the k-th seq
-- of it; one that holds a place already leaves its seq unused.
local function join(command)
    local scored, n, spans = {}, 0, {}
    for i, span in ipairs(command.spans) do
        local first, count = span.lane * LANE + seq + 1, span.to - span.from + 1
        n = number_span(scored, n, first, span)
        spans[i] = { first, count }
        seq = seq + count
    end
    local deadlines = active > 0 and deadlines_of(visitors_of(command)) or nil
    local new = deadlines and but_for(deadlines, scored) or scored
    local added = #new > 0 and redis.call('ZADD', K_WAITING, 'NX', unpack(new)) or 0
    if added < command.n then
        tell_apart(command, scored, deadlines or {})
    else
        for _, span in ipairs(spans) do
            came[#came + 1] = span
        end
    end
    waiting, joined = waiting + added, joined + added
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

-- Spends the invite { id, until_ms }. False if somebody did before; then the JOIN's seq stays unused. Who did and still
-- stands here may come with it again: the answer to the first time was lost on the way.
local function spend(index, spent_by, by_visitor)
    local key = string.gsub(K_STATE, 'state$', 'spent:') .. spent_by[1]
    if redis.call('SET', key, by_visitor, 'NX', 'PX', math.max(1000, spent_by[2] - now)) then
        return true
    end
    if redis.call('GET', key) == by_visitor and stands(by_visitor) then
        return true
    end
    seq = seq + 1
    except(index, SPENT, 0, 0)
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
        except(index, GONE, place, 0)
    end
end

local function waits(visitor, place)
    return tonumber(redis.call('ZSCORE', K_WAITING, visitor) or nil) == place
end

local function complete(index, visitor, place)
    if end_session(visitor, place, REASON.completed) then
        completed = completed + 1
    else
        except(index, waits(visitor, place) and WAITING or GONE, place, 0)
    end
end

-- The first RENEW after admission claims the session: claim_ttl gives way to session_ttl. Later ones move the deadline
-- only when sessions slide, and never past session_max.
local function renew(index, visitor, place)
    local held, admitted, claimed = session(visitor)
    if held ~= place then
        except(index, waits(visitor, place) and WAITING or GONE, place, 0)
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

local function apply(command)
    local kind, index, a, b = command.kind, command.index, command.a, command.b
    if kind == JOIN then
        if not command.invite or spend(index, command.invite, ARGV[command.spans[1].from]) then
            join(command)
        end
    elseif kind == LEAVE then
        leave(index, a, b)
    elseif kind == COMPLETE then
        complete(index, a, b)
    elseif kind == RENEW then
        renew(index, a, b)
    else
        seen(tonumber(a), b)
    end
end

for _, i in ipairs(due) do
    entry = entries[i]
    if is_repeated(entry.worker, entry.batch) then
        results[i] = REPEATED
    else
        exceptions = {}
        applied[#applied + 1] = { EVENT.applied, entry.worker, entry.batch, seq + 1, exceptions }
        for _, command in ipairs(entry.commands) do
            apply(command)
        end
        results[i] = APPLIED
    end
end
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
