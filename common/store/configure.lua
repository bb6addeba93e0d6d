-- SPDX-License-Identifier: Apache-2.0
-- configure: changes settings, or the notice, of an existing queue and tells all readers, in one step. Settings are
-- compared with those that the caller read and validated the change against, so that no change undoes another.
-- Flags: allow-oom
-- Parts: prelude.changes prelude.journal
--
-- ARGV     1 about how many events to keep   2 'settings' or 'notice'
--          settings: 3 how many texts follow; the settings as read, names and values in turn; then those to write
--          notice: 3 the text
--          and who (prelude.changes)
-- Returns  { 1, before, after }: what has changed, as JSON; { 0 } when the settings are no longer as read: nothing was
--          changed
-- Errors   NOQUEUE  the queue does not exist
local keep, what = ARGV[1], ARGV[2]

-- Are these, names and values in turn, all the settings there are?
local function settings_are(texts)
    if redis.call('HLEN', K_CONFIG) * 2 ~= #texts then
        return false
    end
    for i = 1, #texts, 2 do
        if redis.call('HGET', K_CONFIG, texts[i]) ~= texts[i + 1] then
            return false
        end
    end
    return true
end

-- What a change of the mode is called in the journal; nil: nothing to tell. A queue that is opened before its opening
-- stays shut until then.
local function name_of_change(from, to, now)
    if from == to then
        return nil
    elseif to ~= 'open' then
        return to
    elseif from == 'paused' then
        return 'resumed'
    end
    return now >= (tonumber(redis.call('HGET', K_CONFIG, 'opens_at')) or 0) and 'opened' or nil
end

local function mode_of_queue()
    local mode, paused = unpack(redis.call('HMGET', K_CONFIG, 'mode', 'paused'))
    return mode or paused == 'true' and 'paused' or 'open'
end

-- What writing these settings changes; and is it the mode alone? (`paused` goes with it.)
local function changes_by(texts)
    local before, after, others = {}, {}, false
    for i = 1, #texts, 2 do
        local name, value = texts[i], texts[i + 1]
        local old = redis.call('HGET', K_CONFIG, name)
        if old ~= value then
            before[name], after[name] = old or nil, value
            others = others or (name ~= 'mode' and name ~= 'paused')
        end
    end
    return before, after, after.mode and not others
end

local state, notice = open_state('notice')
if not state then
    return no_queue()
end
check_types()
if what == 'settings' then
    local n = tonumber(ARGV[3])
    if not settings_are({ unpack(ARGV, 4, 3 + n) }) then
        return { 0 }
    end
    local before, after, is_mode = changes_by({ unpack(ARGV, 4 + n) })
    local made = record_change(is_mode and 'mode' or 'set', before, after)
    local mode_before, t = mode_of_queue(), redis.call('TIME')
    local changed = tonumber(redis.call('HGET', K_CONFIG, 'changed') or '') or 0
    redis.call('HSET', K_CONFIG, 'changed', int(math.max(t[1] * 1000000 + t[2], changed + 1)), unpack(ARGV, 4 + n))
    commit(state, {}, { { EVENT.config } }, keep)
    local now, mode, wanted = now_ms(), mode_of_queue(), journal_wanted('mode')
    local change = wanted and name_of_change(mode_before, mode, now)
    if change then
        journal_add(wanted, state.event + 1, now, change, '')
    end
    return { 1, unpack(made) }
end
local is_same = (notice or '') == ARGV[3]
local made = record_change('notice', is_same and {} or { notice = notice or '' },
    is_same and {} or { notice = ARGV[3] })
commit(state, { 'notice', ARGV[3] }, { { EVENT.notice, ARGV[3] } }, keep)
return { 1, unpack(made) }
