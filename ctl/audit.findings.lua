-- SPDX-License-Identifier: Apache-2.0
-- What the scripts of the audit find: { rule, kind, sentence, what to do }. The kind is the same each time that the
-- same thing is found. Rules: ctl/audit.h. At most FINDINGS_MOST are listed; the rest are counted.

local FINDINGS_MOST = 100
local findings, n_findings = {}, 0

local function found(rule, kind, sentence, advice)
    n_findings = n_findings + 1
    if n_findings <= FINDINGS_MOST then
        findings[n_findings] = { rule, kind, sentence, advice }
    end
end

local TAKE_OUT = 'no program can use it: remove the visitor from the set, correct the counter, and let them join again'
local RESTORE_DATA = 'stop the programs and restore the keys of the queue from a backup, or give the queue up'
local CORRECT = 'pause the queue, correct the counter with HSET, and report how it came to this'

-- Text of a place for an operator.
local function place_text(place)
    return 'number ' .. int(place % LANE) .. ' of lane ' .. int(math.floor(place / LANE))
end

-- How many lanes the queue has; nil when its settings do not say.
local function count_lanes()
    local lanes = redis.call('HGET', K_CONFIG, 'lanes')
    return lanes and lanes ~= '' and select(2, string.gsub(lanes, '[^,]+', ''))
end

-- A place that a score or a session names: an integer with a number that was given out, in a lane of the queue. seq and
-- lanes may be nil: not known. Returns true when it can be compared with others.
local function check_place(what, visitor, place, seq, lanes)
    if not place or place ~= math.floor(place) or place < 0 or place >= 32 * LANE then
        found(6, 'unreadable:' .. visitor,
            format('%s "%s" has a place that cannot be read: %s', what, visitor, tostring(place)), TAKE_OUT)
        return false
    end
    if lanes and place >= lanes * LANE then
        found(6, 'lane:' .. visitor,
            format('%s "%s" has %s, but there are %d lanes', what, visitor, place_text(place), lanes),
            'give the queue as many lanes again (`tellerline set QUEUE lanes=...`)')
    end
    local number = place % LANE
    if number == 0 or (seq and number > seq) then
        found(6, 'beyond:' .. visitor,
            format('%s "%s" has %s, but numbers were given out only up to %s', what, visitor, place_text(place),
                seq and int(seq) or '?'),
            'the place will be given to a second visitor: pause the queue and set `seq` of its state above all places')
    end
    return true
end

local function share_place(visitor, other, place)
    found(6, 'shared:' .. int(place), format('visitors "%s" and "%s" share %s', visitor, other, place_text(place)),
        'both have a ticket for it: remove the one who did not come first, and let them join again')
end
