-- SPDX-License-Identifier: Apache-2.0
-- idempotent: the calls of a queue that were made with an Idempotency-Key, and their answers.
-- args     1 'claim', 'keep' or 'release'   2 the key, hashed   3 claim, keep: what identifies the request, hashed
--          keep: 4 the answer
-- returns  { one of CLAIM, of `kept` the answer }; of keep and release `new`
-- The answer is empty while the call is under way. Both keys have the same members, KEEP_MAX at most, and expire.

local CLAIM = defs.CLAIM
local KEEP_MS, KEEP_MAX = 86400000, 1000
local BUSY_MS = 60000 -- longer than any call: its caller is gone

local function forget(answers, times, list)
    if #list > 0 then
        call('HDEL', answers, unpack(list))
        call('ZREM', times, unpack(list))
    end
end

entry('idempotent', { 'allow-oom' }, function(keys, args)
    local c, what, key, request = state.begin(keys), args[1], args[2], args[3]
    local answers, times, now = c.key.idempotent, c.key.idempotent_at, text.int(c.now)
    call('HLEN', answers) -- fail when they are of another type, before anything is written
    call('ZCARD', times)
    if what == 'release' then
        forget(answers, times, { key })
        return { CLAIM.new }
    elseif what == 'claim' then
        forget(answers, times, call('ZRANGE', times, '-inf', text.int(c.now - KEEP_MS), 'BYSCORE', 'LIMIT', 0, 100))
        local found = call('HGET', answers, key)
        local at, before, answer = match(found or '', '^(%d+):(%x*):(.*)$')
        if found and before ~= request then return { CLAIM.other } end
        if found and answer ~= '' then return { CLAIM.kept, answer } end
        if found and c.now - at < BUSY_MS then return { CLAIM.busy } end
        local n = call('ZCARD', times)
        if n >= KEEP_MAX then forget(answers, times, call('ZRANGE', times, 0, n - KEEP_MAX)) end
    end
    call('HSET', answers, key, now .. ':' .. request .. ':' .. (what == 'keep' and args[4] or ''))
    call('ZADD', times, now, key)
    call('PEXPIRE', answers, KEEP_MS)
    call('PEXPIRE', times, KEEP_MS)
    return { CLAIM.new }
end)
