-- SPDX-License-Identifier: Apache-2.0
-- joined: what tells when places got their numbers: the points of the history that know their seqs. Changes nothing.
-- args     1 a seq   2 a later one, or the same   3 how many points at most
-- returns  { now ms, whether the first is known: 1, or 0: it was given before the history began, time, seq, ... }
--            points in turn, from the first that knows the first seq to the first that knows the last; none: no point
--            knows it yet. Work is bounded: two searches, and up to twice as many points

local int = text.int

entry('joined', { 'no-writes' }, function(keys, args)
    local c, first, last, most = state.find(keys), args[1] + 0, args[2] + 0, args[3] + 0
    local both = history.both(c)
    local at, known = history.joined_at(both, first, c.now)
    local from = known or both[1] -- those behind it may be known
    if not known then at = from.oldest and from.oldest.at or c.now end
    local list, after, portion, seq = { int(c.now), known and 1 or 0 }, int(at), 2, nil
    repeat
        seq = last
        for _, one in ipairs(call('XRANGE', from.key, after, '+', 'COUNT', portion)) do
            local point = history.point(one)
            after, seq = '(' .. one[1], point.seq
            list[#list + 1], list[#list + 2] = int(point.at), int(seq)
            if seq >= last then break end
        end
        portion = min(2 * portion, most)
    until seq >= last or #list >= 2 * most
    return list
end)
