/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/queues/{q}/check: what gateways ask before they let a request through (nginx
 * auth_request, forward_auth). */
#ifndef TL_CHECK_H
#define TL_CHECK_H

#include "worker/api/visit.h"

/* Decides a check that waited for an event: the callback of holds; context is the api. */
void tl_check_caught_up(void *context, const struct tl_held *held);
/* Decides a check that waited for the outcome of a claim; result NULL: not in time. */
void tl_check_claimed(struct tl_visit *visit, const struct tl_pending_result *result);

#endif
