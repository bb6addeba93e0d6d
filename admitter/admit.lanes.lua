-- SPDX-License-Identifier: Apache-2.0
-- Lanes with weights: whose turn it is. As in start-time fair queueing (P. Goyal, H. Vin, H. Cheng, 1996).
--
-- The turns of a lane come a stride apart, period / weight, on a clock that only admissions move: of the lanes with
-- visitors, the one whose turn is due first admits the first of its visitors, at the same time the first lane; and the
-- clock shows that turn. A turn that passed while its lane was empty is due now: an empty lane gathers no credit. So
-- what follows depends on the visitors admitted so far and on those who wait, not on the steps in which it was done;
-- and while two lanes have visitors, they are served as their weights say, up to one visitor of each.
--
-- Field `turns` of the state: "weights:period:due,due,...": for each lane when its turn is, from the present time of
-- that clock on, at most a stride. All are whole numbers, and `period` is the least common multiple of the weights.
-- Workers go on from it by the events (common/line/turns.h), so both must count alike.


-- Two fast paths, for one visitor and for a few, where the field is of these weights, two to four lanes have one, and
-- nobody waits elsewhere. They do what admit_by_weights does; but to make its functions takes longer than all that they
-- do for a few. They return nil when there is no fast path, and nothing was done.

-- Returns how many lanes there are, the text of their weights, the period, and for each lane its weight, as text, and
-- when its turn is; nil when there is no fast path, and for damaged numbers.
local function quick_field(weights, field)
    local of, w1, w2, period, d1, d2, w3, w4, d3, d4 = string.match(field, '^((%d+),(%d+)):(%d+):(%d+),(%d+)$')
    if not of then
        of, w1, w2, w3, w4, period, d1, d2, d3, d4 = string.match(field,
            '^((%d+),(%d+),(%d+),?(%d*)):(%d+):(%d+),(%d+),(%d+),?(%d*)$')
    end
    if of ~= weights or (w4 == '') ~= (d4 == '') then
        return nil
    end
    -- Adding 0 makes a number of a text in a third of the time of tonumber.
    local lanes, longest = not w3 and 2 or w4 == '' and 3 or 4, period + 0
    d1, d2, d3, d4 = d1 + 0, d2 + 0, lanes > 2 and d3 + 0 or 0, lanes > 3 and d4 + 0 or 0
    if longest < 1 or longest > PERIOD_MAX or longest % w1 ~= 0 or longest % w2 ~= 0 or lanes > 2 and longest % w3 ~= 0
        or lanes > 3 and longest % w4 ~= 0 or d1 > longest or d2 > longest or d3 > longest or d4 > longest then
        return nil
    end
    return lanes, of, period, w1, d1, w2, d2, w3, d3, w4, d4
end

local FEW = 250 -- with more visitors, to count the turns of a lane at once is as fast

-- Admits n of the `waiting` visitors, by admit_from of line_taker, turn for turn. Returns the field after that.
local function quick_turns(weights, field, n, waiting, admit_from)
    local found = { quick_field(weights, field) }
    local lanes, counted = found[1] or 0, 0
    local starts = { '0', '281474976710656', '562949953421312', '844424930131968', '1125899906842624' }
    local sizes, shares, due, strides = {}, {}, {}, {}
    for lane = 1, lanes do
        sizes[lane] = redis.call('ZCOUNT', K_WAITING, starts[lane], '(' .. starts[lane + 1])
        shares[lane], due[lane], strides[lane] = 0, found[3 + 2 * lane], found[3] / found[2 + 2 * lane]
        counted = counted + sizes[lane]
    end
    if lanes == 0 or counted ~= waiting then
        return nil
    end
    local time = 0
    for _ = 1, n do
        local next_lane
        for lane = 1, lanes do
            if shares[lane] < sizes[lane] and (not next_lane or due[lane] < due[next_lane]) then
                next_lane = lane
            end
        end
        time = due[next_lane]
        due[next_lane], shares[next_lane] = time + strides[next_lane], shares[next_lane] + 1
    end
    local rank = 0
    for lane = 1, lanes do
        if shares[lane] > 0 then
            admit_from(rank, shares[lane])
        end
        rank = rank + sizes[lane] - shares[lane]
        due[lane] = due[lane] > time and due[lane] - time or 0
    end
    return found[2] .. ':' .. found[3] .. ':' .. table.concat(due, ',')
end

