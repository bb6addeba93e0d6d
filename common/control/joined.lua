-- SPDX-License-Identifier: Apache-2.0
-- joined: what tells when places got their numbers: the points of the history that know their seqs. Changes nothing.
-- Flags: no-writes
-- Parts: prelude.history
--
-- ARGV     1 a seq   2 a later one, or the same   3 how many points at most
-- Returns  { now ms, whether the first is known: 1, or 0: it was given before the history began, time, seq, ... }
--            points in turn, from the first that knows the first seq to the first that knows the last; none: no point
--            knows it yet
-- Errors   NOQUEUE  the queue does not exist
--
-- Work is bounded: two searches, and up to twice as many points.
local first, last, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call('EXISTS', K_STATE) == 0 then
    return no_queue()
end
local now = now_ms()
local history, at = history_with(first, now, both_histories())
local known = history ~= nil
if not history then -- those behind it may be known
    history = history_of('history', 10000)
    at = history.oldest and history.oldest.at or now
end
local list, from, portion = { int(now), known and 1 or 0 }, int(at), 2
repeat
    local entries = redis.call('XRANGE', history.key, from, '+', 'COUNT', portion)
    local seq = last
    for _, entry in ipairs(entries) do
        local point = point_of(entry)
        from, seq = '(' .. entry[1], point.seq
        list[#list + 1], list[#list + 2] = int(point.at), int(seq)
        if seq >= last then
            break
        end
    end
    portion = math.min(2 * portion, most)
until seq >= last or #list >= 2 * most
return list
