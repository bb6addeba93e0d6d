-- SPDX-License-Identifier: Apache-2.0
-- The turns of lanes with weights (common/store/line/lanes.lua): is the record possible?

local BEGIN_TURNS_AGAIN = 'set it to nothing: HSET ' .. K_STATE .. " turns ''; all lanes are due then"

-- Are there so many numbers as weights at least, and no turn further away than its lane's stride?
local function are_turns(weights, period, dues)
    local strides, n = {}, 0
    for weight in string.gmatch(weights, '%d+') do
        n = n + 1
        strides[n] = period / math.max(1, tonumber(weight))
    end
    local lane = 0
    for due in string.gmatch(dues, '%d+') do
        lane = lane + 1
        if tonumber(due) > (strides[lane] or period) then
            return false
        end
    end
    return lane >= n
end

local function check_turns()
    local text = redis.call('HGET', K_STATE, 'turns')
    if not text or text == '' then
        return
    end
    local weights, period, dues = string.match(text, '^([%d,]+):(%d+):([%d,]+)$')
    if not weights then
        found(4, 'turns', 'the turns of the lanes cannot be read: ' .. text, BEGIN_TURNS_AGAIN)
    elseif not are_turns(weights, tonumber(period), dues) then
        found(4, 'turns bounds', 'the turns of the lanes are out of their bounds: ' .. text, BEGIN_TURNS_AGAIN)
    end
end
