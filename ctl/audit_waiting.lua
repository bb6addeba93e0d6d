-- SPDX-License-Identifier: Apache-2.0
-- audit_waiting: checks a page of the waiting set, in the order of the line, at one moment. Changes nothing.
-- Flags: no-writes
-- Parts: audit.findings
--
-- ARGV     1 the score from which on ('-inf' at the start)   2 how many visitors at most: this bounds the work
-- Returns  { the score from which on the next page begins, or '' after the last, findings (audit.findings.lua), how
--          many }
--          A page begins with the last place of the one before it, so that two visitors at one place meet on one.
local from, most = ARGV[1], tonumber(ARGV[2])
local rows = redis.call('ZRANGE', K_WAITING, from, '+inf', 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
local seq, lanes = tonumber(redis.call('HGET', K_STATE, 'seq') or nil), count_lanes()

local last_visitor, last
for i = 1, #rows, 2 do
    local visitor, place = rows[i], tonumber(rows[i + 1])
    if check_place('waiting visitor', visitor, place, seq, lanes) and place == last then
        share_place(visitor, last_visitor, place)
    end
    last_visitor, last = visitor, place
end
local following = ''
if #rows == 2 * most and last < math.huge then
    -- So many at one place that a page is full of them: go on behind it.
    local exact = string.format('%.17g', last)
    following = tonumber(rows[2]) == last and '(' .. exact or exact
end
return { following, findings, n_findings }
