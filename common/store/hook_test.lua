-- SPDX-License-Identifier: Apache-2.0
-- hook_test: writes an entry into the journal that only the hook of this name is told of, for operators who try it.
-- Flags: allow-oom
-- Parts: prelude.journal
--
-- ARGV     1 about how many events to keep   2 name of the hook
-- Returns  the id of the entry; '' when no notifier keeps the journal for this hook: nothing was changed
-- Errors   NOQUEUE  the queue does not exist
local keep, hook = ARGV[1], ARGV[2]

local state = open_state()
if not state then
    return no_queue()
end
check_types()
local wanted = journal_wanted('test')
if not wanted or redis.call('HEXISTS', key_of('hooks'), 'cursor:' .. hook) == 0
    or redis.call('EXISTS', key_of('journal')) == 0 then
    return ''
end
commit(state, {}, {}, keep)
journal_add(wanted, state.event + 1, now_ms(), 'test', hook)
return int(state.event + 1) .. '-' .. redis.call('HGET', key_of('hooks'), 'journaled')
