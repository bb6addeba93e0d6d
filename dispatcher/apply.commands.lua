-- SPDX-License-Identifier: Apache-2.0
-- LEAVE, COMPLETE, RENEW, CLAIM, EXTEND and SEEN.

local removed = {} -- places that left the line

local leave, complete, renew, extend
local is_same, is_waiting, renewed -- for apply.handover.lua, too
local session_events = do_nothing -- without these commands

-- Makes these five functions: calls with joins alone do not need them.
local load_commands = sessions and function()

local freed = { [REASON.completed] = {}, [REASON.left] = {} } -- places whose session ended, by reason
renewed = {} -- events
local end_scores = {} -- by reason; the same in the whole call

-- Is this the place, or the one that the operator has moved the visitor from? The seq stays the same.
is_same = function(held, place)
    return held == place or held and held % LANE == place % LANE
end

-- The place at which this visitor waits, if that is the one that the command names, or the one that it was drawn to;
-- else nil or false.
is_waiting = function(visitor, place)
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
        if not is_same(held, place) then -- drawn: the lines of workers have the place of before until the draw is done
            removed[#removed + 1] = place
        end
    elseif end_session(visitor, place, REASON.left) then
        totals.left = totals.left + 1
    else
        add_exception(exceptions, index, OUTCOME.gone, place, 0)
    end
end

complete = function(index, visitor, place)
    if end_session(visitor, place, REASON.completed) then
        totals.completed = totals.completed + 1
    else
        add_exception(exceptions, index, is_waiting(visitor, place) and OUTCOME.waiting or OUTCOME.gone, place, 0)
    end
end

-- The first RENEW or CLAIM after admission claims the session: session_ttl replaces claim_ttl. Later a RENEW moves the
-- deadline when sessions slide, and never past session_max; a CLAIM does nothing.
renew = function(index, visitor, place, only_claims)
    local held, admitted_ms, claimed = read_session(visitor)
    if not is_same(held, place) then
        add_exception(exceptions, index, is_waiting(visitor, place) and OUTCOME.waiting or OUTCOME.gone, place, 0)
        return
    end
    if claims.called and not claimed and not claims.may_claim(visitor, place, admitted_ms) then
        add_exception(exceptions, index, OUTCOME.waiting, place, 0)
        return
    end
    local deadline = admitted_ms + settings.session_ttl
    if claimed and (only_claims or not settings.sliding) then
        return
    elseif settings.sliding then
        deadline = math.min(now + settings.session_ttl, admitted_ms + settings.session_max)
    end
    redis.call('ZADD', K_ACTIVE, 'XX', int(deadline), visitor)
    if not claimed then
        redis.call('HSET', K_SESSIONS, visitor, int(held) .. session_tail(int(admitted_ms), true))
    end
    renewed[#renewed + 1] = { EVENT.renewed, held, deadline }
end

-- Gives a visitor who has not claimed the session claim_ttl once more, at most as long as the session would last. It is
-- counted from the admission, so a second EXTEND changes nothing. Who is held for a claim has a turn, and no deadline.
extend = function(index, visitor, place)
    local held, admitted_ms, claimed = read_session(visitor)
    if not is_same(held, place) then
        add_exception(exceptions, index, is_waiting(visitor, place) and OUTCOME.waiting or OUTCOME.gone, place, 0)
        return
    end
    local is_held = claims.called and redis.call('ZSCORE', held_key(), visitor)
    local claim_ttl = tonumber(redis.call('HGET', K_CONFIG, 'claim_ttl') or '') or 0
    local deadline = admitted_ms + math.min(2 * claim_ttl, settings.session_ttl)
    if not claimed and not is_held and deadline > tonumber(redis.call('ZSCORE', K_ACTIVE, visitor) or deadline) then
        redis.call('ZADD', K_ACTIVE, 'XX', int(deadline), visitor)
        renewed[#renewed + 1] = { EVENT.extended, held, deadline }
    end
end

-- After the last command: adds the events of these sessions, and makes room for the ends.
session_events = function(events)
    for reason, places in pairs(freed) do
        if #places > 0 then
            events[#events + 1] = { EVENT.freed, runs_of(places), reason }
        end
    end
    for _, event in ipairs(renewed) do
        events[#events + 1] = event
    end
    if next(end_scores) then
        forget_ended(now, 2000) -- more than can have ended in this call
    end
end

end

local mark_seen, seen

-- Makes these two functions: only calls with SEEN, and those that restore places, need them.
local load_seen = (restores or presence) and function()
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
        local is_farewell = first == SEEN_FAREWELL_SEQ and count == SEEN_FAREWELL_COUNT
        if is_foreign and not is_farewell then
            return
        elseif not is_farewell then
            mark_seen(first, count)
        end
        note_report(sender, is_farewell, now, settings.waiting_ttl)
    end
end
