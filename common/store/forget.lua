-- SPDX-License-Identifier: Apache-2.0
-- forget: erases what is kept of one visitor who is neither waiting nor active, in bounded steps. The caller goes on
-- with the step that each call names.
-- Flags: allow-oom
-- Parts: prelude.changes
--
-- ARGV     1 the visitor   2 the step
--          'sets'             the end, the next turn, and entries that were set aside
--          'spent'  3 cursor  a part of the keys: invites keep that they are spent, and no longer by whom
--          'look'   3 stream, 4 id       do entries of this stream ('journal', 'changes') after this id name the
--                                        visitor?
--          'copy'   3 stream, 4 id, 5 a random name   copies entries after this id, without the visitor; at the end,
--                                                     the copy takes the place of the stream
--          'record' 3 in how many places the id was erased: the record of changes says so, without the id
--          and who (prelude.changes)
-- Returns  { how many places were erased, what follows: the next cursor or id, or '' when the step is done; 'found' of
--          look }
-- Errors   NOQUEUE  the queue does not exist
--          INLINE   the visitor waits or is active: nothing was changed
--
-- Invariants: the ids of entries stay, so readers of a stream go on where they are. Others are not touched.
local visitor, step = ARGV[1], ARGV[2]
local ENTRIES, KEYS_SCANNED = 50, 500 -- in one call

if redis.call('EXISTS', K_STATE) == 0 then
    return no_queue()
end
if redis.call('ZSCORE', K_WAITING, visitor) or redis.call('ZSCORE', K_ACTIVE, visitor) then
    return redis.error_reply('INLINE the visitor is in the queue: remove the visitor first')
end

-- Erases the visitor from the fields of an entry of a stream. Returns in how many places.
local erase = {}

-- `data` of an admission: ids, separated by spaces.
function erase.journal(fields)
    local found = 0
    for i = 1, #fields, 2 do
        if fields[i] == 'data' and string.find(fields[i + 1], visitor, 1, true) then
            local others = {}
            for id in string.gmatch(fields[i + 1], '%S+') do
                if id == visitor then
                    found = found + 1
                else
                    others[#others + 1] = id
                end
            end
            fields[i + 1] = table.concat(others, ' ')
        end
    end
    return found
end

-- JSON in which the id is a text, written by Lua or by C.
function erase.changes(fields)
    local found = 0
    for i = 2, #fields, 2 do
        for _, quoted in ipairs({ cjson.encode(visitor), '"' .. visitor .. '"' }) do
            local from, to = string.find(fields[i], quoted, 1, true)
            while from do
                fields[i] = string.sub(fields[i], 1, from - 1) .. '"(forgotten)"' .. string.sub(fields[i], to + 1)
                found = found + 1
                from, to = string.find(fields[i], quoted, from + 13, true) -- behind what stands there now
            end
        end
    end
    return found
end

if step == 'sets' then
    check_types()
    local poison, held = key_of('poison'), key_of('held')
    local set_aside = redis.call('XRANGE', poison, '-', '+', 'COUNT', 200)
    redis.call('ZCARD', held) -- fails likewise
    local erased = redis.call('ZREM', K_ENDED, visitor) + redis.call('ZREM', held, visitor)
        + redis.call('HDEL', K_SESSIONS, visitor)
    for _, entry in ipairs(set_aside) do
        if string.find(table.concat(entry[2], '\n'), visitor, 1, true) then
            erased = erased + redis.call('XDEL', poison, entry[1])
        end
    end
    return { erased, '' }
elseif step == 'record' then
    record_change('forget', {}, { places = ARGV[3] })
    return { 0, '' }
elseif step == 'spent' then
    -- The name of the queue has no character that a pattern would read in another way; a prefix might, and finds more.
    local found = redis.call('SCAN', ARGV[3], 'MATCH', key_of('spent:') .. '*', 'COUNT', KEYS_SCANNED)
    local erased = 0
    for _, key in ipairs(found[2]) do
        if redis.call('TYPE', key).ok == 'string' and redis.call('GET', key) == visitor then
            redis.call('SET', key, '', 'KEEPTTL')
            erased = erased + 1
        end
    end
    return { erased, found[1] == '0' and '' or found[1] }
end

local stream, after = ARGV[3], ARGV[4]
local key, edit = key_of(stream), erase[stream]
local entries = redis.call('XRANGE', key, after == '' and '-' or '(' .. after, '+', 'COUNT', ENTRIES)
local last = #entries == ENTRIES and entries[#entries][1] or ''
if step == 'look' then
    for _, entry in ipairs(entries) do
        if edit(entry[2]) > 0 then
            return { 0, 'found' }
        end
    end
    return { 0, last }
end

local copy, erased = key_of('forget:' .. ARGV[5]), 0
for _, entry in ipairs(entries) do
    erased = erased + edit(entry[2])
    redis.call('XADD', copy, entry[1], unpack(entry[2]))
end
if last ~= '' then
    redis.call('PEXPIRE', copy, 60000) -- should the caller not come back
    return { erased, last }
end
local first = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)[1]
if first and redis.call('EXISTS', copy) == 1 then
    redis.call('XTRIM', copy, 'MINID', '=', first[1]) -- what was trimmed meanwhile
    local live_ms = redis.call('PTTL', key)
    redis.call('RENAME', copy, key)
    if live_ms > 0 then
        redis.call('PEXPIRE', key, live_ms)
    else
        redis.call('PERSIST', key)
    end
else
    redis.call('UNLINK', copy)
end
return { erased, '' }
