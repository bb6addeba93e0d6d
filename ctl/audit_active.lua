-- Checks, at one moment, visitors that were active a moment ago (a page of the set, so that the work is bounded).
-- What it finds wrong is wrong: everything that it compares, it reads here.
-- In: ARGV = visitors. Out: { { rule, visitor, place, other visitor, other place } ... } with rule
--   'both'     the visitor is waiting and active
--   'session'  the visitor is active without a readable session
--   'order'    the other visitor, of the same lane, still waits at a smaller place
-- Changes nothing.
local active = redis.call('ZMSCORE', K_ACTIVE, unpack(ARGV))
local waiting = redis.call('ZMSCORE', K_WAITING, unpack(ARGV))
local sessions = redis.call('HMGET', K_SESSIONS, unpack(ARGV))

local heads = {} -- lane -> who waits first in it
local function head_of(lane)
    if not heads[lane] then
        heads[lane] = redis.call('ZRANGEBYSCORE', K_WAITING, int(lane * LANE), '(' .. int((lane + 1) * LANE),
            'WITHSCORES', 'LIMIT', 0, 1)
    end
    return heads[lane]
end

local wrong = {}
for i, visitor in ipairs(ARGV) do
    if active[i] then
        if waiting[i] then
            wrong[#wrong + 1] = { 'both', visitor }
        end
        local place = sessions[i] and tonumber(string.match(sessions[i], '^(%d+):'))
        if not place then
            wrong[#wrong + 1] = { 'session', visitor }
        else
            local head = head_of(math.floor(place / LANE))
            if head[1] and tonumber(head[2]) < place then
                wrong[#wrong + 1] = { 'order', visitor, int(place), head[1], int(tonumber(head[2])) }
            end
        end
    end
end
return wrong
