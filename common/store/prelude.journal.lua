-- The journal of a queue, the stream tl:{q}:journal: what happened, for programs that tell others of it (notifier/). It
-- names visitors, which the events do not. docs/contributors/wire-format.md describes its entries.
--
-- It is kept only while somebody needs it. The notifier makes the stream, with a time to live that it extends, and says
-- in the field `journal` of the state what it wants, as "all:LENGTH", or "some:LENGTH" without admissions. A step
-- writes nothing where there is no stream.
--
-- The id of an entry is "EVENT-I": the number of the event of its step, which is never used twice, and of the entry in
-- that step, from 0. `journaled` in the state counts the entries, and each has its number `n`: a reader knows how many
-- were trimmed before it read them.

local function journal_wants(journal, what)
    return journal and string.find(journal, what == 'admitted' and '^all:' or '^%a+:') ~= nil
end

-- Adds the i-th entry of a step, after its commit. journal: the field of the state, which wants it. An unusable journal
-- stops no one: the notifier looks at it, and complains.
local function journal_add(state, journal, i, now, what, data)
    local length = string.match(journal, ':(%d+)$') or '1'
    local n = redis.pcall('HINCRBY', K_STATE, 'journaled', 1)
    if type(n) ~= 'number' then -- what was there is none; the step is done, and must not fail
        n = 1
        redis.call('HSET', K_STATE, 'journaled', n)
    end
    redis.pcall('XADD', key_of('journal'), 'NOMKSTREAM', 'MAXLEN', '~', length, int(state.event + 1) .. '-' .. int(i),
        'n', int(n), 'at', int(now), 'what', what, 'data', data)
end