-- Takes the next visitor. Returns visitor and place, as ZPOPMIN does, and the field after that.
local function quick_turn(weights, field, waiting)
    local lanes, of, period, w1, d1, w2, d2, w3, d3, w4, d4 = quick_field(weights, field)
    if not lanes or redis.call('ZCOUNT', K_WAITING, lanes == 2 and '562949953421312'
        or lanes == 3 and '844424930131968' or '1125899906842624', '+inf') > 0 then
        return nil
    end
    -- Whose turn is it?
    local popped, lane, time, rank
    if lanes == 2 and d1 <= d2 then -- of the first lane; where that is empty, of the other
        popped = redis.call('ZPOPMIN', K_WAITING)
        lane = popped[2] + 0 < LANE and 1 or 2
        time = lane == 1 and d1 or d2
    else
        local past = redis.call('ZCOUNT', K_WAITING, '-inf', '(281474976710656')
        if past > 0 then
            lane, time, rank = 1, d1, 0
        end
        local before = past
        past = lanes == 2 and waiting or redis.call('ZCOUNT', K_WAITING, '-inf', '(562949953421312')
        if past > before and (not time or d2 < time) then
            lane, time, rank = 2, d2, before
        end
        if lanes > 2 then
            before, past = past, lanes == 3 and waiting or redis.call('ZCOUNT', K_WAITING, '-inf', '(844424930131968')
            if past > before and (not time or d3 < time) then
                lane, time, rank = 3, d3, before
            end
            if waiting > past and (not time or d4 < time) then
                lane, time, rank = 4, d4, past
            end
        end
        if rank == 0 then
            popped = redis.call('ZPOPMIN', K_WAITING)
        else
            rank = int(rank)
            popped = redis.call('ZRANGE', K_WAITING, rank, rank, 'WITHSCORES')
            redis.call('ZREM', K_WAITING, popped[1])
        end
    end
    -- The turns move on.
    local stride = period / (lane == 1 and w1 or lane == 2 and w2 or lane == 3 and w3 or w4)
    d1 = lane == 1 and stride or d1 > time and d1 - time or 0
    d2 = lane == 2 and stride or d2 > time and d2 - time or 0
    if lanes == 2 then
        return popped, of .. ':' .. period .. ':' .. format('%d,%d', d1, d2)
    end
    d3 = lane == 3 and stride or d3 > time and d3 - time or 0
    if lanes == 3 then
        return popped, of .. ':' .. period .. ':' .. format('%d,%d,%d', d1, d2, d3)
    end
    d4 = lane == 4 and stride or d4 > time and d4 - time or 0
    return popped, of .. ':' .. period .. ':' .. format('%d,%d,%d,%d', d1, d2, d3, d4)
end

-- Admits n of the `waiting` visitors as the weights say, by the functions of line_taker. Returns the field after that;
-- nil without turns. The functions are made here: few steps need them, and making them takes time.
local function admit_by_weights(weights, field, n, waiting, admit_from, take_popped)

local function period_of(weights)
    local period = 1
    for weight in string.gmatch(weights, '%d+') do
        local a, b = period, tonumber(weight)
        while b > 0 do
            a, b = b, a % b
        end
        period = period / a * math.max(1, tonumber(weight))
        if period > PERIOD_MAX then
            return nil
        end
    end
    return period
end

-- The turns by the setting and the field; nil without weights: then a lane is served while those before it are empty.
-- Under other weights than those of the field, all turns are due now; none is due later than a stride from now.
local function lane_turns()
    if not string.find(weights or '', '%d') then
        return nil
    end
    local n, period, dues = #weights, period_of(weights), nil
    if string.sub(field, 1, n) == weights then
        dues = string.match(field, '^:%d+:([%d,]+)$', n + 1)
    end
    if not period then
        return nil -- damaged by hand: readers, too, take it for none
    end
    local lanes, due, strides = 0, { [0] = 0, 0 }, { [0] = 0, 0 } -- room for two lanes; adding it later takes longer
    for weight in string.gmatch(weights, '%d+') do
        due[lanes], strides[lanes], lanes = 0, period / math.max(1, weight + 0), lanes + 1
    end
    local lane = 0
    for text in string.gmatch(dues or '', '%d+') do
        if lane == 16 then -- damaged by hand: there are no more
            break
        end
        strides[lane] = lane < lanes and strides[lane] or period
        due[lane], lane = math.min(text + 0, strides[lane]), lane + 1
    end
    return { weights = weights, period = period, due = due, strides = strides, lanes = lane > lanes and lane or lanes }
end

-- All numbers are below 2^31: Lua writes their digits.
local function turns_text(turns)
    return turns.weights .. ':' .. turns.period .. ':' .. table.concat(turns.due, ',', 0, turns.lanes - 1)
end

