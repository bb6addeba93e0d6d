-- configure: changes settings, or the notice, of an existing queue and tells all readers, in one step.
--
-- ARGV     1 about how many events to keep   2 'settings' or 'notice'
--          3... names and values in turn, or the text of the notice
-- Returns  1
-- Errors   NOQUEUE  the queue does not exist
local keep, what = ARGV[1], ARGV[2]

local state = read_state()
if not state then
    return no_queue()
end
if what == 'settings' then
    redis.call('HSET', K_CONFIG, unpack(ARGV, 3))
    commit(state, {}, { { EVENT.config } }, keep)
else
    commit(state, { 'notice', ARGV[3] }, { { EVENT.notice, ARGV[3] } }, keep)
end
return 1
