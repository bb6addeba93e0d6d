-- SPDX-License-Identifier: Apache-2.0
-- For wrk: joins from ten addresses in turn, as a trusted proxy forwards them.
local requests, n = {}, 0

function init()
   for i = 1, 10 do
      requests[i] = wrk.format("POST", nil, { ["X-Forwarded-For"] = "198.51." .. i .. ".1", ["Content-Length"] = "0" })
   end
end

function request()
   n = n % 10 + 1
   return requests[n]
end
