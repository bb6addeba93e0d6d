-- The places that were handed over to another device (dispatcher/apply.handover.lua): each must be held, by the visitor
-- whom the record names.

local SERIALS_MOST = 5000 -- looked at one by one

local function check_serial(key, seq, text)
    local visitor = string.match(text, '^[1-9]%d*:%d+:(.+)$')
    local advice = format('HDEL %s %s; tickets of before the hand-over count again', key, seq)
    if not visitor or not string.match(seq, '^[1-9]%d*$') then
        found(6, 'serial:' .. seq, format('the serial of number %s cannot be read: %s', seq, text), advice)
        return
    end
    local place = tonumber(redis.call('ZSCORE', K_WAITING, visitor) or nil)
        or parse_session(redis.call('HGET', K_SESSIONS, visitor))
    if not place or place % LANE ~= tonumber(seq) then
        found(6, 'serial:' .. seq, format('number %s has a serial, but visitor "%s" does not hold that place', seq,
            visitor), advice)
    end
end

-- can_compare: false where a key that names who holds a place cannot be read. Returns a note.
local function check_serials(can_compare)
    local key = key_of('serials')
    local is = redis.call('TYPE', key).ok
    if is ~= 'hash' and is ~= 'none' then
        found(10, 'type:' .. key, key .. ' is a ' .. is .. ', not a hash', 'rename the key away')
        return ''
    end
    local n = redis.call('HLEN', key)
    if n > SERIALS_MOST then
        return n .. ' places were handed over: too many to look at'
    end
    local rows = can_compare and redis.call('HGETALL', key) or {}
    for i = 1, #rows, 2 do
        check_serial(key, rows[i], rows[i + 1])
    end
    return ''
end
