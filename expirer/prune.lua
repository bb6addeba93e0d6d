-- SPDX-License-Identifier: Apache-2.0
-- prune: drops what is kept for people and has become too old: signs of misuse, which name networks, and the record of
-- changes, which names operators and their addresses.
--
-- args     1 how long signs are kept, ms   2 how long changes are kept, ms
-- returns  Redis time ms
entry('prune', { 'allow-oom' }, function(keys, args)
    local c = state.begin(keys)
    call('XTRIM', c.key.signs, 'MINID', '=', text.int(max(0, c.now - args[1])))
    call('XTRIM', c.key.changes, 'MINID', '=', text.int(max(0, c.now - args[2])))
    return c.now
end)
