-- SPDX-License-Identifier: Apache-2.0
-- configure: changes settings, or the notice, of an existing queue and tells all readers, in one step. Settings are
-- compared with those that the caller read and validated the change against, so that no change undoes another.
-- args     1 keep   2 'settings' or 'notice'
--          settings: 3 how many texts follow; the settings as read, names and values in turn; then those to write
--          notice: 3 the text   and who
-- returns  { 1, before, after }: what has changed, as JSON; { 0 } when the settings are no longer as read

local EVENT = defs.EVENT
local FIELDS = state.fields({}, { 'notice' })
local OPENING = settings.list({ 'opens_at' })

local function mode_of(c)
    return call('HGET', c.key.config, 'mode') or 'open'
end

local function set(c, actor, texts)
    local before, after = settings.differences(c, texts)
    local is_mode = after.mode and next(after, next(after)) == nil -- and nothing else
    local made, from = changes.record(c, actor, is_mode and 'mode' or 'set', before, after), mode_of(c)
    local changed = tonumber(call('HGET', c.key.config, 'changed')) or 0
    call('HSET', c.key.config, 'changed', text.int(max(state.now_us(), changed + 1)), unpack(texts))
    state.commit_config(c)
    local wanted, to = journal.wanted(c, 'mode'), mode_of(c)
    if not wanted or from == to then return made end
    if to ~= 'open' then
        journal.add(c, wanted, to, '')
    elseif from == 'paused' then
        journal.add(c, wanted, 'resumed', '')
    elseif c.now >= settings.read(c, OPENING).opens_at then -- before its opening a queue stays shut until then
        journal.add(c, wanted, 'opened', '')
    end
    return made
end

entry('configure', { 'allow-oom' }, function(keys, args)
    local c, actor, past = state.open(state.begin(keys, args[1]), FIELDS), changes.actor(args), #args - 3
    state.check(c, { 'waiting', 'active', 'events' })
    if args[2] == 'settings' then
        local n = args[3] + 0
        local _, others = settings.differences(c, { unpack(args, 4, 3 + n) })
        if next(others) or n ~= 2 * call('HLEN', c.key.config) then return { 0 } end
        return { 1, unpack(set(c, actor, { unpack(args, 4 + n, past) })) }
    end
    local old, new = c.notice or '', args[3]
    local made = changes.record(c, actor, 'notice', old ~= new and { notice = old } or {},
        old ~= new and { notice = new } or {})
    state.set(c, 'notice', new)
    state.event(c, EVENT.notice, new)
    state.commit(c)
    return { 1, unpack(made) }
end)
