-- admit: calls the next visitors while there is capacity left.
-- Flags: allow-oom
-- Parts: prelude.records prelude.runs prelude.row prelude.recovery admit.recovery
--
-- ARGV     1 most to admit in this step   2 about how many events to keep
--          3 generation of the queue when the caller last called, 0 or missing: not known
-- Returns  { admitted, capacity left, still waiting, Redis time ms, ms after which to call again (0: no need),
--            generation, base_seq }
-- Errors   NOQUEUE  the queue does not exist
--          POLICY   a policy this version does not know
--
-- Invariants: no admission takes active above capacity; visitors are taken from the front, so no visitor passes another
-- in the same lane; state.waiting and state.active are the sizes of the sets. When they were not, because a set was
-- lost or changed by hand, the step only writes them again. Work is bounded by ARGV[1].
local most, keep = tonumber(ARGV[1]), ARGV[2]

local state, admitted_total, recover_until = open_state('admitted', 'recover_until')
if not state then
    return no_queue()
end
local c = redis.call('HMGET', K_CONFIG, 'policy', 'capacity', 'claim_ttl', 'session_ttl', 'opens_at', 'paused')
local policy, capacity, claim_ttl, session_ttl = c[1], tonumber(c[2]), tonumber(c[3]), tonumber(c[4])
local opens_at, paused = tonumber(c[5]) or 0, c[6] == 'true'
if not capacity or not claim_ttl or not session_ttl then
    return redis.error_reply('NOQUEUE the queue has no settings')
end

local now = now_ms()
local waiting, active = redis.call('ZCARD', K_WAITING), redis.call('ZCARD', K_ACTIVE)

-- What the script returns. again_ms: after how many ms to call again; 0: no need.
local function result(admitted, left, again_ms)
    return { admitted, left, waiting, now, again_ms, int(state.generation), state.base_seq }
end

-- The sets are right and the state is wrong: visitors who are missing have ended, those too many have joined. Readers
-- find that their line has other sizes.
local function count_again()
    check_types()
    local joined, expired = unpack(redis.call('HMGET', K_STATE, 'joined', 'expired'))
    local missing = state.waiting + state.active - waiting - active
    state.waiting, state.active = waiting, active
    commit(state, { 'joined', tonumber(joined) + math.max(0, -missing), 'expired',
        tonumber(expired) + math.max(0, missing) }, {}, keep)
end

if waiting ~= state.waiting or active ~= state.active then
    count_again()
    return result(0, 0, 1)
elseif recover_until and recover_until ~= '0' then
    return result(0, 0, recover(state, now, tonumber(recover_until), most, keep))
elseif tonumber(ARGV[3] or 0) > 0 and begins_recovery(state, now, tonumber(ARGV[3]), keep) then
    return result(0, 0, 1000)
end

-- How many more each policy admits. Where several apply to a queue, the smallest number counts.
local LEFT_BY_POLICY = {
    counter = function()
        return math.max(0, capacity - active)
    end,
}
local left_by_policy = LEFT_BY_POLICY[policy]
if not left_by_policy then
    return redis.error_reply('POLICY this version admits by counter only')
end
local left = left_by_policy()

local opens_in = math.max(0, opens_at - now)
if paused or opens_in > 0 then
    return result(0, 0, opens_in)
end
local n = math.min(left, most, waiting)
if n == 0 then
    return result(0, left, 0)
end
check_types()

---- take them from the line, in portions

local PORTION = 250         -- visitors in one call of Redis; unpack is limited by Lua's stack
local LOOK_FOR_ROW_MIN = 50 -- with fewer visitors, looking for a row costs more than it saves

local deadline = now + math.min(claim_ttl, session_ttl) -- the visitor must claim the session by then
local score, tail = int(deadline), session_tail(now, false)
local places = {} -- of all who are admitted
local texts = {}  -- of the sessions of one portion

local function place_at(rank)
    return tonumber(redis.call('ZRANGE', K_WAITING, rank, rank, 'WITHSCORES')[2])
end

-- Takes the first `count` visitors from the line. Returns them, and for each the text of the session.
--
-- A fast path: most of the time they stand in a row, without gaps, as their first and last place tell. Then Redis need
-- not print their places, nor Lua parse them. This saves 17 % of a step that admits 1,400.
local function take(count)
    local first = count >= LOOK_FOR_ROW_MIN and place_at(0)
    if first and place_at(count - 1) - first == count - 1 then
        local visitors = redis.call('ZRANGE', K_WAITING, 0, count - 1)
        redis.call('ZREMRANGEBYRANK', K_WAITING, 0, count - 1)
        local nth = #places
        for i = 1, count do
            places[nth + i] = first + i - 1
        end
        write_row(texts, first, count, tail)
        return visitors, texts
    end
    local popped = redis.call('ZPOPMIN', K_WAITING, count)
    local visitors, nth = {}, #places
    for i = 1, count do
        local place, digits = parse_place(popped[2 * i])
        visitors[i], texts[i], places[nth + i] = popped[2 * i - 1], digits .. tail, place
    end
    return visitors, texts
end

for done = 0, n - 1, PORTION do
    local count = math.min(PORTION, n - done)
    local visitors, sessions = take(count)
    local scored, fields = {}, {} -- deadline, visitor, ... and visitor, session, ...
    for i = 1, count do
        local visitor = visitors[i]
        scored[2 * i - 1], scored[2 * i] = score, visitor
        fields[2 * i - 1], fields[2 * i] = visitor, sessions[i]
    end
    redis.call('ZADD', K_ACTIVE, unpack(scored))
    redis.call('HSET', K_SESSIONS, unpack(fields))
end

-- admit_capacity: the capacity this admission obeyed. An audit judges `active` by it after capacity was lowered.
state.waiting, state.active = waiting - n, active + n
commit(state, { 'admitted', admitted_total + n, 'admit_capacity', capacity },
    { { EVENT.admitted, runs_of(places), deadline } }, keep)
waiting = state.waiting
return result(n, left - n, 0)
