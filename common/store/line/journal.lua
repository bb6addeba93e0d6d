-- SPDX-License-Identifier: Apache-2.0
-- The journal of a queue, tl:{q}:journal: what happened, for the notifier. It names visitors, which the events do not.
-- docs/contributors/wire-format.md describes its entries, and when it is kept. A step writes nothing where there is no
-- stream.

local int = text.int

-- What the journal is to hold, if it is to hold this; else nil. tl:{q}:webhooks says it: "all:LENGTH", or "some:LENGTH"
-- without admissions. An unusable journal stops no one: the notifier looks at it, and complains.
function journal.wanted(c, what)
    local wanted = pcall_redis('HGET', c.key.webhooks, 'wanted')
    return type(wanted) == 'string' and find(wanted, what == 'admitted' and '^all:' or '^%a+:') and wanted or nil
end

-- Adds an entry, after the commit of a step. Its number n begins with the time at which the webhooks did, so none is
-- used twice.
function journal.add(c, wanted, what, data)
    local length = match(wanted, ':(%d+)$') or '1'
    local n = pcall_redis('HINCRBY', c.key.webhooks, 'journaled', 1)
    if type(n) ~= 'number' then -- what was there is none; the step is done, and must not fail
        n = c.now
        call('HSET', c.key.webhooks, 'journaled', int(n))
    end
    pcall_redis('XADD', c.key.journal, 'NOMKSTREAM', 'MAXLEN', '~', length, int(c.event) .. '-' .. int(n), 'n', int(n),
        'at', int(c.now), 'what', what, 'data', data)
end
