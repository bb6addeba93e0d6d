-- SPDX-License-Identifier: Apache-2.0
-- audit_serials: checks places that were handed over to another device (visitor.hand_over), at one moment: each must be
-- held, by the visitor whom the record names. Changes nothing.
--
-- args     seqs: one page of tl:{q}:serials, which bounds the work
-- returns  { findings (line/audit.lua), how many }

entry('audit_serials', { 'no-writes' }, function(keys, args)
    local c, named, ids = audit.begin(keys), {}, {} -- by index of the seq
    local records = call('HMGET', c.key.serials, unpack(args))
    for i, seq in ipairs(args) do
        named[i] = match(seq, '^[1-9]%d*$') and match(records[i] or '', '^[1-9]%d*:%d+:(.+)$')
        ids[i] = named[i] or ''
    end
    local waiting = call('ZMSCORE', c.key.waiting, unpack(ids))
    local sessions = call('HMGET', c.key.sessions, unpack(ids))
    for i, seq in ipairs(args) do
        local place = tonumber(waiting[i] or match(sessions[i] or '', '^%d+'))
        local wrong = not named[i] and format('the serial of number %s cannot be read: %s', seq, tostring(records[i]))
            or not (place and place % defs.LANE == tonumber(seq))
            and format('number %s has a serial, but visitor "%s" does not hold that place', seq, named[i])
        if records[i] and wrong then -- else the place has ended since the page was read
            audit.found(c, 6, 'serial:' .. seq, wrong,
                format('HDEL %s %s; tickets of before the hand-over count again', c.key.serials, seq))
        end
    end
    return { c.findings, c.n_findings }
end)
