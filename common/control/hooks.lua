-- SPDX-License-Identifier: Apache-2.0
-- hooks: how far the hooks were told what happened to a queue. Changes nothing.
-- Flags: no-writes
-- Parts: prelude.hooks
--
-- Returns  { now ms, the hooks as in prelude.hooks }
-- Errors   NOQUEUE  the queue does not exist
if redis.call('EXISTS', K_STATE) == 0 then
    return no_queue()
end
return { int(now_ms()), hooks_now() }
