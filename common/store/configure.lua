-- configure: changes settings, or the notice, of an existing queue and tells all readers, in one step. Settings are
-- compared with those that the caller read and validated the change against, so that no change undoes another.
-- Flags: allow-oom
--
-- ARGV     1 about how many events to keep   2 'settings' or 'notice'
--          settings: 3 how many texts follow; the settings as read, names and values in turn; then those to write
--          notice: 3 the text
-- Returns  1; 0 when the settings are no longer as read: nothing was changed
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

local state = open_state()
if not state then
    return no_queue()
end
check_types()
if what == 'settings' then
    local n = tonumber(ARGV[3])
    if not settings_are({ unpack(ARGV, 4, 3 + n) }) then
        return 0
    end
    redis.call('HSET', K_CONFIG, unpack(ARGV, 4 + n))
    commit(state, {}, { { EVENT.config } }, keep)
else
    commit(state, { 'notice', ARGV[3] }, { { EVENT.notice, ARGV[3] } }, keep)
end
return 1
