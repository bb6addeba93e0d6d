-- SPDX-License-Identifier: Apache-2.0
-- HAND_OVER: a place goes to another device of its visitor. Each hand-over gives the place a higher serial, and tickets
-- with a lower one do not count any more.
--
-- tl:{q}:serials: seq -> "serial:device:visitor". Only a place that waits is handed over, so the pass of the session to
-- come is given to the new device only. commit removes the entry with the place.

local hand_over

local function serials_key()
    return key_of('serials')
end

-- Makes this function: few calls need it.
local load_handover = handovers and function()

-- Before the draw a place has no number that lasts.
local function is_undrawn()
    return DRAW.opens_at and not (DRAW.present and DRAW.present.phase == DRAW.done)
end

-- Compares and sets: of all codes made for one serial, the first that comes wins. The same device may repeat its
-- command, because the first answer may have been lost. device 0: a ticket with this serial was seen, so the hand-over
-- was made, and the store has lost it.
hand_over = function(index, at)
    local visitor, place, serial, device = ARGV[at], tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]),
        tonumber(ARGV[at + 3])
    local session, waits = read_session(visitor), is_waiting(visitor, place)
    local held = waits or is_same(session, place) and session
    if not held or is_undrawn() then
        add_exception(exceptions, index, OUTCOME.gone, place, 0)
        return
    end
    local seq = int(held % LANE)
    local known, by = string.match(redis.call('HGET', serials_key(), seq) or '', '^(%d+):(%d+):')
    known = tonumber(known) or 0
    if device == 0 and known >= serial or known == serial and tonumber(by) == device then
        return -- done before
    elseif device > 0 and (not waits or known >= serial) then
        add_exception(exceptions, index, waits and OUTCOME.waiting or OUTCOME.active, held, 0)
        return
    end
    redis.call('HSET', serials_key(), seq, int(serial) .. ':' .. int(device) .. ':' .. visitor)
    renewed[#renewed + 1] = { EVENT.handed, held, serial }
end

end
