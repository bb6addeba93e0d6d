/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/api/handlers.h"
#include "worker/visit/answer.h"

const struct tl_route tl_routes[] = {
    {"POST", "/v1/queues/*/join", tl_handle_join, &tl_json_renderer},
    {"GET", "/v1/queues/*/status", tl_handle_status, &tl_json_renderer},
    {"GET", "/v1/queues/*/events", tl_handle_events, &tl_json_renderer},
    {"POST", "/v1/queues/*/leave", tl_handle_leave, &tl_json_renderer},
    {"POST", "/v1/queues/*/complete", tl_handle_complete, &tl_json_renderer},
    {"POST", "/v1/queues/*/renew", tl_handle_renew, &tl_json_renderer},
    {"POST", "/v1/queues/*/extend", tl_handle_extend, &tl_json_renderer},
    {"POST", "/v1/queues/*/transfer", tl_handle_transfer, &tl_json_renderer},
    {"POST", "/v1/queues/*/move", tl_handle_move, &tl_json_renderer},
    {"POST", "/v1/queues/*/feedback", tl_handle_feedback, &tl_json_renderer},
    {"GET", "/v1/queues/*/check", tl_handle_check, &tl_json_renderer},
    {"GET", "/v1/queues/*/draw", tl_handle_draw, &tl_json_renderer},
    {"GET", "/v1/queues/*", tl_handle_queue, &tl_json_renderer},
    {"GET", "/q/*", tl_handle_page, &tl_page_renderer},
    {"POST", "/q/*/join", tl_handle_page_join, &tl_page_renderer},
    {"POST", "/q/*/leave", tl_handle_page_leave, &tl_page_renderer},
    {"POST", "/q/*/transfer", tl_handle_page_transfer, &tl_page_renderer},
    {"GET", "/q/*/move", tl_handle_page_move, &tl_page_renderer},
    {"POST", "/q/*/move", tl_handle_move, &tl_page_renderer},
    {"GET", "/q/assets/*", tl_handle_asset, &tl_page_renderer},
    {"GET", "/.well-known/jwks.json", tl_handle_jwks, &tl_json_renderer},
    {"GET", "/openapi.yaml", tl_handle_openapi, &tl_json_renderer},
    {"GET", "/problems/*", tl_handle_problem, &tl_json_renderer},
    {"GET", "/livez", tl_handle_livez, &tl_json_renderer},
    {"GET", "/readyz", tl_handle_readyz, &tl_json_renderer},
    {NULL, "/q/", NULL, &tl_page_renderer},
    {NULL, "/", NULL, &tl_json_renderer},
};
