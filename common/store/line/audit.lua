-- SPDX-License-Identifier: Apache-2.0
-- What the functions of the audit (ctl/audit/*.lua) find: { rule, kind, sentence, what to do }. The kind is the same
-- each time that the same thing is found. Rules: ctl/audit/audit.h. Changes nothing.

local int, LANE = text.int, defs.LANE
local FINDINGS_MOST = 100 -- listed; the rest are counted
local TAKE_OUT = 'no program can use it: remove the visitor from the set, correct the counter, and let them join again'

function audit.begin(keys)
    local c = state.begin(keys)
    c.findings, c.n_findings = {}, 0
    return c
end

-- sentence: a format for what follows.
function audit.found(c, rule, kind, advice, sentence, ...)
    c.n_findings = c.n_findings + 1
    if c.n_findings <= FINDINGS_MOST then c.findings[c.n_findings] = { rule, kind, format(sentence, ...), advice } end
end

-- The text of a record in the state; nil where there is none.
function audit.record(c, field)
    local t = call('HGET', c.key.state, field)
    return t and t ~= '' and t or nil
end

-- The record cannot be right. after: what follows when it is set to nothing.
function audit.found_record(c, rule, field, kind, after, ...)
    audit.found(c, rule, kind, format("set it to nothing: HSET %s %s ''; %s", c.key.state, field, after), ...)
end

---- places

-- Text of a place for an operator.
function audit.place(place) return 'number ' .. int(place % LANE) .. ' of lane ' .. int(floor(place / LANE)) end

-- A place that a score or a session names: an integer with a number that was given out, in a lane of the queue, as far
-- as the state and the settings say. Returns true when it can be compared with others.
function audit.check_place(c, what, id, place)
    if c.n_lanes == nil then c.n_lanes, c.seq = #settings.lanes(c), tonumber(call('HGET', c.key.state, 'seq')) end
    if not place or place ~= floor(place) or place < 0 or place >= 32 * LANE then
        audit.found(c, 6, 'unreadable:' .. id, TAKE_OUT, '%s "%s" has a place that cannot be read: %s', what, id,
            tostring(place))
        return false
    end
    if c.n_lanes > 0 and place >= c.n_lanes * LANE then
        audit.found(c, 6, 'lane:' .. id, 'give the queue as many lanes again (`tellerline queue set QUEUE lanes=...`)',
            '%s "%s" has %s, but there are %d lanes', what, id, audit.place(place), c.n_lanes)
    end
    local number = place % LANE
    if number == 0 or c.seq and number > c.seq then
        audit.found(c, 6, 'beyond:' .. id,
            'the place will be given to a second visitor: pause the queue and set `seq` of its state above all places',
            '%s "%s" has %s, but numbers were given out only up to %s', what, id, audit.place(place),
            c.seq and int(c.seq) or '?')
    end
    return true
end

function audit.share_place(c, id, other, place)
    audit.found(c, 6, 'shared:' .. int(place),
        'both have a ticket for it: remove the one who did not come first, and let them join again',
        'visitors "%s" and "%s" share %s', id, other, audit.place(place))
end

---- events

-- Of the last `most` entries of the events, those since the last change of the settings, and not of another generation,
-- newest first: { written at ms, events }.
function audit.entries(c, most)
    local list = {}
    for _, row in ipairs(call('XREVRANGE', c.key.events, '+', '-', 'COUNT', most)) do
        local found = state.entry(row[2])
        if not found or found[3] ~= c.generation then return list end
        for _, event in ipairs(found[6]) do
            if event[1] == defs.EVENT.config then return list end
        end
        list[#list + 1] = { ms = text.id_ms(row[1]), events = found[6] }
    end
    return list
end
