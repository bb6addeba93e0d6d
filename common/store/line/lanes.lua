-- SPDX-License-Identifier: Apache-2.0
-- Lanes with weights: whose turn it is. As in start-time fair queueing (P. Goyal, H. Vin, H. Cheng, 1996); field
-- `turns` of the state, in docs/contributors/wire-format.md. What follows depends on the visitors admitted so far and
-- on those who wait, not on the steps in which it was done. Workers go on from it by the events (common/line/turns.h),
-- so both must count alike.

local LANES, LANE = defs.LANES_MAX, defs.LANE
local starts = {} -- where a lane begins, lane * LANE, as text: made when first needed

-- What follows from the weights alone: the period, and the stride of each lane; period nil where there are none. The
-- last answer is kept.
local last = { weights = '' }

local function strides_of(weights)
    if last.weights == weights then return last end
    local stride, period = {}, find(weights, '%d') and 1 or nil
    for w in gmatch(weights, '%d+') do
        local weight = max(1, w + 0)
        stride[#stride + 1] = weight
        local divisor, rest = period or 1, weight -- the greatest common one
        while rest > 0 do divisor, rest = rest, divisor % rest end
        period = period and period / divisor * weight
        if period and period > defs.PERIOD_MAX then period = nil end -- damaged by hand: readers, too, take it for none
    end
    for lane = 1, #stride do stride[lane] = (period or 0) / stride[lane] end
    last = { weights = weights, period = period, stride = stride, n = #stride }
    return last
end

-- The turns by the setting and the field; nil without weights: then a lane is served while those before it are empty.
-- Under other weights than those of the field, all turns are due now; none is due later than a stride from now.
local function parse(weights, field)
    local found, due, lane = strides_of(weights), {}, 0
    local period, stride = found.period, found.stride
    if not period then return nil end
    if field and sub(field, 1, #weights) == weights then
        for t in gmatch(match(field, '^:%d+:([%d,]+)$', #weights + 1) or '', '%d+') do
            if lane == LANES then break end -- damaged by hand: there are no more
            lane = lane + 1
            stride[lane] = stride[lane] or period -- also of a lane that the queue no longer has
            due[lane] = min(t + 0, stride[lane])
        end
    end
    for rest = lane + 1, found.n do due[rest] = 0 end
    return { due = due, stride = stride, period = period }
end

-- How many visitors wait in each lane. A lane without a weight, which the queue no longer has, gets 1 if a visitor
-- waits.
local function sizes_of(c, t)
    local sizes, counted, lane, waiting = {}, 0, 0, c.waiting
    for i = #starts + 1, LANES + 1 do starts[i] = i > LANES and '+inf' or text.int((i - 1) * LANE) end
    while lane < #t.due or counted < waiting and lane < LANES do
        local size = counted < waiting and call('ZCOUNT', c.key.waiting, starts[lane + 1], '(' .. starts[lane + 2]) or 0
        lane, counted = lane + 1, counted + size
        sizes[lane], t.due[lane], t.stride[lane] = size, t.due[lane] or 0, t.stride[lane] or t.period
    end
    return sizes, counted
end

-- Of the next n visitors, how many come from each lane. Moves the turns on.
local function shares_of(t, sizes, n)
    local share, due, stride, n_lanes, clock = {}, t.due, t.stride, #sizes, 0
    for lane = 1, n_lanes do share[lane] = 0 end
    for _ = 1, n do
        local turn, at = nil, 1 / 0
        for lane = 1, n_lanes do
            local d = due[lane]
            if d < at and share[lane] < sizes[lane] then turn, at = lane, d end
        end
        clock, share[turn], due[turn] = at, share[turn] + 1, at + stride[turn]
    end
    for lane = 1, n_lanes do due[lane] = max(0, due[lane] - clock) end
    return share
end

-- Calls the next n visitors, as the weights say. c: with the field turns, where there are weights.
function lanes.admit(c, weights, n, deadline)
    local t = weights ~= '' and parse(weights, c.turns)
    if not t then return visitor.admit(c, { 0, n }, n, deadline) end
    local sizes, counted = sizes_of(c, t)
    local outside = max(0, n - counted) -- at places that are in no lane: changed by hand
    local share, shares, rank = shares_of(t, sizes, n - outside), {}, 0
    for lane = 1, #share do
        if share[lane] > 0 then shares[#shares + 1], shares[#shares + 2] = rank, share[lane] end
        rank = rank + sizes[lane] - share[lane]
    end
    if outside > 0 then shares[#shares + 1], shares[#shares + 2] = 0, outside end
    visitor.admit(c, shares, n, deadline)
    state.set(c, 'turns', weights .. ':' .. format('%d', t.period) .. ':' .. concat(t.due, ','))
end

-- Of an audit: are there at least as many turns as weights, and none further away than its lane's stride?
function lanes.check(c)
    local t, after = audit.record(c, 'turns'), 'all lanes are due then'
    if not t then return end
    local weights, period, dues = match(t, '^([%d,]+):(%d+):([%d,]+)$')
    if not weights then
        return audit.found_record(c, 4, 'turns', 'turns', after, 'the turns of the lanes cannot be read: %s', t)
    end
    local found, lane, fits = strides_of(weights), 0, true
    for due in gmatch(dues, '%d+') do
        lane = lane + 1
        fits = fits and due + 0 <= (found.stride[lane] or period + 0)
    end
    if not fits or lane < found.n then
        audit.found_record(c, 4, 'turns', 'turns bounds', after, 'the turns of the lanes are out of their bounds: %s',
            t)
    end
end
