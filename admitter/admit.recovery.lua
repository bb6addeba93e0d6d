-- SPDX-License-Identifier: Apache-2.0
-- While a queue recovers nobody is admitted. At the end, who came back to a place that had been called before loses it.

local recover, begins_recovery

-- Makes these functions: few steps need them.
local function load_recovery()

local RECOVERY_MIN_MS = 5000 -- also when all are back: what every worker remembers must have arrived

-- Ms until the recovery ends. Without a worker, to whom visitors can come back, it goes on.
local function recovery_left(now, till)
    local v = redis.call('HMGET', K_STATE, 'lost_size', 'restored', 'recover_since', 'started')
    local size, restored, since = tonumber(v[1]) or 0, tonumber(v[2]) or 0, tonumber(v[3]) or now
    if size > 0 and restored >= size then -- everyone a worker remembers is back
        till = math.min(till, since + RECOVERY_MIN_MS)
    end
    return v[4] and till - now or 1000
end

-- The visitors at up to `most` places up to the fronts of the lost generation, and their places. Places of before a
-- draw are not among them: the fronts are those of the drawn.
local function called_before(now, most)
    local visitors, places = {}, {}
    local opening, opens_at = unpack(redis.call('HMGET', K_CONFIG, 'opening', 'opens_at'))
    opens_at = opening == 'draw' and tonumber(opens_at) or nil
    local undrawn = opens_at and now >= opens_at and number_base(opens_at) or 0
    for lane = 0, 15 do
        local front = tonumber(redis.call('HGET', K_STATE, 'front:' .. lane))
        local found = front and #places < most and redis.call('ZRANGE', K_WAITING, int(lane * LANE + undrawn),
            int(lane * LANE + front), 'BYSCORE', 'LIMIT', 0, most - #places, 'WITHSCORES') or {}
        for i = 1, #found, 2 do
            visitors[#visitors + 1], places[#places + 1] = found[i], (parse_place(found[i + 1]))
        end
    end
    return visitors, places
end

-- Returns after how many ms to call again.
recover = function(state, now, till, most, keep)
    local left = recovery_left(now, till)
    if left > 0 then
        return left
    end
    check_types()
    local visitors, places = called_before(now, most)
    if #places > 0 then
        local expired = read_counter(redis.call('HGET', K_STATE, 'expired')) + #places
        local score = end_score(now, REASON.expired)
        for _, visitor in ipairs(visitors) do
            redis.call('ZREM', K_WAITING, visitor)
            redis.call('ZADD', K_ENDED, score, visitor)
        end
        state.waiting = state.waiting - #places
        commit(state, { 'expired', expired }, { { EVENT.removed, runs_of(places), REASON.expired } }, keep)
    else
        redis.call('UNLINK', K_LOST)
        commit(state, { 'recover_until', 0 }, { { EVENT.config } }, keep)
    end
    return 1
end

-- The caller remembers another generation of this queue. If no one has named it or a later one, recovery begins: nobody
-- is admitted before those who were there.
begins_recovery = function(state, now, known, keep)
    if known >= state.generation then
        return false
    end
    local v = redis.call('HMGET', K_STATE, 'lost_generation', 'lost_by', 'started')
    local found = { generation = tonumber(v[1]) or 0, by = v[2], till = 0, started = tonumber(v[3]) or now,
        window = recovery_window() }
    if not may_name_lost(found, known, now) then
        return false
    end
    check_types()
    commit(state, { 'lost_generation', known, 'lost_by', NAMED_BY.memory, 'recover_since', now,
        'recover_until', now + found.window }, { { EVENT.config } }, keep)
    return true
end

end
