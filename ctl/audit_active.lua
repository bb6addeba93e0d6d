-- audit_active: checks visitors who were active a moment ago, at one moment. Changes nothing.
-- Parts: prelude.records
--
-- ARGV     visitors: one page of the active set, which bounds the work
-- Returns  { { rule, visitor, place, other visitor, other place } ... }, the rule being
--            'both'     the visitor is waiting and active
--            'session'  the visitor is active without a readable session; no place
--            'order'    the other visitor, of the same lane, still waits at a smaller place
--          All that is compared is read here, so every violation is real.
local active = redis.call('ZMSCORE', K_ACTIVE, unpack(ARGV))
local waiting = redis.call('ZMSCORE', K_WAITING, unpack(ARGV))
local sessions = redis.call('HMGET', K_SESSIONS, unpack(ARGV))

local heads = {} -- lane -> { visitor, score } of the first who waits in it, or {}
local function head_of(lane)
    if not heads[lane] then
        heads[lane] = redis.call('ZRANGEBYSCORE', K_WAITING, int(lane * LANE), '(' .. int((lane + 1) * LANE),
            'WITHSCORES', 'LIMIT', 0, 1)
    end
    return heads[lane]
end

local violations = {}
for i, visitor in ipairs(ARGV) do
    if active[i] then
        if waiting[i] then
            violations[#violations + 1] = { 'both', visitor }
        end
        local place = parse_session(sessions[i])
        local head = place and head_of(math.floor(place / LANE))
        if not place then
            violations[#violations + 1] = { 'session', visitor }
        elseif head[1] and tonumber(head[2]) < place then
            violations[#violations + 1] = { 'order', visitor, int(place), head[1], int(tonumber(head[2])) }
        end
    end
end
return violations
