/* SPDX-License-Identifier: Apache-2.0 */
/* Which handler answers what, and how the answers look. */
#ifndef TL_ROUTES_H
#define TL_ROUTES_H

#include "worker/http/router.h"
#include "worker/visit/visit.h"

extern const struct tl_route tl_routes[]; /* for tl_router_find */

/* The handlers. */
tl_step tl_handle_join;
tl_step tl_handle_status, tl_handle_events, tl_handle_leave, tl_handle_complete, tl_handle_renew,
    tl_handle_extend;
tl_step tl_handle_transfer, tl_handle_move, tl_handle_page_transfer, tl_handle_page_move;
tl_step tl_handle_check;
tl_step tl_handle_draw;
tl_step tl_handle_feedback;
tl_step tl_handle_page, tl_handle_page_join, tl_handle_page_leave;
tl_step tl_handle_queue, tl_handle_jwks, tl_handle_livez, tl_handle_readyz;
tl_step tl_handle_asset, tl_handle_openapi, tl_handle_problem;

#endif
