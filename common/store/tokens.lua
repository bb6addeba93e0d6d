-- SPDX-License-Identifier: Apache-2.0
-- tokens: adds or revokes a token of an operator, or notes its use.
-- Flags: allow-oom
-- Parts: prelude.changes
--
-- KEYS     1 tl:tokens   2 tl:changes      (not the keys of the other scripts)
-- ARGV     1 'add', 'revoke' or 'used'   2 its name
--          add: 3 its role   4 the hash, hex digits
--          used: 3 a use within so many ms after the last one is not noted
--          and who (prelude.changes)
-- Returns  DONE, or why nothing was changed: NONE no token has this name, EXISTS one has it already, FULL there are
--          TOKENS_MAX; of 'used' always one of the first two
--
-- A hash: name -> JSON { role, hash, made_at, made_by, last_used }; times in Unix ms, last_used only after a use.
local K_TOKENS, what, name = KEYS[1], ARGV[1], ARGV[2]

redis.call('XLEN', KEYS[2]) -- fails when it is of another type, before anything is written
local text = redis.call('HGET', K_TOKENS, name)
local is_read, token = pcall(cjson.decode, text or '')
token = is_read and type(token) == 'table' and token or {}

if what == 'add' then
    if text or redis.call('HLEN', K_TOKENS) >= TOKENS_MAX then
        return text and TOKEN.exists or TOKEN.full
    end
    record_change_in(KEYS[2], 'token', {}, { name = name, role = ARGV[3] })
    redis.call('HSET', K_TOKENS, name, cjson.encode({ role = ARGV[3], hash = ARGV[4], made_at = now_ms(),
        made_by = CHANGED_BY }))
    return TOKEN.done
elseif not text then
    return TOKEN.none
elseif what == 'revoke' then
    record_change_in(KEYS[2], 'revoke', { name = name, role = tostring(token.role) }, {})
    redis.call('HDEL', K_TOKENS, name)
    return TOKEN.done
end
local now = now_ms()
if token.role and now - (tonumber(token.last_used) or 0) >= tonumber(ARGV[3]) then
    token.last_used = now
    redis.call('HSET', K_TOKENS, name, cjson.encode(token))
end
return TOKEN.done
