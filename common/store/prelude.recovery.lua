-- SPDX-License-Identifier: Apache-2.0
-- Recovery: the store has lost the data of a queue, which was created again as another generation. For a while nobody
-- is admitted, and those who hold places of the lost generation get them back (RESTORE). docs/operators/recovery.md.
--
-- Fields of the state:
--   lost_generation  the generation whose places come back; missing or 0: not known
--   lost_by          who named it, NAMED_BY
--   lost_event       the last event of it that a worker remembers; 0: no worker remembers it
--   lost_size        how many were waiting or active then
--   front:<lane>     no place of this lane up to this seq waited any more
--   recover_since    when the recovery began, ms
--   recover_until    when it ends, ms; missing or 0: the queue does not recover
--   started          when the first batch of this generation was applied, ms
--   restored         how many joins were places that came back
-- tl:{q}:lost holds the sessions that workers remember: place -> deadline in ms.

local NAMED_BY = { memory = '1', ticket = '2', operator = '3' }
local K_LOST = key_of('lost')

-- The setting recovery_window in ms. A queue of an older release has none.
local function recovery_window()
    return tonumber(redis.call('HGET', K_CONFIG, 'recovery_window')) or 60000
end

-- When the recovery ends, ms; 0: the queue does not recover. till, started: as the state has them. Before the first
-- batch there was no worker to whom visitors could come back, so the window has not begun to pass.
local function recovery_end(till, started, now)
    till = tonumber(till) or 0
    return till > 0 and not started and math.max(till, now + recovery_window()) or till
end

-- May the lost generation be named as this one now? While the queue recovers or shortly after its start, by whoever
-- remembers it; unless an operator has decided. The latest that anybody names is the one that was there before: an old
-- ticket, or a worker that was away for long, may name an earlier one first.
-- recovery: generation (0: not named), by, started and window, as in the state; till: recovery_end.
local function may_name_lost(recovery, generation, now)
    local is_open = recovery.till > now or
        (recovery.till == 0 and recovery.window > 0 and now - recovery.started <= recovery.window)
    return is_open and generation > recovery.generation and recovery.by ~= NAMED_BY.operator
end
