-- SPDX-License-Identifier: Apache-2.0
-- The capacity that counts now. Where `capacity_mode` is auto, it is what the site's reports have made of it
-- (admitter/adapt.lua), within the bounds of the settings: so a change of these takes effect at the next step.
-- As tl_queue_capacity in C.
local function capacity_now(mode, most, least, now)
    if mode ~= 'auto' then
        return most
    end
    least = math.min(tonumber(least or '') or most, most)
    return math.max(least, math.min(most, tonumber(now or '') or least))
end
