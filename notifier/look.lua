-- SPDX-License-Identifier: Apache-2.0
-- look: finds what happened to a queue that no step writes into the journal, because time brings it or it is known only
-- by comparison: opened, drawn, drained, closed by its time, a threshold, lost and back. Keeps the journal while hooks
-- need it, and begins the cursors of new hooks.
-- Flags: allow-oom
-- Parts: prelude.draw prelude.journal
--
-- ARGV     1 what the journal is to hold: "all:LENGTH", "some:LENGTH", or '': no hook watches the queue
--          2 ms that the journal lives without another look
--          3 generation of the queue at the last look of the caller, 0: not known
--          4 how many thresholds follow; these; then the names of the hooks that watch the queue
-- Returns  { generation, number of the last event, that of the last entry, Redis time ms, ms after which to look again
--            though no event came (0: no need), cursor of each hook in turn, "ID N": all entries up to this id and
--            number are told }
-- Errors   NOQUEUE  the queue does not exist
--
-- Invariants: each crossing is told once: what was seen is kept in tl:{q}:hooks, changed in the step that tells of it.
-- Writes that key and the journal, nothing of the line. Work is bounded by the number of hooks.
local wanted, live_ms, known, n_thresholds = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local K_HOOKS, K_JOURNAL = key_of('hooks'), key_of('journal')

local state, draw_text, recover_until = read_state('draw', 'recover_until')
if not state then
    return no_queue()
end
redis.call('XLEN', K_JOURNAL)
local found = redis.call('HGETALL', K_HOOKS)
local fields = {}
for i = 1, #found, 2 do
    fields[found[i]] = found[i + 1]
end
local now, generation = now_ms(), int(state.generation)
local journaled = tonumber(fields.journaled) or now

if wanted == '' then
    redis.call('UNLINK', K_JOURNAL, K_HOOKS)
    return { state.generation, state.event, journaled, now, 0 }
end

---- what is so, and what was seen to be so

local c = redis.call('HMGET', K_CONFIG, 'opens_at', 'opening', 'closes_at', 'at_close', 'mode', 'paused')
local opens_at, closes_at = tonumber(c[1]) or 0, tonumber(c[3]) or 0
local mode = c[5] or c[6] == 'true' and 'paused' or 'open'
local is_past_close = closes_at > 0 and now >= closes_at
DRAW.load()
local draw = c[2] == 'draw' and DRAW.of(draw_text, opens_at)
local is_drawn = draw and draw.phase == DRAW.done
local serves = mode == 'open' or mode == 'draining'
local is_open = serves and now >= opens_at and (c[2] ~= 'draw' or opens_at == 0 or is_drawn)
local is_drained = state.waiting == 0
    and (mode == 'draining' or serves and is_past_close and c[4] ~= 'stop')
local is_lost = recover_until and recover_until ~= '0'

local readable, seen = pcall(cjson.decode, fields.seen or '')
local is_new = not (readable and type(seen) == 'table')
if is_new then
    seen = { generation = known > 0 and int(known) or generation, opened = now >= opens_at and int(opens_at) or '0',
        closed = is_past_close and int(closes_at) or '0', drawn = is_drawn and int(opens_at) or '0',
        drained = is_drained, lost = false, above = {} }
end

---- what is new

local news = {} -- name, data, name, data...

local function tell(what, data)
    news[#news + 1], news[#news + 2] = what, data or ''
end

if seen.generation ~= generation then
    seen.generation, seen.lost = generation, true
    tell('store_lost', '{"reason":"data"}')
end
if seen.lost and not is_lost then
    seen.lost = false
    tell('store_back', '{"reason":"data"}')
end
if is_drawn and seen.drawn ~= int(opens_at) then
    seen.drawn = int(opens_at)
    tell('drawn', '{"drawn":' .. int(draw.drawn) .. '}')
end
if is_open and opens_at > 0 and seen.opened ~= int(opens_at) then
    seen.opened = int(opens_at)
    tell('opened', '{"reason":"opens_at"}')
end
if is_past_close and seen.closed ~= int(closes_at) then
    seen.closed = int(closes_at)
    tell('closed', '{"reason":"closes_at"}')
end
if is_drained and not seen.drained then
    tell('drained')
end
seen.drained = is_drained
for i = 5, 4 + n_thresholds do
    local limit = tonumber(ARGV[i])
    local was = seen.above[ARGV[i]] == true
    local is = state.waiting > limit or was and state.waiting >= limit * 0.9
    if is ~= was then
        seen.above[ARGV[i]] = is or nil
        tell('threshold', '{"threshold":' .. int(limit) .. ',"waiting":' .. int(state.waiting) .. ',"side":"'
            .. (is and 'above' or 'below') .. '"}')
    end
end

---- write it down

local cursors, names = {}, {}
for i = 5 + n_thresholds, #ARGV do
    local field = 'cursor:' .. ARGV[i]
    local cursor = fields[field]
    if not cursor then -- a new hook: told of what happens from now on
        cursor = int(state.event) .. '-' .. int(journaled) .. ' ' .. int(journaled)
        redis.call('HSET', K_HOOKS, field, cursor)
    end
    cursors[#cursors + 1], names[ARGV[i]] = cursor, true
end
for field in pairs(fields) do
    local name = string.match(field, '^cursor:(.*)') or string.match(field, '^state:(.*)')
    if name and not names[name] then -- a hook that is gone
        redis.call('HDEL', K_HOOKS, field)
    end
end
if redis.call('EXISTS', K_JOURNAL) == 0 then
    redis.call('XGROUP', 'CREATE', K_JOURNAL, 'none', '$', 'MKSTREAM')
    redis.call('XGROUP', 'DESTROY', K_JOURNAL, 'none')
end
redis.call('PEXPIRE', K_JOURNAL, live_ms)
if fields.wanted ~= wanted or fields.journaled ~= int(journaled) then
    redis.call('HSET', K_HOOKS, 'wanted', wanted, 'journaled', int(journaled))
end
for i = 1, #news, 2 do
    journal_add(wanted, state.event, now, news[i], news[i + 1])
end
journaled = journaled + #news / 2
if next(seen.above) == nil then
    seen.above = { none = false } -- an empty table would be written as a list
end
local text = cjson.encode(seen)
if text ~= fields.seen then
    redis.call('HSET', K_HOOKS, 'seen', text)
end

local again_ms = 0
for _, time in ipairs({ opens_at, closes_at }) do
    if time > now and (again_ms == 0 or time - now < again_ms) then
        again_ms = time - now
    end
end
return { state.generation, state.event, journaled, now, again_ms, unpack(cursors) }
