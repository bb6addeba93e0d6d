/* SPDX-License-Identifier: Apache-2.0 */
/* A key per visitor, token:<id>, beside the waiting Sorted Set: what several ways share. */
#ifndef TL_BENCH_TOKEN_H
#define TL_BENCH_TOKEN_H

#include "limit.h"

/* Joins with a token key of value WAITING for everyone. */
void token_join(void *actor, uint64_t first, uint64_t n);
/* Takes n from the front of the line and makes their tokens ACTIVE for WAY_TTL_MS; returns how
 * many. set (may be NULL) is a Set that gets their ids. */
uint64_t token_activate(struct pipe *pipe, uint64_t n, const char *set);

#endif
