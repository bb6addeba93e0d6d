-- SPDX-License-Identifier: Apache-2.0
-- audit_serials: checks places that were handed over to another device (common/store/line/visitor.lua), at one moment:
-- each must be held, by the visitor whom the record names. Changes nothing.
-- Flags: no-writes
-- Parts: prelude.records audit.findings
--
-- ARGV     seqs: one page of tl:{q}:serials, which bounds the work
-- Returns  { findings (audit.findings.lua), how many }
local K_SERIALS = key_of('serials')
local records = redis.call('HMGET', K_SERIALS, unpack(ARGV))

local named, visitors = {}, {} -- by index of the seq, and all of them
for i, seq in ipairs(ARGV) do
    named[i] = string.match(seq, '^[1-9]%d*$') and string.match(records[i] or '', '^[1-9]%d*:%d+:(.+)$')
    visitors[i] = named[i] or ''
end
local waiting = redis.call('ZMSCORE', K_WAITING, unpack(visitors))
local sessions = redis.call('HMGET', K_SESSIONS, unpack(visitors))

for i, seq in ipairs(ARGV) do
    local advice = format('HDEL %s %s; tickets of before the hand-over count again', K_SERIALS, seq)
    local place = tonumber(waiting[i] or nil) or parse_session(sessions[i])
    if not records[i] then
        -- the place has ended since the page was read
    elseif not named[i] then
        found(6, 'serial:' .. seq, format('the serial of number %s cannot be read: %s', seq, records[i]), advice)
    elseif not place or place % LANE ~= tonumber(seq) then
        found(6, 'serial:' .. seq, format('number %s has a serial, but visitor "%s" does not hold that place', seq,
            named[i]), advice)
    end
end
return { findings, n_findings }
