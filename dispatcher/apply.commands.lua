-- LEAVE, COMPLETE, RENEW and SEEN.

local removed = {} -- places that left the line
local freed = { [REASON.completed] = {}, [REASON.left] = {} } -- places whose session ended, by reason
local renewed = {} -- events

local function is_waiting(visitor, place)
    return tonumber(redis.call('ZSCORE', K_WAITING, visitor)) == place
end

local end_scores = {} -- by reason; the same in the whole call

local function store_end(visitor, reason)
    end_scores[reason] = end_scores[reason] or end_score(now, reason)
    redis.call('ZADD', K_ENDED, end_scores[reason], visitor)
end

-- Ends the session of this visitor at this place. False if there is none.
local function end_session(visitor, place, reason)
    if read_session(visitor) ~= place then
        return false
    end
    redis.call('ZREM', K_ACTIVE, visitor)
    redis.call('HDEL', K_SESSIONS, visitor)
    store_end(visitor, reason)
    state.active = state.active - 1
    local places = freed[reason]
    places[#places + 1] = place
    return true
end

local function leave(index, visitor, place)
    if is_waiting(visitor, place) then
        redis.call('ZREM', K_WAITING, visitor)
        store_end(visitor, REASON.left)
        state.waiting, totals.left = state.waiting - 1, totals.left + 1
        removed[#removed + 1] = place
    elseif end_session(visitor, place, REASON.left) then
        totals.left = totals.left + 1
    else
        add_exception(exceptions, index, GONE, place, 0)
    end
end

local function complete(index, visitor, place)
    if end_session(visitor, place, REASON.completed) then
        totals.completed = totals.completed + 1
    else
        add_exception(exceptions, index, is_waiting(visitor, place) and WAITING or GONE, place, 0)
    end
end

-- The first RENEW after admission claims the session: session_ttl replaces claim_ttl. Later ones move the deadline only
-- when sessions slide, and never past session_max.
local function renew(index, visitor, place)
    local held, admitted_ms, claimed = read_session(visitor)
    if held ~= place then
        add_exception(exceptions, index, is_waiting(visitor, place) and WAITING or GONE, place, 0)
        return
    end
    local deadline = admitted_ms + settings.session_ttl
    if settings.sliding then
        deadline = math.min(now + settings.session_ttl, admitted_ms + settings.session_max)
    elseif claimed then
        return
    end
    redis.call('ZADD', K_ACTIVE, 'XX', deadline, visitor)
    if not claimed then
        redis.call('HSET', K_SESSIONS, visitor, int(place) .. session_tail(admitted_ms, true))
    end
    renewed[#renewed + 1] = { EVENT.renewed, place, deadline }
end

local bitmap -- key of the presence bitmap of now, once it exists

local function open_bitmap()
    local waiting_ttl = settings.waiting_ttl
    bitmap = seen_key(bucket_at(now, waiting_ttl))
    redis.call('SETBIT', bitmap, 0, 0) -- the key's existence says that presence was recorded
    redis.call('PEXPIRE', bitmap, 8 * bucket_length(waiting_ttl))
end

-- Sets the bits [first, first + count), whole bytes at once. A seq that was not given out yet is skipped.
local function mark_seen(first, count)
    if not bitmap then
        open_bitmap()
    end
    local from, past = first, math.min(first + count, state.seq + 1)
    while from < past and from % 8 ~= 0 do
        redis.call('SETBIT', bitmap, from, 1)
        from = from + 1
    end
    local bytes = math.floor((past - from) / 8)
    if bytes > 0 then
        redis.call('SETRANGE', bitmap, from / 8, string.rep('\255', bytes))
        from = from + bytes * 8
    end
    while from < past do
        redis.call('SETBIT', bitmap, from, 1)
        from = from + 1
    end
end

