/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins that wait for the verdict of the challenge service on their token (queues with `challenge:
 * external`). Each request is held; it ends with the verdict, at its deadline, or when its client
 * is gone. How many may wait is bounded.
 */
#ifndef TL_VERIFICATIONS_H
#define TL_VERIFICATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/puzzle.h"
#include "common/wire/names.h"
#include "worker/visit/visit.h"

struct tl_verifications;

/* A newcomer with a token. */
struct tl_token_join {
    unsigned lane;
    char visitor[TL_VISITOR_MAX + 1]; /* "": a new one */
    char id[TL_PUZZLE_ID_LENGTH + 1]; /* of the token; the join must spend it */
    int64_t kept_until;               /* Unix seconds: until then the id is remembered as spent */
};

/* Joins a newcomer whose token is good; false: refused. */
typedef bool tl_token_passed(struct tl_visit *visit, const struct tl_token_join *join);

/* NULL when out of memory. */
struct tl_verifications *tl_verifications_new(tl_token_passed *passed);
/* Call when nothing waits any more. NULL allowed; clears the caller's pointer. */
void tl_verifications_free(struct tl_verifications **verifications);

/* Holds the request while its token is verified. join: without id and kept_until, which come from
 * the token. False: refused. */
bool tl_verification_begin(struct tl_visit *visit, const struct tl_token_join *join,
                           const char *token);
/* The verdict on a question (`verify` of the worker). */
void tl_verification_ended(struct tl_worker *worker, uint64_t number,
                           const struct tl_verdict *verdict);
/* Call every tick: ends what has reached its deadline, and what no client waits for. */
void tl_verifications_tick(struct tl_worker *worker, int64_t now_ms);
/* Refuses all that wait, as the process stops. */
void tl_verifications_stop(struct tl_worker *worker);
uint64_t tl_verifications_count(const struct tl_verifications *verifications);

#endif
