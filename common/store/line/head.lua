-- SPDX-License-Identifier: Apache-2.0
#!lua name=tellerline_@HASH@
-- The first lines of the library (cmake/library.cmake).

-- While a library loads, Lua's own functions are not there (Redis 7.0: no string, math, table, pairs, redis.call). They
-- are bound at its first call, to local variables, which are found faster. At file level stand tables, functions and
-- constants; never state, which would outlive a FLUSHALL.
local function lua_functions()
    return redis.call, redis.pcall, string.format, string.match, string.gmatch, string.find, string.sub, string.rep,
        math.floor, math.ceil, math.min, math.max, table.concat, table.sort, cmsgpack.pack, cmsgpack.unpack,
        struct.pack, unpack, ipairs, pairs, next, type, tonumber, error
end
local call, pcall_redis, format, match, gmatch, find, sub, rep, floor, ceil, min, max, concat, sort, pack,
    unpack_message, pack_bytes, unpack, ipairs, pairs, next, type, tonumber, error

-- Registers a function that programs call with FCALL. Its name, in "generated/library.h", carries the hash of the
-- library, because names are global to the server. run(keys, args): keys[1] is tl:{q}:state, unless the function says
-- otherwise. It fails with NOQUEUE where that queue does not exist, unless it says what it does then. In what functions
-- say of their args, `keep` is about how many events to keep, and `who` the three of changes.actor, the last ones.
local function entry(name, flags, run)
    redis.register_function({ function_name = 'tl_@HASH@_' .. name, flags = flags, callback = function(keys, args)
        if not call then
            call, pcall_redis, format, match, gmatch, find, sub, rep, floor, ceil, min, max, concat, sort, pack,
                unpack_message, pack_bytes, unpack, ipairs, pairs, next, type, tonumber, error = lua_functions()
        end
        return run(keys, args)
    end })
end

