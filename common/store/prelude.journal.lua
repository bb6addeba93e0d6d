-- SPDX-License-Identifier: Apache-2.0
-- The journal of a queue, the stream tl:{q}:journal: what happened, for programs that tell others of it (notifier/). It
-- names visitors, which the events do not. docs/contributors/wire-format.md describes its entries.
--
-- It is kept only while somebody needs it. The notifier makes the stream, with a time to live that it extends, and says
-- in tl:{q}:hooks what it wants, in the field `wanted`: "all:LENGTH", or "some:LENGTH" without admissions. A step
-- writes nothing where there is no stream.
--
-- Each entry has a number `n`: a reader knows how many were trimmed before it read them. `journaled` beside `wanted` is
-- the last one. It begins with the time at which the hooks did, so none is used twice. The id of an entry is "EVENT-N":
-- the number of the last event with that step, and this number.

-- What the journal is to hold, if it is to hold this; else nil. An unusable journal stops no one: the notifier looks at
-- it, and complains.
local function journal_wanted(what)
    local wanted = redis.pcall('HGET', key_of('hooks'), 'wanted')
    return type(wanted) == 'string' and string.find(wanted, what == 'admitted' and '^all:' or '^%a+:') and wanted or nil
end

-- Adds an entry, after the commit of a step. event: the number of the last event.
local function journal_add(wanted, event, now, what, data)
    local length = string.match(wanted, ':(%d+)$') or '1'
    local n = redis.pcall('HINCRBY', key_of('hooks'), 'journaled', 1)
    if type(n) ~= 'number' then -- what was there is none; the step is done, and must not fail
        n = now
        redis.call('HSET', key_of('hooks'), 'journaled', int(n))
    end
    redis.pcall('XADD', key_of('journal'), 'NOMKSTREAM', 'MAXLEN', '~', length, int(event) .. '-' .. int(n),
        'n', int(n), 'at', int(now), 'what', what, 'data', data)
end
