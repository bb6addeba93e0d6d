-- expire: ends the sessions that are overdue, oldest deadline first, and gives their counters back.
--
-- ARGV  1 most to end in this step   2 events to keep
-- Returns { ended, next deadline ms or 0, Redis time ms, forgotten }
-- Errors  NOQUEUE  the queue does not exist
--
-- Holds: only sessions whose deadline has passed by Redis's clock end; a session ends once; state.active is the size of the
-- set. Also forgets ends older than an hour. Work is bounded by ARGV[1] (ends) and as many forgotten.
local most, keep = tonumber(ARGV[1]), ARGV[2]
local ENDED_KEPT_MS = 3600000

local s = redis.call('HMGET', K_STATE, 'generation', 'event', 'active', 'expired', 'unclaimed', 'waiting')
local generation = tonumber(s[1])
if not generation then
    return redis.error_reply('NOQUEUE the queue does not exist')
end
local now = now_ms()

local due = redis.call('ZRANGE', K_ACTIVE, '-inf', now, 'BYSCORE', 'LIMIT', 0, most)
if #due > 0 then
    -- This loop is what a mass of ends costs. Scores are made text once, as each number handed over from Lua is printed
    -- anew; lists are filled by a count of their own; and of a session only what is needed is parsed.
    local sub, byte, tonumber = string.sub, string.byte, tonumber
    local PLACE_END = -17 -- of place:admitted_ms:claimed, as Redis's clock has 13 digits in ms until the year 2286
    local UNCLAIMED = byte('0') -- how a session ends in text that nobody claimed
    local expired, n_expired, score_expired = {}, 0, int(now * 8 + REASON.expired)
    local unclaimed, n_unclaimed, score_unclaimed = {}, 0, int(now * 8 + REASON.unclaimed)
    -- unpack is bounded by Lua's stack: hand over at most 1,000 visitors a call
    for from = 1, #due, 1000 do
        local to = math.min(from + 999, #due)
        local sessions = redis.call('HMGET', K_SESSIONS, unpack(due, from, to))
        local ended, n = {}, 0
        for i = from, to do
            local session = sessions[i - from + 1] or ''
            local place = tonumber(sub(session, 1, PLACE_END))
            local is_known = place and place >= 0 -- false only in damaged data, such as "nan": that ends, too
            if is_known and byte(session, -1) == UNCLAIMED then
                n_unclaimed = n_unclaimed + 1
                unclaimed[n_unclaimed] = place
                ended[n + 1] = score_unclaimed
            else
                if is_known then
                    n_expired = n_expired + 1
                    expired[n_expired] = place
                end
                ended[n + 1] = score_expired
            end
            n = n + 2
            ended[n] = due[i]
        end
        redis.call('HDEL', K_SESSIONS, unpack(due, from, to))
        redis.call('ZADD', K_ENDED, unpack(ended))
    end
    redis.call('ZREMRANGEBYRANK', K_ACTIVE, 0, #due - 1)

    local events = {}
    if n_expired > 0 then
        events[1] = { EVENT.freed, runs_of(expired), REASON.expired }
    end
    if n_unclaimed > 0 then
        events[#events + 1] = { EVENT.freed, runs_of(unclaimed), REASON.unclaimed }
    end
    local number, active = tonumber(s[2]) + 1, tonumber(s[3]) - #due
    redis.call('HSET', K_STATE, 'active', int(active), 'event', int(number), 'expired', int(tonumber(s[4]) + #due),
        'unclaimed', int(tonumber(s[5]) + n_unclaimed))
    emit(number, generation, tonumber(s[6]), active, events, keep)
end

local old = redis.call('ZRANGE', K_ENDED, '-inf', (now - ENDED_KEPT_MS) * 8, 'BYSCORE', 'LIMIT', 0, most)
if #old > 0 then
    redis.call('ZREMRANGEBYRANK', K_ENDED, 0, #old - 1)
end

local next_one = redis.call('ZRANGE', K_ACTIVE, 0, 0, 'WITHSCORES')
return { #due, tonumber(next_one[2] or 0), now, #old }