-- Where each lane begins, lane * LANE, as text: neither Lua nor Redis writes such numbers fast, nor small ones.
local STARTS = { [0] = '0', '281474976710656', '562949953421312', '844424930131968', '1125899906842624',
    '1407374883553280', '1688849860263936', '1970324836974592', '2251799813685248', '2533274790395904',
    '2814749767106560', '3096224743817216', '3377699720527872', '3659174697238528', '3940649673949184',
    '4222124650659840', '+inf' }

-- Lanes without a weight, which the queue no longer has, get 1.
local function add_lanes(turns, lanes)
    for lane = turns.lanes, lanes - 1 do
        turns.due[lane], turns.strides[lane] = 0, turns.period
    end
    turns.lanes = lanes
end

-- How many of the `waiting` visitors wait in each lane.
local function lane_sizes(turns, waiting)
    local sizes, counted, lane = {}, 0, 0
    while lane < turns.lanes or (counted < waiting and lane < 16) do
        local size = counted < waiting and redis.call('ZCOUNT', K_WAITING, STARTS[lane], '(' .. STARTS[lane + 1]) or 0
        if lane == turns.lanes then
            add_lanes(turns, lane + 1)
        end
        sizes[lane], counted, lane = size, counted + size, lane + 1
    end
    return sizes
end

-- How many turns of this lane are due up to this time, if `size` visitors wait in it.
local function turns_by(turns, lane, size, time)
    local due = turns.due[lane]
    return time < due and 0 or math.min(size, math.floor((time - due) / turns.strides[lane]) + 1)
end

-- The time of the nth turn from now: the first up to which n turns are due.
local function time_of(turns, sizes, n)
    local early, late = -1, 0
    for lane = 0, turns.lanes - 1 do
        if sizes[lane] > 0 then
            late = math.max(late, turns.due[lane] + (math.min(n, sizes[lane]) - 1) * turns.strides[lane])
        end
    end
    while late - early > 1 do
        local time, due = math.floor((early + late) / 2), 0
        for lane = 0, turns.lanes - 1 do
            due = due + turns_by(turns, lane, sizes[lane], time)
        end
        if due >= n then
            late = time
        else
            early = time
        end
    end
    return late
end

-- Who are the next n of the `waiting` visitors? Calls admit_from(rank in the line, how many) for each lane that has
-- some of them, and moves the turns on.
local function admit_by_turns(turns)
    local sizes = lane_sizes(turns, waiting)
    local time = time_of(turns, sizes, n)
    local shares, last = {}, n -- last: how many of the turns at that very time are taken
    for lane = 0, turns.lanes - 1 do
        shares[lane] = turns_by(turns, lane, sizes[lane], time - 1)
        last = last - shares[lane]
    end
    local rank = 0
    for lane = 0, turns.lanes - 1 do
        local share = shares[lane]
        if last > 0 and turns_by(turns, lane, sizes[lane], time) > share then
            share, last = share + 1, last - 1
        end
        if share > 0 then
            admit_from(rank, share)
        end
        rank = rank + sizes[lane] - share
        turns.due[lane] = math.max(0, turns.due[lane] + share * turns.strides[lane] - time)
    end
    if last > 0 then
        admit_from(0, last) -- at places that are in no lane: changed by hand
    end
end

-- Takes the first visitor of this lane, as { visitor, place }; nil if it is empty.
local function pop_first_of(lane)
    local first = redis.call('ZRANGE', K_WAITING, STARTS[lane], '(' .. STARTS[lane + 1], 'BYSCORE', 'LIMIT', '0', '1',
        'WITHSCORES')
    if first[1] then
        redis.call('ZREM', K_WAITING, first[1])
        return first
    end
end

-- The same for one visitor, whose lane is found without counting them all.
local function pop_next(turns)
    local due, lanes, tried = turns.due, turns.lanes, {}
    if lanes < 16 and redis.call('ZCOUNT', K_WAITING, STARTS[lanes], '+inf') > 0 then
        add_lanes(turns, 16)
        lanes = 16
    end
    for _ = 1, lanes do
        local next_lane
        for lane = 0, lanes - 1 do
            if not tried[lane] and (not next_lane or due[lane] < due[next_lane]) then
                next_lane = lane
            end
        end
        local popped = pop_first_of(next_lane)
        if popped then
            local time = due[next_lane]
            due[next_lane] = time + turns.strides[next_lane]
            for lane = 0, lanes - 1 do
                due[lane] = due[lane] > time and due[lane] - time or 0
            end
            return popped
        end
        tried[next_lane] = true
    end
end

local turns = lane_turns()
if turns and n == 1 then
    take_popped(pop_next(turns) or redis.call('ZPOPMIN', K_WAITING))
elseif turns then
    admit_by_turns(turns)
else
    admit_from(0, n)
end
return turns and turns_text(turns)

end
