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

local called = redis.call('ZPOPMIN', K_WAITING, n) -- visitor, place, visitor, place, ...
n = #called / 2
-- This loop is what a mass of admissions costs. What is the same for everybody is made text once, as each number handed
-- over from Lua is printed anew; and a place goes from set to session as the text it comes in.
local find, tonumber = string.find, tonumber
local deadline = now + math.min(claim_ttl, session_ttl) -- until the visitor shows up (RENEW)
local score, suffix = int(deadline), ':' .. int(now) .. ':0'
local places, nth = {}, 0
-- unpack is bounded by Lua's stack: hand over at most 1,000 visitors a call
for from = 1, #called, 2000 do
    local to = math.min(from + 1999, #called)
    local actives, at = {}, 0 -- score, visitor, ...; `called` itself becomes visitor, session, ...
    for i = from, to, 2 do
        local text = called[i + 1]
        local place = tonumber(text)
        nth = nth + 1
        places[nth] = place
        if find(text, 'e', 1, true) then -- in case a server writes 100000000 as 1e+8
            text = int(place)
        end
        actives[at + 1], actives[at + 2] = score, called[i]
        called[i + 1] = text .. suffix
        at = at + 2
    end
    redis.call('ZADD', K_ACTIVE, unpack(actives))
    redis.call('HSET', K_SESSIONS, unpack(called, from, to))
end

waiting, active = waiting - n, active + n
local number = tonumber(s[2]) + 1
-- admit_capacity: the bound this admission obeyed, by which an audit judges `active` after capacity was lowered.
redis.call('HSET', K_STATE, 'waiting', int(waiting), 'active', int(active), 'event', int(number),
    'admitted', int(tonumber(s[3]) + n), 'admit_capacity', int(capacity))
emit(number, generation, waiting, active, { { EVENT.admitted, runs_of(places), deadline } }, keep)
return { n, room - n, waiting, now, 0 }
