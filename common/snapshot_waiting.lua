-- snapshot_waiting: one page of the waiting line, by place. Changes nothing.
--
-- ARGV  1 the last place of the page before (0 at first)   2 most places
-- Returns { places in this page, last place, runs of places as msgpack }
local most = tonumber(ARGV[2])
local page = redis.call('ZRANGE', K_WAITING, '(' .. ARGV[1], '+inf', 'BYSCORE', 'LIMIT', 0, most, 'WITHSCORES')
local places = {}
for i = 2, #page, 2 do
    places[#places + 1] = tonumber(page[i])
end
return { #places, page[#page] or ARGV[1], cmsgpack.pack(runs_of(places)) }
