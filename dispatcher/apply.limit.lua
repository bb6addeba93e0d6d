-- When a JOIN gets no new place: the mode takes no joins, closes_at has passed, or the line is full. A line that was
-- full stays so until full_margin percent of max_waiting are free and full_cooldown has passed, so that it does not
-- open and close with each visitor who leaves. `full_since` of the state tells all readers: the time in ms since when it
-- is full, or 0; when it changes they get a CONFIG event. common/config/mode.c decides the same.

local limit_joins, limit_changes

do
    local JOINS = { open = true, paused = true } -- the modes that take joins
    local max, since, since_before

    -- Sets settings.limit: with as many waiting visitors, a JOIN gets no new place. c: max_waiting, full_margin,
    -- full_cooldown, mode and closes_at as the settings have them; full_since: as the state has it.
    function limit_joins(c, full_since, waiting)
        max, since = tonumber(c[1]) or 0, tonumber(full_since or 0)
        since_before = since
        local margin, cooldown = math.ceil(max * (tonumber(c[2]) or 5) / 100), tonumber(c[3]) or 10000
        if since == 0 and waiting >= max then
            since = now
        end
        local stays = now < since + cooldown or margin > 0 and waiting + margin > max
        if max == 0 or not stays and waiting < max then
            since = 0
        end
        local closes_at = tonumber(c[5]) or 0
        local closed = not JOINS[c[4] or 'open'] or closes_at > 0 and now >= closes_at
        settings.limit = (closed or since > 0 and stays) and 0 or max > 0 and max or math.huge
    end

    -- After the last command: adds full_since to the changes of the state and CONFIG to the events if it is another one.
    function limit_changes(changes, events)
        if max > 0 and since == 0 and state.waiting >= max then
            since = now
        end
        if since ~= since_before then
            changes[#changes + 1], changes[#changes + 2] = 'full_since', since
            events[#events + 1] = { EVENT.config }
        end
    end
end
