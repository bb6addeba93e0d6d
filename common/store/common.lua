-- SPDX-License-Identifier: Apache-2.0
-- Steps on keys of no queue: these are in another slot than any queue's. keys: those that are named.

-- list_queue: adds a queue, by its name, to tl:queues, keys[1]. Returns 1 added, 0 was listed.
entry('list_queue', { 'allow-oom' }, function(keys, args) return call('SADD', keys[1], args[1]) end)

-- durable: a write of the caller's connection, for WAIT and WAITAOF, which wait for such a write and thereby for all
-- before it. keys[1]: a key of the caller's own, gone after args[1] ms.
entry('durable', { 'allow-oom' }, function(keys, args)
    call('SET', keys[1], '', 'PX', args[1])
    return 1
end)

local UNUSED_MS = 86400000

-- libraries: a program says which library of functions it uses; and which are no longer used by any.
-- keys     1 tl:libraries: library -> when a program last said that it uses it, ms
-- args     1 the library   2... all libraries of Tellerline in the store, to be judged; none: only notes the first
-- returns  those of the given that no program has named for a day. One that was never named counts as named now
entry('libraries', { 'allow-oom' }, function(keys, args)
    local now, unused = floor(state.now_us() / 1000), {}
    call('HSET', keys[1], args[1], text.int(now))
    for i = 2, #args do
        local library = args[i]
        local named = tonumber(call('HGET', keys[1], library))
        if not named or named > now then
            call('HSET', keys[1], library, text.int(now))
        elseif now - named > UNUSED_MS then
            unused[#unused + 1] = library
            call('HDEL', keys[1], library)
        end
    end
    return unused
end)
