-- SPDX-License-Identifier: Apache-2.0
-- Asks Tellerline whether a request may pass. In haproxy.cfg:
--
--   global:    lua-load-per-thread /etc/haproxy/tellerline.lua
--   frontend:  http-request lua.tellerline_check QUEUE unless ...
--              http-request lua.tellerline_cookies if ...
--
-- tellerline_cookies leaves only Tellerline's cookies in a request: a site's other cookies can be too long for it.
-- tellerline_check sets txn.tellerline to "in" (and txn.tellerline_visitor), "out" (and txn.tellerline_location: where to
-- wait), or "down" when there was no usable answer.

-- The frontend of haproxy.cfg that passes checks on to a worker; it answers within three attempts of 1.5 s.
local CHECKS = "abns@tellerline-checks"
local TIMEOUT_MS = 6000

-- The header's values as HAProxy's client wants them, or nil. Lists of header values count from 0 here.
local function values(headers, name)
    local found = headers[name]
    if found == nil then
        return nil
    end
    local list = {}
    for i = 0, #found do
        list[#list + 1] = found[i]
    end
    return list
end

-- The value of a Cookie header with only Tellerline's cookies, or nil. "__Host-" is before the name where visitors come by
-- https.
local function own_cookies(headers)
    local own = {}
    for _, line in ipairs(values(headers, "cookie") or {}) do
        for cookie in line:gmatch("[^; ][^;]*") do
            if cookie:find("^tellerline_") or cookie:find("^__Host%-tellerline_") then
                own[#own + 1] = cookie
            end
        end
    end
    return own[1] and table.concat(own, "; ")
end

local function keep_own_cookies(txn)
    local own = own_cookies(txn.http:req_get_headers())
    txn.http:req_del_header("cookie")
    if own then
        txn.http:req_add_header("cookie", own)
    end
end

local function first(headers, name)
    local found = headers and headers[name]
    return found and (found[0] or found[1])
end

local function original_url(txn)
    local scheme = txn.sf:ssl_fc() == 1 and "https" or "http"
    return scheme .. "://" .. txn.sf:req_fhdr("host") .. txn.sf:pathq()
end

local function check(txn, queue)
    local headers = txn.http:req_get_headers()
    local own = own_cookies(headers)
    local answer = core.httpclient():get({
        url = "http://127.0.0.1/v1/queues/" .. queue .. "/check",
        dst = CHECKS,
        headers = {
            cookie = own and { own },
            authorization = values(headers, "authorization"),
            ["user-agent"] = values(headers, "user-agent"),
            ["x-forwarded-for"] = values(headers, "x-forwarded-for"),
            ["x-forwarded-proto"] = values(headers, "x-forwarded-proto"),
            ["x-original-url"] = { original_url(txn) },
        },
        timeout = TIMEOUT_MS,
    })
    local status = answer and answer.status
    local visitor = first(answer and answer.headers, "x-tellerline-visitor")
    local location = first(answer and answer.headers, "x-tellerline-location")
    if status == 204 then
        txn:set_var("txn.tellerline", "in")
        txn:set_var("txn.tellerline_visitor", visitor or "")
    elseif status == 401 and location then
        txn:set_var("txn.tellerline", "out")
        txn:set_var("txn.tellerline_location", location)
    else
        txn:set_var("txn.tellerline", "down")
    end
end

core.register_action("tellerline_check", { "http-req" }, check, 1)
core.register_action("tellerline_cookies", { "http-req" }, keep_own_cookies)
