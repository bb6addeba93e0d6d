-- Asks Tellerline whether a request may pass. In haproxy.cfg:
--
--   global:    lua-load-per-thread /etc/haproxy/tellerline.lua
--   frontend:  http-request lua.tellerline_check http://127.0.0.1:8080/v1/queues/QUEUE/check
--
-- It sets txn.tellerline to "in" (and txn.tellerline_visitor), "out" (and txn.tellerline_location: where to wait), or "down"
-- when there was no usable answer.

local TIMEOUT_MS = 1500 -- of one attempt; HAProxy makes up to four

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

local function first(headers, name)
    local found = headers and headers[name]
    return found and (found[0] or found[1])
end

local function original_url(txn)
    local scheme = txn.sf:ssl_fc() == 1 and "https" or "http"
    return scheme .. "://" .. txn.sf:req_fhdr("host") .. txn.sf:pathq()
end

local function check(txn, url)
    local headers = txn.http:req_get_headers()
    local answer = core.httpclient():get({
        url = url,
        headers = {
            cookie = values(headers, "cookie"),
            authorization = values(headers, "authorization"),
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
