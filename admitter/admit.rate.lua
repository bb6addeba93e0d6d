-- SPDX-License-Identifier: Apache-2.0
-- A fast path of the rate budget (prelude.budget.lua): a smooth rate in the middle of its period, under the rule and in
-- the incarnation of the step before, whose clock did not jump. Nearly every step is so. The functions of the budget
-- need not be made then, which costs a step of one visitor more than all that they do. Whatever else is the case, they
-- decide.
--
-- All numbers are whole and below 2^53. So (x - x % y) / y is floor(x / y), (x + -x % y) / y is ceil(x / y), both
-- exact, and both faster than calls of functions.

-- When this slot is due, ms after the start of the period.
local function quick_offset(slot, admit, every, group)
    local taken = slot % admit
    local ms = (taken - taken % group) * every
    return (slot - taken) / admit * every + (ms + -ms % admit) / admit
end

-- c: the settings of admit.lua; may: how many the step may admit, for all other reasons. Returns how many visitors the
-- budget allows now; the text of the budget after this step, nil if it admits nobody; after how many ms the next slot
-- is due then. Returns nil when it is not the case above.
local function quick_budget(text, base_seq, c, now, now_text, ahead, jumped_to, may)
    local admit, every, burst = c[13], c[14], c[15]
    local from, used, late, last, rest = string.match(text or '', '^(%d+):(%d+):(%d+):(%d+)(:.+)$')
    if not (admit and every and burst) or c[16] ~= 'smooth'
        or rest ~= ':' .. base_seq .. ':' .. admit .. ':' .. every .. ':' .. burst .. ':smooth' then
        return nil
    end
    -- Adding 0 makes a number of a text in a third of the time of tonumber; so does any arithmetic.
    last, admit, every, burst = last + 0, admit + 0, every + 0, burst + 0
    if now < last or last < jumped_to or ahead > CLOCK_JUMP_MS or admit == 0 or every == 0 then
        return nil
    end
    local elapsed, stretch, taken = now - from, burst * every, used + 0
    local group = admit * (every < STEP_MS and every or STEP_MS)
    group = (group + -group % every) / every
    local interval, catch_up = group * every, (every - every % 10) / 10
    interval = (interval + -interval % admit) / admit
    catch_up = catch_up < CATCH_UP_MS and catch_up or CATCH_UP_MS
    catch_up = catch_up < interval and interval - 1 or catch_up
    -- slots that lapsed
    local step = every * group
    local lapsed = elapsed - catch_up - (stretch + -stretch % admit) / admit - 1
    if lapsed >= every then
        return nil
    elseif lapsed >= 0 then
        lapsed = lapsed * admit
        lapsed = (lapsed - lapsed % step) / step * group + group
        taken = lapsed > taken and lapsed or taken
    end
    -- slots that are due
    local left = 0
    if elapsed >= every then
        left = admit - taken
    elseif elapsed >= 0 then
        left = elapsed * admit
        left = (left - left % step) / step * group + group
        left = (left < admit and left or admit) - taken
    end
    local n = left < may and left or may
    if taken + n >= admit then
        return nil
    elseif n <= 0 then
        local wait = quick_offset(taken, admit, every, group) - elapsed
        return left > 0 and left or 0, nil, wait > 0 and wait or 0
    end
    local past = elapsed - quick_offset(taken + burst, admit, every, group)
    taken = taken + n
    local wait = quick_offset(taken, admit, every, group) - elapsed
    late = past > 0 and past > late + 0 and int(past) or late
    return left, from .. ':' .. int(taken) .. ':' .. late .. ':' .. now_text .. rest, wait > 0 and wait or 0
end
