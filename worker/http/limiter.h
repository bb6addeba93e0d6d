/*
 * Limits the joins of an address per minute, in each worker process. Counts are kept for the
 * current minute only, for at most ADDRESSES_MAX addresses. Further addresses are not limited: a
 * flood of addresses then costs a fixed amount of memory and locks no visitor out.
 */
#ifndef TL_LIMITER_H
#define TL_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/networks.h"

struct tl_limiter;

struct tl_limiter *tl_limiter_new(uint64_t per_minute); /* 0: no limit. NULL when out of memory */
void tl_limiter_free(struct tl_limiter **limiter);
/* Counts one, and says whether it is within the limit. now_ms: local monotonic time. */
bool tl_limiter_allow(struct tl_limiter *limiter, const struct tl_address *site, int64_t now_ms);

#endif
