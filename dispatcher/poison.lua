-- poison: sets an entry aside that cannot be decoded, so that it stops nobody.
--
-- ARGV  1 fence   2 stream id of the entry   3 why   4 its payload
-- Returns 1 set aside in tl:{q}:poison (the last 100 are kept), 0 it was no longer pending
-- Errors  STALE    the fence is out of date
if redis.call('HGET', K_STATE, 'fence') ~= ARGV[1] then
    return redis.error_reply('STALE another dispatcher holds the lease')
end
if redis.call('XACK', K_INGEST, 'dispatchers', ARGV[2]) == 0 then
    return 0
end
redis.call('XADD', (string.gsub(K_INGEST, 'ingest$', 'poison')), 'MAXLEN', 100, '*', 'entry', ARGV[2], 'why', ARGV[3],
    'd', ARGV[4])
return 1
