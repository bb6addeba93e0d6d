-- SPDX-License-Identifier: Apache-2.0
-- When a JOIN gets no new place: the mode takes no joins, closes_at has passed, or the line is full. A line that was
-- full stays so until full_margin percent of max_waiting are free and full_cooldown has passed, so that it does not
-- open and close with each visitor who leaves. `full_since` of the state tells all readers: the time in ms since when
-- it is full, or 0; when it changes they get a CONFIG event. common/config/mode.c decides the same.

local limit_joins
local limit_changes = do_nothing -- without joins

-- Makes these functions: only calls with joins need them.
local load_limit = joins and function()
    local max, since, since_before = 0, 0, 0

    -- Is a line of this length full, or was it a moment ago? Only for a queue with max_waiting.
    local function is_full(waiting)
        local c = redis.call('HMGET', K_CONFIG, 'full_margin', 'full_cooldown')
        local margin, cooldown = math.ceil(max * (tonumber(c[1]) or 5) / 100), tonumber(c[2]) or 10000
        since = tonumber(redis.call('HGET', K_STATE, 'full_since') or 0)
        since_before = since
        if since == 0 and waiting >= max then
            since = now
        end
        local stays = now < since + cooldown or margin > 0 and waiting + margin > max
        if not stays and waiting < max then
            since = 0
        end
        return since > 0 and stays
    end

    -- Sets settings.limit: with as many waiting visitors, a JOIN gets no new place. max_waiting, mode and closes_at are
    -- the settings, as texts.
    limit_joins = function(waiting, max_waiting, mode, closes_at)
        max, closes_at = tonumber(max_waiting or '') or 0, tonumber(closes_at or '') or 0
        local full = max > 0 and is_full(waiting)
        mode = mode or 'open'
        local closed = mode ~= 'open' and mode ~= 'paused' or closes_at > 0 and now >= closes_at
        settings.limit = (closed or full) and 0 or max > 0 and max or math.huge
    end

    -- After the last command: adds full_since to the changes of the state and CONFIG to the events if it is another
    -- one.
    limit_changes = function(changes, events)
        if max > 0 and since == 0 and state.waiting >= max then
            since = now
        end
        if since ~= since_before then
            changes[#changes + 1], changes[#changes + 2] = 'full_since', since
            events[#events + 1] = { EVENT.config }
        end
    end
end
