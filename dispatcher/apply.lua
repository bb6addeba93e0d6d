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
local WAITING, ACTIVE, GONE, SPENT = 1, 2, 3, 4
local APPLIED, REPEATED, NOT_PENDING = 1, 2, 0
local FIRST = 3
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

if not parse_steps(FIRST) then
    return redis.error_reply('INVALID argument ' .. at)
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

-- The joins gathered for one ZADD, of one entry or several: places and visitors in turn; how many; and which, as spans
-- { first place, from, to, index of the first in its entry, exceptions of the entry }, the visitors being
-- ARGV[from..to].
local scored, n_gathered, spans = {}, 0, {}

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
    append_scored(scored, 2 * n_gathered, first, from, to)
    n_gathered, seq = n_gathered + n, seq + n
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

local function waits(visitor, place)
    return tonumber(redis.call('ZSCORE', K_WAITING, visitor) or nil) == place
end

local function leave(index, visitor, place)
    if waits(visitor, place) then
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

-- Does a step of an entry, whose command it is being `index`. Returns the number of the next step, and the index of its
-- command.
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
