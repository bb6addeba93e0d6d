/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the plain way that others are built of: an actor that is one pipe, waiting and active
 * Sorted Sets. */
#ifndef TL_BENCH_LIMIT_H
#define TL_BENCH_LIMIT_H

#include "pipe.h"

void *limit_open(void);
void limit_close(void *actor);
void limit_setup(void *actor);
void limit_join(void *actor, uint64_t first, uint64_t n);
void limit_positions(void *actor, const uint64_t *visitors, size_t n, uint64_t *answers);
uint64_t limit_expire(void *actor, uint64_t most);
void limit_restart(void *actor);
int64_t limit_counted(void *actor);

#endif
