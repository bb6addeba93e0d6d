-- admit: calls the next visitors while there is room.
--
-- ARGV  1 most to admit in this step   2 events to keep
-- Returns { admitted, room left, still waiting, Redis time ms, ms until the queue opens (0: it is open) }
-- Errors  NOQUEUE  the queue does not exist
--         POLICY   a policy this version does not know
--
-- Holds: no admission takes active above capacity (the policy's room is an upper bound on what is admitted);
-- visitors are taken from the front, so nobody passes anyone in their lane; state.waiting, state.active are the sizes of
-- the sets. Work is bounded by ARGV[1].
local most, keep = tonumber(ARGV[1]), ARGV[2]

local s = redis.call('HMGET', K_STATE, 'generation', 'event', 'admitted')
local generation = tonumber(s[1])
if not generation then
    return redis.error_reply('NOQUEUE the queue does not exist')
end
local c = redis.call('HMGET', K_CONFIG, 'policy', 'capacity', 'claim_ttl', 'session_ttl', 'opens_at',
    'paused')
local policy, capacity, claim_ttl, session_ttl = c[1], tonumber(c[2]), tonumber(c[3]), tonumber(c[4])
local opens_at, paused = tonumber(c[5]) or 0, c[6] == 'true'
if not capacity or not claim_ttl or not session_ttl then
    return redis.error_reply('NOQUEUE the queue has no settings')
end

local now = now_ms()
local waiting, active = redis.call('ZCARD', K_WAITING), redis.call('ZCARD', K_ACTIVE)

-- How many each policy has room for. A queue may be under several at once: the smallest room counts.
local room_of = {
    counter = function()
        return math.max(0, capacity - active)
    end,
}
local room = room_of[policy]
if not room then
    return redis.error_reply('POLICY this version admits by counter only')
end
room = room()

local opens_in = math.max(0, opens_at - now)
if paused or opens_in > 0 then
    return { 0, 0, waiting, now, opens_in }
end
local n = math.min(room, most, waiting)
if n == 0 then
    return { 0, room, waiting, now, 0 }
end

-- What follows is what a mass of admissions costs. Redis prints and reads numbers slowly: what is the same for everybody is
-- made text once, and a place goes from set to session as the text it comes in. Where the line has no gap, which its first
-- and last place tell, no place is asked for at all.
local PORTION = 250   -- visitors at a time; unpack, which hands them over, is bounded by Lua's stack
local GAPLESS_MIN = 50 -- fewer are taken sooner than looked at

local deadline = now + math.min(claim_ttl, session_ttl) -- until the visitor shows up (RENEW)
local score, suffix = int(deadline), ':' .. int(now) .. ':0'
local places, actives, sessions = {}, {}, {} -- of all; score, visitor, ... and visitor, session, ... of a portion

local function place_at(rank)
    return tonumber(redis.call('ZRANGE', K_WAITING, rank, rank, 'WITHSCORES')[2])
end

-- The place of the first of `count` visitors if they stand on `count` places in a row; nil if not, or if it has fewer than
-- the three digits that take_gapless puts together.
local function first_of_gapless(count)
    local place = count >= GAPLESS_MIN and place_at(0)
    return place and place >= 100 and place_at(count - 1) - place == count - 1 and place or nil
end

local tails -- the ends of sessions, by the last two digits of the place; made when first needed

local function made_tails()
    local made = {}
    for i = 0, 99 do
        made[i] = string.format('%02d', i) .. suffix
    end
    return made
end

local function take_gapless(count, place)
    tails = tails or made_tails()
    local places, actives, sessions, tails, nth = places, actives, sessions, tails, #places
    local called = redis.call('ZRANGE', K_WAITING, 0, count - 1)
    redis.call('ZREMRANGEBYRANK', K_WAITING, 0, count - 1)
    local digits = place % 100
    local head = int((place - digits) / 100)
    for i = 1, count do
        local visitor = called[i]
        actives[2 * i - 1], actives[2 * i] = score, visitor
        sessions[2 * i - 1], sessions[2 * i] = visitor, head .. tails[digits]
        places[nth + i] = place
        place, digits = place + 1, digits + 1
        if digits == 100 then
            head, digits = int(place / 100), 0
        end
    end
end

local function take(count)
    local places, actives, sessions, suffix, nth = places, actives, sessions, suffix, #places
    local called = redis.call('ZPOPMIN', K_WAITING, count)
    for i = 1, count do
        local visitor, text = called[2 * i - 1], called[2 * i]
        local place = text + 0
        if place % 100000 == 0 then -- some servers write 100000000 as 1e+8
            text = int(place)
        end
        actives[2 * i - 1], actives[2 * i] = score, visitor
        sessions[2 * i - 1], sessions[2 * i] = visitor, text .. suffix
        places[nth + i] = place
    end
end

for done = 0, n - 1, PORTION do
    local count = math.min(PORTION, n - done)
    local first = first_of_gapless(count)
    if first then
        take_gapless(count, first)
    else
        take(count)
    end
    redis.call('ZADD', K_ACTIVE, unpack(actives, 1, 2 * count))
    redis.call('HSET', K_SESSIONS, unpack(sessions, 1, 2 * count))
end

waiting, active = waiting - n, active + n
local number = tonumber(s[2]) + 1
-- admit_capacity: the bound this admission obeyed, by which an audit judges `active` after capacity was lowered.
redis.call('HSET', K_STATE, 'waiting', int(waiting), 'active', int(active), 'event', int(number),
    'admitted', int(tonumber(s[3]) + n), 'admit_capacity', int(capacity))
emit(number, generation, waiting, active, { { EVENT.admitted, runs_of(places), deadline } }, keep)
return { n, room - n, waiting, now, 0 }
