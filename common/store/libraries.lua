-- SPDX-License-Identifier: Apache-2.0
-- libraries: a program says which library of functions it uses; and which are in nobody's use any more.
-- KEYS     1 tl:libraries: library -> when a program last said that it uses it, ms
-- ARGV     1 the library   2... all libraries of Tellerline in the store, to be judged; none: only notes the first
-- Returns  those of the given that no program has named for a day. One that was never named counts as named now.
local UNUSED_MS = 86400000

entry('libraries', { 'allow-oom' }, function(keys, args)
    local t = call('TIME')
    local now, unused = t[1] * 1000 + floor(t[2] / 1000), {}
    call('HSET', keys[1], args[1], format('%d', now))
    if #args == 1 then
        return unused
    end
    local named, found = {}, call('HGETALL', keys[1])
    for i = 1, #found, 2 do
        named[found[i]] = tonumber(found[i + 1])
    end
    for i = 2, #args do
        local library = args[i]
        if not named[library] or named[library] > now then
            call('HSET', keys[1], library, format('%d', now))
        elseif now - named[library] > UNUSED_MS then
            unused[#unused + 1] = library
            call('HDEL', keys[1], library)
        end
    end
    return unused
end)
