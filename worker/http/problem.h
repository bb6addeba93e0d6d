/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals as RFC 9457 problem details (application/problem+json). */
#ifndef TL_PROBLEM_H
#define TL_PROBLEM_H

#include "worker/http/refusal.h"
#include "worker/http/server.h"

/* The status code of this kind of refusal. */
unsigned tl_problem_status(enum tl_refusal_kind kind);
/* Seconds for Retry-After; 0: none. Differs from call to call, so that clients do not come back all
 * at once. */
unsigned tl_problem_retry_after_s(enum tl_refusal_kind kind);

/* Answers the request with the refusal as JSON. */
void tl_problem_answer(struct tl_request *request, const struct tl_refusal *refusal);

#endif
