-- Places for the apply script, as text for ZADD and as runs for events. Put before apply.lua when it is built.

-- Redis takes text as it is, but formats a number slowly. Of numbers in a row only the last two digits differ.
local DIGITS = {
    '00', '01', '02', '03', '04', '05', '06', '07', '08', '09',
    '10', '11', '12', '13', '14', '15', '16', '17', '18', '19',
    '20', '21', '22', '23', '24', '25', '26', '27', '28', '29',
    '30', '31', '32', '33', '34', '35', '36', '37', '38', '39',
    '40', '41', '42', '43', '44', '45', '46', '47', '48', '49',
    '50', '51', '52', '53', '54', '55', '56', '57', '58', '59',
    '60', '61', '62', '63', '64', '65', '66', '67', '68', '69',
    '70', '71', '72', '73', '74', '75', '76', '77', '78', '79',
    '80', '81', '82', '83', '84', '85', '86', '87', '88', '89',
    '90', '91', '92', '93', '94', '95', '96', '97', '98', '99',
}

-- Appends to `list`, of which n are filled, a place and a visitor in turn: the visitors ARGV[from..to] and the places
-- from `place` on.
local function append_scored(list, n, place, from, to)
    local argv, digits_of = ARGV, DIGITS
    while from <= to do
        local digits = place % 100
        local head = int((place - digits) / 100)
        local last = math.min(to, from + 99 - digits)
        local shift = digits + 1 - from
        place = place + last - from + 1
        for i = from, last do
            n = n + 2
            list[n - 1] = head .. digits_of[i + shift]
            list[n] = argv[i]
        end
        from = last + 1
    end
end

-- runs_of for places given as spans { first, count } that do not overlap; sorts them in place.
local function runs_of_spans(spans)
    table.sort(spans, function(a, b) return a[1] < b[1] end)
    local runs, n, past = {}, 0, 0
    for i, span in ipairs(spans) do
        if i > 1 and span[1] == past then
            runs[n] = runs[n] + span[2]
        else
            runs[n + 1] = span[1] - past
            runs[n + 2] = span[2]
            n = n + 2
        end
        past = span[1] + span[2]
    end
    return runs
end

