/* SPDX-License-Identifier: Apache-2.0 */
/* Why a request is refused: what predicates and handlers return instead of answering themselves. To
 * programs it is told as RFC 9457 problem details (application/problem+json). */
#ifndef TL_REFUSAL_H
#define TL_REFUSAL_H

#include <stdbool.h>

#include "common/wire/refusals.h"

struct tl_request;

struct tl_refusal {
    enum tl_refusal_kind kind;
    char detail[512];    /* for a person; nothing secret; "": the kind says it all */
    const char *allowed; /* METHOD: the methods allowed, "GET, HEAD" */
    struct {
        char text[48];
        unsigned parts, bits;
    } puzzle; /* CHALLENGE, CHALLENGE_FAILED: the one to solve (common/auth/puzzle.h); text "": none
               */
    struct {
        const char *provider, *site_key; /* static, or of the configuration */
    } service;                           /* likewise: whose token is asked for; NULL: none's */
};

/* Fills in a refusal. Returns false, so that a predicate can `return tl_refuse(...)`. */
bool tl_refuse(struct tl_refusal *refusal, enum tl_refusal_kind kind, const char *detail, ...)
    __attribute__((format(printf, 3, 4)));

/* Seconds for Retry-After; 0: none. Differs from call to call, so that clients do not come back all
 * at once. */
unsigned tl_problem_retry_after_s(enum tl_refusal_kind kind);

/* Answers the request with the refusal as JSON. */
void tl_problem_answer(struct tl_request *request, const struct tl_refusal *refusal);

#endif
