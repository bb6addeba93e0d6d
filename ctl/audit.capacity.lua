-- SPDX-License-Identifier: Apache-2.0
-- What must hold of a capacity that the site's reports steer. Returns the capacity that counts now; nil when unknown.
local function check_steering(has_state)
    local c = redis.call('HMGET', K_CONFIG, 'capacity', 'capacity_mode', 'capacity_min')
    local names = { 'capacity_now', 'capacity_safe', 'capacity_raised', 'capacity_cut', 'capacity_seen_ms',
        'capacity_why' }
    local values = has_state and redis.call('HMGET', K_STATE, unpack(names)) or {}
    for i, name in ipairs(names) do
        if values[i] and not string.match(values[i], '^%d+$') then
            found(10, 'unreadable:' .. name,
                'the field ' .. name .. ' of the state is no number: ' .. values[i], 'HDEL ' .. K_STATE .. ' ' .. name)
        end
    end
    local most, least = tonumber(c[1] or ''), tonumber(c[3] or '')
    if c[2] == 'auto' and most and least and least > most then
        found(2, 'capacity bounds', format('capacity_min is %.0f, above the capacity of %.0f', least, most),
            'set one of them: `tellerline set QUEUE capacity_min=...`')
    end
    return most and capacity_now(c[2], most, c[3], values[1])
end
