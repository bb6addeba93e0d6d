/* SPDX-License-Identifier: Apache-2.0 */
/* What a queue with a challenge asks for before it gives a new place. `work`: the solution of a
 * puzzle, or for browsers without scripts a signed wait. `external`: a token of the challenge
 * service, which verifies it. */
#ifndef TL_CHALLENGE_H
#define TL_CHALLENGE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/auth/puzzle.h"
#include "worker/visit/visit.h"

/* How long the signed wait is, in seconds. */
#define TL_CHALLENGE_WAIT_S 10
/* So many signed waits of one address; see worker/http/limiter.h for networks. */
#define TL_CHALLENGE_WAITS_A_MINUTE 10

/* What a request brings for the challenge. NULL or "": nothing. */
struct tl_proof {
    const char *solution, *token;
};

/* Does the queue take tokens, and the request bring one that has to be verified? */
bool tl_challenge_takes_token(const struct tl_visit *visit, const struct tl_proof *proof);
/* May this request take a new place, without a verification? True when the queue has no challenge,
 * or the request comes from a trusted caller: then solved->id is "". Or when the request brings a
 * solution: the join must spend solved->id. Else refused, with a fresh puzzle, or with the service
 * whose token is asked for. */
bool tl_challenge_passed(struct tl_visit *visit, const struct tl_proof *proof,
                         struct tl_puzzle_solved *solved);
/* A join with this spent id ended with TL_OUTCOME_SPENT: refuses, with a fresh puzzle if the id was
 * a puzzle's, and not an invite's. Returns false. */
bool tl_challenge_refuse_spent(struct tl_visit *visit, const char *id);
/* Writes the signed wait that a page for this visit offers. */
void tl_challenge_wait(const struct tl_visit *visit, char text[TL_PUZZLE_MAX]);

/*
 * Joins that wait for the verdict of the challenge service on their token, until its deadline, or
 * until their client is gone. How many may wait is bounded.
 */
/* Waits for the verdict on the token. False: refused. The step begins with tl_verification_passed.
 */
bool tl_verification_begin(struct tl_visit *visit, const char *token, tl_step *step);
/* Is the token good? Else refused. The join must spend the id visit->wait.about, which is
 * remembered as spent until *kept_until (Unix seconds). */
bool tl_verification_passed(struct tl_visit *visit, int64_t *kept_until);
/* Questions to the service have ended, for the verifier. */
void tl_verifications_ended(void *worker);
/* Call every tick: ends what no client waits for. */
void tl_verifications_tick(struct tl_worker *worker, int64_t now_ms);

#endif
