-- SPDX-License-Identifier: Apache-2.0
-- What the mode and the times of a queue allow, against its last events.

local check_mode

do
    local MOVES = { open = true, draining = true } -- the modes that admit
    local JOINS = { open = true, paused = true }   -- the modes that take joins
    local EVENTS_BACK = 200 -- entries of the events stream
    local GRACE_MS = 1000 -- between the start of a step and the id of its entry

    -- Is a place of this event new: given after the store was last started, and not one that came back?
    local function is_new(event, base_seq)
        return type(event[2]) == 'table' and (tonumber(event[2][1]) or 0) % LANE > base_seq
    end

    -- Calls look(event, ms) with the events after the last change of the settings, newest first.
    local function each_since_config(generation, look)
        for _, row in ipairs(redis.call('XREVRANGE', K_EVENTS, '+', '-', 'COUNT', EVENTS_BACK)) do
            local ok, entry = pcall(cmsgpack.unpack, row[2][2] or '')
            if not ok or type(entry) ~= 'table' or entry[3] ~= generation or type(entry[6]) ~= 'table' then
                return
            end
            for _, event in ipairs(entry[6]) do
                if event[1] == EVENT.config then
                    return
                end
            end
            for _, event in ipairs(entry[6]) do
                look(event, tonumber(string.match(row[1], '^%d+')))
            end
        end
    end

    function check_mode(now, generation)
        local c = redis.call('HMGET', K_CONFIG, 'mode', 'paused', 'closes_at', 'at_close')
        local s = redis.call('HMGET', K_STATE, 'full_since', 'base_seq', 'lost_generation')
        local mode, closes_at, full_since = c[1] or 'open', tonumber(c[3] or '') or 0, s[1]
        local holds = not MOVES[mode]
        if holds and c[2] ~= 'true' then
            found(10, 'paused', format('the mode is %s, but paused is %s: admitters of older releases admit', mode,
                tostring(c[2])), format('set it again: `tellerline set QUEUE mode=%s`', mode))
        end
        if full_since and (not tonumber(full_since) or tonumber(full_since) > now + 60000) then
            found(7, 'full_since', 'the time since when the line is full cannot be right: ' .. full_since,
                'HDEL ' .. K_STATE .. ' full_since')
        end
        if s[3] and s[3] ~= '0' then
            return -- places and sessions come back in every mode
        end
        local held, closed = holds or c[2] == 'true', not JOINS[mode]
        each_since_config(generation, function(event, ms)
            local over = closes_at > 0 and ms > closes_at + GRACE_MS
            if event[1] == EVENT.admitted and (held or over and c[4] == 'stop')
                and is_new(event, tonumber(s[2]) or 0) then
                found(12, 'admitted', format('visitors were admitted although the mode is %s%s', mode,
                    over and ' and closes_at has passed' or ''), 'are all admitters of this version?')
            elseif event[1] == EVENT.joined and (closed or over) and is_new(event, tonumber(s[2]) or 0) then
                found(12, 'joined', format('visitors joined although the mode is %s%s', mode,
                    over and ' and closes_at has passed' or ''), 'are all dispatchers of this version?')
            end
        end)
    end
end
