-- SPDX-License-Identifier: Apache-2.0
-- look: finds what happened to a queue that no step writes into the journal, because time brings it or it is known only
-- by comparison. Keeps the journal while webhooks need it, and begins the cursors of new webhooks.
-- args     1 what the journal is to hold: "all:LENGTH", "some:LENGTH", or '': no webhook watches the queue
--          2 ms that the journal lives without another look
--          3 generation of the queue at the last look of the caller, 0: not known
--          4 how many thresholds follow; these; then the names of the webhooks that watch the queue
-- returns  LOOK
--
-- Invariants: each crossing is told once: what was seen is kept in tl:{q}:webhooks, changed in the step that tells it.
-- Writes that key and the journal, nothing of the line. Work is bounded by the number of webhooks.

local int = text.int
local FIELDS = state.fields({}, { 'draw', 'recover_until' })
local SETTINGS = settings.list({ 'opens_at', 'order', 'closes_at', 'after_close', 'mode' })

-- What is so now.
local function look(c)
    local s = settings.read(c, SETTINGS)
    local serves, d = s.mode == 'open' or s.mode == 'draining', nil
    if s.order == 'draw' then d = draw.of(c.draw, s.opens_at) end
    local is_over, is_drawn = s.closes_at > 0 and c.now >= s.closes_at, d and d.phase == draw.DONE
    return { opens_at = s.opens_at, closes_at = s.closes_at, drawn = is_drawn and d.drawn, is_over = is_over,
        is_open = serves and c.now >= s.opens_at and (s.order ~= 'draw' or s.opens_at == 0 or is_drawn),
        is_drained = c.waiting == 0 and (s.mode == 'draining' or serves and is_over and s.after_close ~= 'stop'),
        is_lost = c.recover_until and c.recover_until ~= '0' }
end

-- Brings `seen` up to date. Returns what is new: name, data, name, data, ...
local function find_news(c, now, seen, thresholds)
    local news = {}
    local function tell(what, data) news[#news + 1], news[#news + 2] = what, data or '' end
    local generation, opens_at, closes_at = int(c.generation), int(now.opens_at), int(now.closes_at)
    if seen.generation ~= generation then
        seen.generation, seen.lost = generation, true
        tell('store_lost', '{"reason":"data"}')
    end
    if seen.lost and not now.is_lost then
        seen.lost = false
        tell('store_back', '{"reason":"data"}')
    end
    local function tell_once(what, at, data)
        if seen[what] ~= at then tell(what, data) end
        seen[what] = at
    end
    if now.drawn then tell_once('drawn', opens_at, '{"drawn":' .. int(now.drawn) .. '}') end
    if now.is_open and now.opens_at > 0 then tell_once('opened', opens_at, '{"reason":"opens_at"}') end
    if now.is_over then tell_once('closed', closes_at, '{"reason":"closes_at"}') end
    if now.is_drained and not seen.drained then tell('drained') end
    seen.drained = now.is_drained
    for i = 1, #thresholds do
        local name, limit = thresholds[i], thresholds[i] + 0
        local was = seen.above[name] == true
        local is = c.waiting > limit or was and c.waiting >= limit * 0.9
        if is ~= was then
            seen.above[name] = is or nil
            tell('threshold', '{"threshold":' .. int(limit) .. ',"waiting":' .. int(c.waiting) .. ',"side":"'
                .. (is and 'above' or 'below') .. '"}')
        end
    end
    return news
end

-- The cursors of these webhooks, in turn. A new one is told of what happens from now on; one that is gone is forgotten.
local function cursors_of(c, fields, watching, journaled)
    local cursors, names = {}, {}
    for i = 1, #watching do
        local field = 'cursor:' .. watching[i]
        cursors[i], names[watching[i]] = fields[field], true
        if not cursors[i] then
            cursors[i] = int(c.event) .. '-' .. int(journaled) .. ' ' .. int(journaled)
            call('HSET', c.key.webhooks, field, cursors[i])
        end
    end
    for field in pairs(fields) do
        local name = match(field, '^cursor:(.*)') or match(field, '^state:(.*)')
        if name and not names[name] then call('HDEL', c.key.webhooks, field) end
    end
    return cursors
end

entry('look', { 'allow-oom' }, function(keys, args)
    local wanted, n_thresholds, c = args[1], args[4] + 0, state.read(state.begin(keys), FIELDS)
    call('XLEN', c.key.journal) -- fails when it is of another type
    local fields = text.fields(call('HGETALL', c.key.webhooks))
    local journaled = tonumber(fields.journaled) or c.now
    if wanted == '' then
        call('UNLINK', c.key.journal, c.key.webhooks)
        return { c.generation, c.event, journaled, c.now, 0, {} }
    end

    local now, known = look(c), args[3] + 0
    local seen = text.object(fields.seen) or { generation = int(known > 0 and known or c.generation),
        opened = c.now >= now.opens_at and int(now.opens_at) or '0', closed = now.is_over and int(now.closes_at) or '0',
        drawn = now.drawn and int(now.opens_at) or '0', drained = now.is_drained, lost = false, above = {} }
    local news = find_news(c, now, seen, { unpack(args, 5, 4 + n_thresholds) })
    local cursors = cursors_of(c, fields, { unpack(args, 5 + n_thresholds) }, journaled)
    if call('EXISTS', c.key.journal) == 0 then
        call('XGROUP', 'CREATE', c.key.journal, 'none', '$', 'MKSTREAM')
        call('XGROUP', 'DESTROY', c.key.journal, 'none')
    end
    call('PEXPIRE', c.key.journal, args[2])
    if fields.wanted ~= wanted or fields.journaled ~= int(journaled) then
        call('HSET', c.key.webhooks, 'wanted', wanted, 'journaled', int(journaled))
    end
    for i = 1, #news, 2 do journal.add(c, wanted, news[i], news[i + 1]) end
    if not next(seen.above) then seen.above = { none = false } end -- an empty table would be written as a list
    local t = cjson.encode(seen)
    if t ~= fields.seen then call('HSET', c.key.webhooks, 'seen', t) end
    -- When time brings something, if it does.
    local opens_in, closes_in = now.opens_at - c.now, now.closes_at - c.now
    local again = opens_in > 0 and closes_in > 0 and min(opens_in, closes_in) or max(0, opens_in, closes_in)
    return { c.generation, c.event, journaled + #news / 2, c.now, again, cursors }
end)
