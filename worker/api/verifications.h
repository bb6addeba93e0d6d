/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins that wait for the verdict of the challenge service on their token (queues with `challenge:
 * external`), until its deadline, or until their client is gone. How many may wait is bounded.
 */
#ifndef TL_VERIFICATIONS_H
#define TL_VERIFICATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/visit/visit.h"

/* Waits for the verdict on the token. False: refused. The step begins with tl_verification_passed.
 */
bool tl_verification_begin(struct tl_visit *visit, const char *token, tl_step *step);
/* Is the token good? Else refused. The join must spend the id visit->wait.about, which is
 * remembered as spent until *kept_until (Unix seconds). */
bool tl_verification_passed(struct tl_visit *visit, int64_t *kept_until);
/* Call every tick: ends what no client waits for. */
void tl_verifications_tick(struct tl_worker *worker, int64_t now_ms);

#endif
