-- SPDX-License-Identifier: Apache-2.0
-- webhook_test: writes an entry into the journal that only the webhook of this name is told of, for an operator's test.
-- args     1 keep   2 name of the webhook
-- returns  the id of the entry; '' when no notifier keeps the journal for this webhook: nothing was changed

entry('webhook_test', { 'allow-oom' }, function(keys, args)
    local c, webhook = state.open(state.begin(keys, args[1]), state.CORE), args[2]
    local wanted = journal.wanted(c, 'test')
    if
        not wanted
        or call('HEXISTS', c.key.webhooks, 'cursor:' .. webhook) == 0
        or call('EXISTS', c.key.journal) == 0
    then
        return ''
    end
    state.check(c, { 'waiting', 'active', 'events' })
    state.set(c, 'store', c.store) -- no event: the entry alone makes the notifier look
    state.commit(c)
    journal.add(c, wanted, 'test', webhook)
    return text.int(c.event) .. '-' .. call('HGET', c.key.webhooks, 'journaled')
end)
