-- SPDX-License-Identifier: Apache-2.0
-- audit_waiting: checks a page of the waiting set, in the order of the line, at one moment. Changes nothing.
--
-- args     1 the score from which on ('-inf' at the start)   2 how many visitors at most: this bounds the work
-- returns  { the score from which on the next page begins, or '' after the last, findings (line/audit.lua), how many }
--          A page begins with the last place of the one before it, so that two visitors at one place meet on one.

entry('audit_waiting', { 'no-writes' }, function(keys, args)
    local c, most, last_id, last = audit.begin(keys), args[2] + 0, nil, nil
    local rows = call('ZRANGE', c.key.waiting, args[1], '+inf', 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
    local seq, n_lanes = tonumber(call('HGET', c.key.state, 'seq')), audit.lanes(c)
    for i = 1, #rows, 2 do
        local id, place = rows[i], tonumber(rows[i + 1])
        if audit.check_place(c, 'waiting visitor', id, place, seq, n_lanes) and place == last then
            audit.share_place(c, id, last_id, place)
        end
        last_id, last = id, place
    end
    local following = ''
    if #rows == 2 * most and last < 1 / 0 then
        following = format('%.17g', last)
        if tonumber(rows[2]) == last then following = '(' .. following end -- a page of one place: go on behind it
    end
    return { following, c.findings, c.n_findings }
end)
