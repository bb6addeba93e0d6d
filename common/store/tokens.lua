-- SPDX-License-Identifier: Apache-2.0
-- tokens: adds or revokes a token of an operator, or notes its use.
-- keys     1 tl:tokens   2 tl:changes
-- args     1 'add', 'revoke' or 'used'   2 its name   add: 3 its role   4 the hash, hex digits
--          used: 3 ms after the last noted use in which another is not noted   and who
-- returns  DONE, or why nothing was changed: NONE no token has this name, EXISTS one has it already, FULL there are
--          TOKENS_MAX; of 'used' always one of the first two

local TOKEN = defs.TOKEN

entry('tokens', { 'allow-oom' }, function(keys, args)
    local tokens, what, name, now = keys[1], args[1], args[2], floor(state.now_us() / 1000)
    local actor = changes.actor(args)
    call('XLEN', keys[2]) -- fails when it is of another type, before anything is written
    local found = call('HGET', tokens, name)
    local token = text.object(found) or {}
    if what == 'add' then
        if found then return TOKEN.exists end
        if call('HLEN', tokens) >= defs.TOKENS_MAX then return TOKEN.full end
        changes.record_in(keys[2], now, actor, 'token', {}, { name = name, role = args[3] })
        call('HSET', tokens, name, cjson.encode({ role = args[3], hash = args[4], made_at = now, made_by = actor.by }))
    elseif not found then
        return TOKEN.none
    elseif what == 'revoke' then
        changes.record_in(keys[2], now, actor, 'revoke', { name = name, role = tostring(token.role) }, {})
        call('HDEL', tokens, name)
    elseif token.role and now - (tonumber(token.last_used) or 0) >= tonumber(args[3]) then
        token.last_used = now
        call('HSET', tokens, name, cjson.encode(token))
    end
    return TOKEN.done
end)
