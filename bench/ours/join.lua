-- SPDX-License-Identifier: Apache-2.0
-- For wrk: every request is a new visitor.
wrk.method = "POST"
wrk.headers["Content-Length"] = "0"
