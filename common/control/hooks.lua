-- SPDX-License-Identifier: Apache-2.0
-- hooks: how far the hooks were told what happened to a queue. Changes nothing.
--
-- args     none
-- returns  { now ms, the hooks as in line/hooks.lua }
entry('hooks', { 'no-writes' }, function(keys)
    local c = state.find(keys)
    return { text.int(c.now), hooks.of(c) }
end)
