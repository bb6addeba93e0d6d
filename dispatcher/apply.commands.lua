-- LEAVE, COMPLETE, RENEW and SEEN.

local removed = {} -- places that left the line
local freed = { [REASON.completed] = {}, [REASON.left] = {} } -- places whose session ended, by reason
local renewed = {} -- events
local end_scores = {} -- by reason; the same in the whole call

local leave, complete, renew

-- Makes these three functions: calls with joins alone do not need them.
local function load_commands()

-- Is this the place, or the one that the operator has moved the visitor from? The seq stays the same.
local function is_same(held, place)
    return held == place or held and held % LANE == place % LANE
end

-- The place at which this visitor waits, if that is the one that the command names, or the one that it was drawn to;
-- else nil or false.
local function is_waiting(visitor, place)
    local held = tonumber(redis.call('ZSCORE', K_WAITING, visitor))
    local is_drawn = held and DRAW.present and DRAW.is_drawn_to(DRAW.present, place, held)
    return (is_drawn or is_same(held, place)) and held
end

local function store_end(visitor, reason)
    end_scores[reason] = end_scores[reason] or end_score(now, reason)
    redis.call('ZADD', K_ENDED, end_scores[reason], visitor)
end

-- Ends the session of this visitor at this place. False if there is none.
local function end_session(visitor, place, reason)
    local held = read_session(visitor)
    if not is_same(held, place) then
        return false
    end
    if claims.called then
        claims.note_end(visitor, redis.call('HGET', K_SESSIONS, visitor), reason)
    end
    redis.call('ZREM', K_ACTIVE, visitor)
    redis.call('HDEL', K_SESSIONS, visitor)
    store_end(visitor, reason)
    state.active = state.active - 1
    local places = freed[reason]
    places[#places + 1] = held
    return true
end

leave = function(index, visitor, place)
    local held = is_waiting(visitor, place)
    if held then
        redis.call('ZREM', K_WAITING, visitor)
        store_end(visitor, REASON.left)
        state.waiting, totals.left = state.waiting - 1, totals.left + 1
        removed[#removed + 1] = held
    elseif end_session(visitor, place, REASON.left) then
        totals.left = totals.left + 1
    else
        add_exception(exceptions, index, GONE, place, 0)
    end
end

complete = function(index, visitor, place)
    if end_session(visitor, place, REASON.completed) then
        totals.completed = totals.completed + 1
    else
        add_exception(exceptions, index, is_waiting(visitor, place) and WAITING or GONE, place, 0)
    end
end

-- The first RENEW after admission claims the session: session_ttl replaces claim_ttl. Later ones move the deadline only
-- when sessions slide, and never past session_max.
renew = function(index, visitor, place)
    local held, admitted_ms, claimed = read_session(visitor)
    if not is_same(held, place) then
        add_exception(exceptions, index, is_waiting(visitor, place) and WAITING or GONE, place, 0)
        return
    end
    if claims.called and not claimed and not claims.may_claim(visitor, place, admitted_ms) then
        add_exception(exceptions, index, WAITING, place, 0)
        return
    end
    local deadline = admitted_ms + settings.session_ttl
    if settings.sliding then
        deadline = math.min(now + settings.session_ttl, admitted_ms + settings.session_max)
    elseif claimed then
        return
    end
    redis.call('ZADD', K_ACTIVE, 'XX', int(deadline), visitor)
    if not claimed then
        redis.call('HSET', K_SESSIONS, visitor, int(held) .. session_tail(admitted_ms, true))
    end
    renewed[#renewed + 1] = { EVENT.renewed, held, deadline }
end

end

local mark_seen, seen

-- Makes these two functions: only calls with SEEN, and those that restore places, need them.
local function load_seen()
    local seen_bucket -- the bucket of now, once it is marked as observed
    local expiring = {} -- bitmaps of this call that expire by themselves

    local function set_expiry(bitmap)
        if not expiring[bitmap] then
            redis.call('PEXPIRE', bitmap, 8 * bucket_length(settings.waiting_ttl))
            expiring[bitmap] = true
        end
    end

    -- Removes a key of another type: the batch is acknowledged, so nothing may fail any more, and presence is recorded
    -- again all the time.
    local function check_bitmap(bitmap)
        local is = not expiring[bitmap] and redis.call('TYPE', bitmap).ok or 'none'
        if is ~= 'string' and is ~= 'none' then
            redis.call('UNLINK', bitmap)
        end
    end

    local function open_bucket()
        seen_bucket = bucket_at(now, settings.waiting_ttl)
        local observed = seen_key(seen_bucket, 0)
        check_bitmap(observed)
        redis.call('SETBIT', observed, 0, 0)
        set_expiry(observed)
    end

    -- Sets the bits [from, past), whole bytes at once.
    local function set_bits(bitmap, from, past)
        check_bitmap(bitmap)
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
        set_expiry(bitmap)
    end

    -- Marks the seqs [first, first + count). One that was not given out yet is skipped, and no more are marked than
    -- ever joined, which bounds the work.
    mark_seen = function(first, count)
        if not seen_bucket then
            open_bucket()
        end
        local from, past = first, math.min(first + math.min(count, tonumber(totals.joined)), state.seq + 1)
        while from < past do
            local chunk, chunk_first, chunk_past = chunk_of(from)
            local to = math.min(past, chunk_past)
            set_bits(seen_key(seen_bucket, chunk), from - chunk_first, to - chunk_first)
            from = to
        end
    end

    -- SEEN, or the farewell of a worker. Who was seen at places of another generation says nothing about this one.
    seen = function(first, count, is_foreign)
        local is_farewell = first == FAREWELL_SEQ and count == FAREWELL_COUNT
        if is_foreign and not is_farewell then
            return
        elseif not is_farewell then
            mark_seen(first, count)
        end
        note_report(sender, is_farewell, now, settings.waiting_ttl)
    end
end
