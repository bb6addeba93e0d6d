-- SPDX-License-Identifier: Apache-2.0
-- recover: moves the end of a recovery, or begins one, because the operator says so.
-- args     1 keep   2 ms from now; 0 ends the recovery, and from then on none is named if none is known   and who
-- A part of a queue (state.find_part) goes on from here. Where it is archived the rest comes back (line/rewind.lua).

local int = text.int
local FIELDS = state.fields({}, { 'lost_generation', 'lost_by', 'recover_until', 'started', 'restore' })

entry('recover', { 'allow-oom' }, function(keys, args)
    local c, left_ms = state.begin(keys, args[1]), args[2] + 0
    c.takes_part = true
    state.open(c, FIELDS)
    if c.took_part then visitor.drop_half_sessions(c) end
    local lost, till, by = tonumber(c.lost_generation) or 0, tonumber(c.recover_until) or 0, c.lost_by or ''
    local before, ends = { recover_until = int(till), lost_generation = int(lost) }, c.now + left_ms
    if left_ms == 0 then -- from now on none begins by itself
        ends, by = till > 0 and c.now or 0, recovery.NAMED_BY.operator
        if lost == 0 then lost = c.generation end
    elseif lost == c.generation and not rewind.stage(c, c.restore) and call('EXISTS', c.key.retired) == 0 then
        lost, by = 0, '' -- open again who may be named
    end
    state.check(c, { 'waiting', 'active', 'events' })
    local after = { recover_until = int(ends), lost_generation = int(lost) }
    for name, value in pairs(before) do -- what differs is recorded
        if after[name] == value then before[name], after[name] = nil, nil end
    end
    changes.record(c, changes.actor(args), 'recover', before, after)
    if till == 0 then state.set(c, 'recover_since', c.now) end
    state.set(c, 'recover_until', ends)
    state.set(c, 'started', tonumber(c.started) or c.now)
    state.set(c, 'lost_generation', lost)
    state.set(c, 'lost_by', by)
    state.commit_config(c)
end)
