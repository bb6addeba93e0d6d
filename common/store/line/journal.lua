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

local int = text.int

-- What the journal is to hold, if it is to hold this; else nil. An unusable journal stops no one: the notifier looks at
-- it, and complains.
function journal.wanted(c, what)
    local wanted = pcall_redis('HGET', c.key.hooks, 'wanted')
    return type(wanted) == 'string' and find(wanted, what == 'admitted' and '^all:' or '^%a+:') and wanted or nil
end

-- Adds an entry, after the commit of a step.
function journal.add(c, wanted, what, data)
    local length = match(wanted, ':(%d+)$') or '1'
    local n = pcall_redis('HINCRBY', c.key.hooks, 'journaled', 1)
    if type(n) ~= 'number' then -- what was there is none; the step is done, and must not fail
        n = c.now
        call('HSET', c.key.hooks, 'journaled', int(n))
    end
    pcall_redis('XADD', c.key.journal, 'NOMKSTREAM', 'MAXLEN', '~', length, int(c.event) .. '-' .. int(n), 'n', int(n),
        'at', int(c.now), 'what', what, 'data', data)
end
