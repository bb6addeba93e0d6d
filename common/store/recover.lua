-- SPDX-License-Identifier: Apache-2.0
-- recover: moves the end of a recovery, or begins one, because the operator says so.
-- Flags: allow-oom
-- Parts: prelude.recovery prelude.changes
--
-- ARGV     1 about how many events to keep
--          2 ms from now; 0 ends the recovery, and names no generation any more if none is known
--          and who (prelude.changes)
-- Returns  nothing
-- Errors   NOQUEUE  the queue does not exist
local keep, left_ms = ARGV[1], ARGV[2]

-- Records those of these members that differ.
local function record_recovery(before, after)
    for name, value in pairs(before) do
        if after[name] == value then
            before[name], after[name] = nil, nil
        end
    end
    record_change('recover', before, after)
end

local state, lost, by, till, started = open_state('lost_generation', 'lost_by', 'recover_until', 'started')
if not state then
    return no_queue()
end
check_types()
local now = now_ms()
lost, till, started = tonumber(lost) or 0, tonumber(till) or 0, tonumber(started) or now

local before = { recover_until = int(till), lost_generation = int(lost) }
local changes = { 'recover_until', now + tonumber(left_ms), 'started', started }
if till == 0 then
    changes[5], changes[6] = 'recover_since', now
end
if left_ms == '0' then -- none begins by itself any more
    changes[2] = till > 0 and now or 0
    lost = lost > 0 and lost or state.generation
elseif lost == state.generation and redis.call('EXISTS', key_of('retired')) == 0 then -- open again who may be named
    lost, by = 0, ''
end
local n = #changes
changes[n + 1], changes[n + 2] = 'lost_generation', lost
changes[n + 3], changes[n + 4] = 'lost_by', left_ms == '0' and NAMED_BY.operator or by or ''
record_recovery(before, { recover_until = int(changes[2]), lost_generation = int(lost) })
commit(state, changes, { { EVENT.config } }, keep)
