-- SPDX-License-Identifier: Apache-2.0
-- Batches that come twice: a worker repeats a batch when it does not know whether the first one arrived. For each
-- worker tl:{q}:batches holds the last batch applied.

local BATCH_MEMORY_MS = 3600000 -- a worker silent for so long may be forgotten
local WORKERS_MAX = 100         -- with fewer workers, none is forgotten

-- The last batch of each worker. stored: before this call; latest: with the batches of this call.
local stored, latest = {}, {}

local function is_repeated(worker, batch)
    if not latest[worker] then
        stored[worker] = parse_batch(redis.call('HGET', K_BATCHES, worker))
    end
    local last = latest[worker] or stored[worker]
    if last and last >= batch then
        return true
    end
    latest[worker] = batch
    return false
end

local function forget_silent_workers()
    local all = redis.call('HGETALL', K_BATCHES)
    for i = 1, #all, 2 do
        local _, ms = parse_batch(all[i + 1])
        if not ms or ms < now - BATCH_MEMORY_MS then -- silent, or damaged: nothing may fail any more
            redis.call('HDEL', K_BATCHES, all[i])
        end
    end
end

-- True if these are the first batches that the queue has ever had.
local function store_batches()
    local fields, any_new, n = {}, false, nil
    for worker, batch in pairs(latest) do
        fields[#fields + 1] = worker
        fields[#fields + 1] = batch_record(batch, now)
        if not stored[worker] then -- it has visitors from now on, and its first SEEN is yet to come
            any_new = true
            if string.sub(worker, 1, 8) ~= 'control-' then -- joins of an operator: nobody listens there
                note_report(worker, false, now, settings.waiting_ttl)
            end
        end
    end
    if any_new then
        n = redis.call('HLEN', K_BATCHES)
        if n >= WORKERS_MAX then
            forget_silent_workers()
        end
    end
    redis.call('HSET', K_BATCHES, unpack(fields))
    return n == 0
end

