-- SPDX-License-Identifier: Apache-2.0
-- hook_test: writes an entry into the journal that only the webhook of this name is told of, for operators who try it.
-- args     1 keep   2 name of the webhook
-- returns  the id of the entry; '' when no notifier keeps the journal for this webhook: nothing was changed

entry('hook_test', { 'allow-oom' }, function(keys, args)
    local c, hook = state.open(state.begin(keys, args[1]), state.CORE), args[2]
    local wanted = journal.wanted(c, 'test')
    if not wanted or call('HEXISTS', c.key.hooks, 'cursor:' .. hook) == 0 or call('EXISTS', c.key.journal) == 0 then
        return ''
    end
    state.check(c, { 'waiting', 'active', 'events' })
    state.set(c, 'store', c.store) -- no event: the entry alone makes the notifier look
    state.commit(c)
    journal.add(c, wanted, 'test', hook)
    return text.int(c.event) .. '-' .. call('HGET', c.key.hooks, 'journaled')
end)
