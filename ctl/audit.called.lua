-- SPDX-License-Identifier: Apache-2.0
-- What must hold of an overbooked queue (line/overbook.lua).

local SESSIONS_MOST = 5000 -- counted one by one

local COUNT_AGAIN = "set it to nothing: HSET " .. K_STATE .. " called ''; the admitter begins to count again"

local function overbook_now()
    return tonumber(redis.call('HGET', K_CONFIG, 'overbook') or '') or 0
end

local function count_unclaimed(called)
    local n, sessions = 0, redis.call('HGETALL', K_SESSIONS)
    for i = 2, #sessions, 2 do
        local _, admitted_ms, claimed = parse_session(sessions[i])
        if admitted_ms and not claimed and is_counted(called, admitted_ms) then
            n = n + 1
        end
    end
    return n
end

local function check_called(active, admit_capacity)
    local text = redis.call('HGET', K_STATE, 'called')
    local called = parse_called(text)
    load_called()
    if not text or text == '' then
        return
    elseif not called then
        found(1, 'called', 'what is counted of those called cannot be read: ' .. text, COUNT_AGAIN)
        return
    end
    if called.n > active then
        found(1, 'called', format('%.0f were called and have not claimed, but only %.0f are active', called.n, active),
            COUNT_AGAIN)
    elseif active <= SESSIONS_MOST and count_unclaimed(called) ~= called.n then
        found(1, 'called', format('%.0f sessions are not claimed, but the state counts %.0f', count_unclaimed(called),
            called.n), COUNT_AGAIN)
    end
    local capacity = tonumber(redis.call('HGET', K_CONFIG, 'capacity') or '') or 0
    if admit_capacity and active - called.n > math.max(admit_capacity, capacity) then
        found(2, 'claimed', format('%.0f have claimed, more than the capacity was', active - called.n),
            'none is admitted until enough have gone; report how it came to this')
    end
end
