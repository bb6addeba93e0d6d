-- SPDX-License-Identifier: Apache-2.0
-- Lanes with weights: whose turn it is. As in start-time fair queueing (P. Goyal, H. Vin, H. Cheng, 1996).
--
-- The turns of a lane come a stride apart, period / weight, on a clock that only admissions move: of the lanes with
-- visitors, the one whose turn is due first admits the first of its visitors, at the same time the first lane; and the
-- clock shows that turn. A turn that passed while its lane was empty is due now: an empty lane gathers no credit. So what
-- follows depends on the visitors admitted so far and on those who wait, not on the steps in which it was done; and while
-- two lanes have visitors, they are served as their weights say, up to one visitor of each.
--
-- Field `turns` of the state: "weights:period:due,due,...": for each lane when its turn is, from the present time of that
-- clock on, at most a stride. All are whole numbers, and `period` is the least common multiple of the weights. Workers go
-- on from it by the events (common/line/turns.h), so both must count alike.

local LANES, LANE = defs.LANES_MAX, defs.LANE
local starts = {} -- where a lane begins, lane * LANE, as text: each made when first needed

local function start_of(lane)
    starts[lane] = starts[lane] or (lane < LANES and text.int(lane * LANE) or '+inf')
    return starts[lane]
end

local function gcd(a, b)
    while b > 0 do a, b = b, a % b end
    return a
end

-- The turns by the setting and the field; nil without weights: then a lane is served while those before it are empty.
-- Under other weights than those of the field, all turns are due now; none is due later than a stride from now. A lane
-- without a weight, which the queue no longer has, gets 1.
local function parse(weights, field)
    if not weights or not find(weights, '%d') then return nil end
    local t, period = { due = {}, stride = {}, n = 0 }, 1
    for w in gmatch(weights, '%d+') do
        local weight = max(1, w + 0)
        period = period / gcd(period, weight) * weight
        if period > defs.PERIOD_MAX then return nil end -- damaged by hand: readers, too, take it for none
        t.stride[t.n] = weight
        t.n = t.n + 1
    end
    for lane = 0, LANES - 1 do t.due[lane], t.stride[lane] = 0, period / (t.stride[lane] or 1) end
    t.head = weights .. ':' .. format('%d', period) .. ':'
    local lane, dues = 0, field and sub(field, 1, #weights) == weights and match(field, '^:%d+:([%d,]+)$', #weights + 1)
    for due in gmatch(dues or '', '%d+') do
        if lane == LANES then break end -- damaged by hand: there are no more
        t.due[lane], lane = min(due + 0, t.stride[lane]), lane + 1
    end
    t.n = max(t.n, lane)
    return t
end

-- How many visitors wait in each lane, by number; also those without a weight where somebody waits.
local function sizes_of(c, t)
    local sizes, counted, lane = {}, 0, 0
    while lane < t.n or counted < c.waiting and lane < LANES do
        sizes[lane] = counted < c.waiting
            and call('ZCOUNT', c.key.waiting, start_of(lane), '(' .. start_of(lane + 1)) or 0
        counted, lane = counted + sizes[lane], lane + 1
    end
    t.n = lane
    return sizes, counted
end

-- Of the next n visitors, how many come from each lane, by number. Moves the turns on.
local function shares_of(t, sizes, n)
    local share, due, stride, last, clock = {}, t.due, t.stride, t.n - 1, 0
    for lane = 0, last do share[lane] = 0 end
    for _ = 1, n do
        local turn, at = nil, 1 / 0
        for lane = 0, last do
            local d = due[lane]
            if d < at and share[lane] < sizes[lane] then turn, at = lane, d end
        end
        clock, share[turn], due[turn] = at, share[turn] + 1, at + stride[turn]
    end
    for lane = 0, last do due[lane] = max(0, due[lane] - clock) end
    return share
end

-- Calls the next n visitors, as the weights say. c: with the field turns.
function lanes.admit(c, weights, n, deadline)
    local t = parse(weights, c.turns)
    if not t then return visitor.admit(c, { 0, n }, deadline) end
    local sizes, counted = sizes_of(c, t)
    local outside = max(0, n - counted) -- at places that are in no lane: changed by hand
    local share, shares, rank = shares_of(t, sizes, n - outside), {}, 0
    for lane = 0, t.n - 1 do
        if share[lane] > 0 then shares[#shares + 1], shares[#shares + 2] = rank, share[lane] end
        rank = rank + sizes[lane] - share[lane]
    end
    if outside > 0 then shares[#shares + 1], shares[#shares + 2] = 0, outside end
    visitor.admit(c, shares, deadline)
    state.set(c, 'turns', t.head .. concat(t.due, ',', 0, t.n - 1))
end
