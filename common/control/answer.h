/* SPDX-License-Identifier: Apache-2.0 */
/* A request to the control room and its answer. */
#ifndef TL_CONTROL_ANSWER_H
#define TL_CONTROL_ANSWER_H

#include <jansson.h>

#include "common/base/error.h"
#include "common/store/actor.h"

#define TL_CONTROL_ETAG_MAX     48  /* bytes of an ETag with its quotes, and the zero */
#define TL_CONTROL_KEY_MAX      128 /* bytes of an Idempotency-Key */
#define TL_CONTROL_PROBLEM_TYPE "application/problem+json"

struct tl_control_request {
    const char *method; /* "GET", "POST", "PUT", "PATCH", "DELETE" */
    /* Path and query as in a request line, percent-encoded:
     * "/v1/admin/queues/concert/line?limit=20". */
    const char *target;
    const json_t *body;          /* NULL: none */
    const char *if_match;        /* NULL: none */
    const char *idempotency_key; /* NULL: none */
    const struct tl_actor *actor;
};

struct tl_control_answer {
    int status;
    json_t *body;                   /* owned; a problem (RFC 9457) from 400 on; NULL: none */
    char etag[TL_CONTROL_ETAG_MAX]; /* "": none */
    int retry_after_s;              /* 0: none */
    char allow[64];                 /* of a 405: the methods there are */
};

void tl_control_answer_clear(struct tl_control_answer *answer);
/* Makes the answer a problem of this status: type, title, status, and the detail from the
 * printf-style text. An answer without memory for it has no body. */
void tl_control_problem(struct tl_control_answer *answer, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for an error: invalid input is 400, an unknown queue 404, a store that cannot be reached
 * or refuses writes 503. */
void tl_control_problem_of(struct tl_control_answer *answer, const struct tl_error *err);
/* Is the status one of success? */
bool tl_control_succeeded(const struct tl_control_answer *answer);

#endif
