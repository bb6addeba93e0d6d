-- SPDX-License-Identifier: Apache-2.0
-- Invites: who has spent which, the only writer of tl:{q}:spent:<invite>: the visitor who spent it; and the same at ' '
-- and its digest.

local OUTCOME = defs.OUTCOME
local CLOCK_MS = 5000 -- TL_TICKET_CLOCK_S

local function holds_place(c, id)
    return call('ZSCORE', c.key.waiting, id) or call('ZSCORE', c.key.active, id)
end

-- Of a join that was made at this time, or later, and comes late: has the visitor's place ended since? Then it was
-- placed through another worker meanwhile, and a second place would be nobody's. score: in tl:{q}:ended, or false.
function invites.is_late(c, id, score, since_ms)
    return score and tonumber(score) >= since_ms * 8 and not holds_place(c, id)
end

-- Spends an invite for a JOIN. Returns an OUTCOME if that is not possible, or the line is full: then the JOIN gets no
-- place. " seconds digest" is a join repeated with a pending ticket, given at this Unix time; an id of an invite has no
-- space. The digest is that of the invite or the solution which opened the join, or empty.
function invites.spend(c, invite, until_ms, id)
    if c.waiting >= c.limit and not holds_place(c, id) then return OUTCOME.full end
    local seconds, digest = match(invite, '^ (%d+) ?(%x*)$')
    local names
    if seconds then
        -- What ended shortly before the ticket was given may have been an earlier place, but then the visitor holds the
        -- one that was joined, because a ticket is given after its JOIN was sent.
        if invites.is_late(c, id, call('ZSCORE', c.key.ended, id), seconds * 1000 - CLOCK_MS) then
            return OUTCOME.spent
        end
        names = digest ~= '' and { ' ' .. digest } or {}
    else
        names = { invite, ' ' .. sub(redis.sha1hex(invite), 1, 16) }
    end
    -- The visitor who spent them and still holds a place may do so again: the first answer may have been lost.
    local is_new = true
    for i = 1, #names do
        local key = c.key['spent:'] .. names[i]
        if not call('SET', key, id, 'NX', 'PX', text.int(max(1000, until_ms - c.now))) then
            is_new = false
            if pcall_redis('GET', key) ~= id then return OUTCOME.spent end -- or a key of another type
        end
    end
    return not (is_new or holds_place(c, id)) and OUTCOME.spent or nil
end

-- Of a part of the keys, as SCAN finds them: those that this visitor spent no longer name the visitor. Returns how
-- many, and the next cursor.
function invites.forget(c, id, cursor, count)
    -- The name of the queue has no character that a pattern would read in another way; a prefix might, and finds more.
    local found, erased = call('SCAN', cursor, 'MATCH', c.key['spent:'] .. '*', 'COUNT', count), 0
    for _, key in ipairs(found[2]) do
        if pcall_redis('GET', key) == id then -- or a key of another type
            call('SET', key, '', 'KEEPTTL')
            erased = erased + 1
        end
    end
    return erased, found[1]
end
