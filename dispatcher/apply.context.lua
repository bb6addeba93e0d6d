-- SPDX-License-Identifier: Apache-2.0
-- What the parts of the function apply share during one call.

local now      -- ms, when the call began
local state    -- as read_state returned it, and the last seq; changes with every command
local totals   -- joined, completed, left, with restores admitted: texts as in the state, numbers once they have changed
local settings -- of the queue: session_ttl, sliding, session_max, waiting_ttl; limit: see apply.limit.lua
-- DRAW.present: the draw of the queue, once it is fixed who came before its opening; nil or false: there is none

local function do_nothing()
end

local sender     -- the worker of the batch at work
local exceptions -- of the batch at work: { index of the command, outcome, place, deadline or 0 }

local function add_exception(list, index, outcome, place, deadline)
    list[#list + 1] = { index, outcome, place, deadline }
end

local function read_session(visitor)
    return parse_session(redis.call('HGET', K_SESSIONS, visitor))
end

-- Has a place of this visitor ended at this time or later?
local has_ended_since = (invites or restores) and function(visitor, ms)
    local score = redis.call('ZSCORE', K_ENDED, visitor)
    return score and tonumber(score) >= ms * 8
end

local holds_place = (invites or late) and function(visitor)
    return redis.call('ZSCORE', K_WAITING, visitor) or redis.call('ZSCORE', K_ACTIVE, visitor)
end
