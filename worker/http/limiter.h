/*
 * Counts what comes from an address, for all processes of a worker: one table in shared memory,
 * without locks, so that a process can be killed anywhere in it.
 *
 * Counted is a customer: an IPv4 address or an IPv6 /56. A /48, which has 256 of those, has 16
 * times the allowance. Counts are of the current window of time, in a table of fixed size. One
 * network (an IPv4 /16 or an IPv6 /32) fills at most a sixteenth of it; customers without a place
 * in the table share one count of their network, with the allowance of a /48. So a network that
 * brings very many addresses shuts out itself and not others.
 */
#ifndef TL_LIMITER_H
#define TL_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/address.h"
#include "common/base/error.h"

struct tl_limiter;

/* What is counted, each kind on its own. A new kind needs its window in limiter.c. */
enum tl_limiter_kind {
    TL_LIMITER_JOINS,     /* per minute */
    TL_LIMITER_SHARES,    /* joins under pressure, per second */
    TL_LIMITER_FORGERIES, /* tokens that were not genuine, per minute */
    TL_LIMITER_WAITS,     /* signed waits that join, per minute */
    TL_LIMITER_FEEDBACK, /* reports of an API key on a queue, which stand for an address, per second
                          */
    TL_LIMITER_SIGN_INS, /* tokens and sessions of operators that were not genuine, per minute */
    TL_LIMITER_PAGES,    /* pages of the list of a draw, per second */
    TL_LIMITER_MOVES,    /* codes made and redeemed that move a place, per minute */
    TL_LIMITER_KINDS
};

/* Must be made before forking. NULL with TL_ERR_SYSTEM. */
struct tl_limiter *tl_limiter_new(struct tl_error *err);
void tl_limiter_free(struct tl_limiter **limiter); /* NULL allowed */
/* Counts one, unless that exceeds `most` in this window (0: no limit); then false. now_ms: local
 * monotonic time. */
bool tl_limiter_allow(struct tl_limiter *limiter, enum tl_limiter_kind kind,
                      const struct tl_address *address, uint64_t most, int64_t now_ms);
/* Would one more be allowed? Counts nothing. */
bool tl_limiter_within(struct tl_limiter *limiter, enum tl_limiter_kind kind,
                       const struct tl_address *address, uint64_t most, int64_t now_ms);

#endif
