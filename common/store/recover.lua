-- recover: begins the recovery of a queue that was created again, or moves its end.
-- Flags: allow-oom
-- Parts: prelude.recovery prelude.changes
--
-- ARGV     1 about how many events to keep
--          2 'lost'  3 the lost generation  4 the present one, as the caller knows them
--            'until' 3 ms from now; 0 ends the recovery, and names no generation any more if none is known
--          and who (prelude.changes); only 'until' is recorded
-- Returns  1 changed; 0 nothing to do: another generation was named before, or it is too late, or recovery_window is 0
-- Errors   NOQUEUE  the queue does not exist
local keep, what = ARGV[1], ARGV[2]

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
local now, window = now_ms(), recovery_window()
local ends = recovery_end(till, started, now)
lost, till, started = tonumber(lost) or 0, tonumber(till) or 0, tonumber(started) or now

if what == 'until' then
    local before = { recover_until = int(till), lost_generation = int(lost) }
    local changes = { 'recover_until', now + tonumber(ARGV[3]), 'started', started }
    if till == 0 then
        changes[5], changes[6] = 'recover_since', now
    end
    if ARGV[3] == '0' then -- none begins by itself any more
        changes[2] = till > 0 and now or 0
        lost = lost > 0 and lost or state.generation
    elseif lost == state.generation and redis.call('EXISTS', key_of('retired')) == 0 then -- open again who may be named
        lost, by = 0, ''
    end
    local n = #changes
    changes[n + 1], changes[n + 2] = 'lost_generation', lost
    changes[n + 3], changes[n + 4] = 'lost_by', ARGV[3] == '0' and NAMED_BY.operator or by or ''
    record_recovery(before, { recover_until = int(changes[2]), lost_generation = int(lost) })
    commit(state, changes, { { EVENT.config } }, keep)
    return 1
end

local generation, present = tonumber(ARGV[3]), tonumber(ARGV[4])
local found = { generation = lost, by = by, till = ends, started = started, window = window }
if present ~= state.generation or generation >= present or not may_name_lost(found, NAMED_BY.memory, now) then
    return 0
end
local changes = { 'lost_generation', generation, 'lost_by', NAMED_BY.memory }
if till == 0 then
    changes[5], changes[6], changes[7], changes[8] = 'recover_until', now + window, 'recover_since', now
end
commit(state, changes, { { EVENT.config } }, keep)
return 1
