/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits what comes from an address, for all processes of a worker: one table in shared memory,
 * without locks, so that a process can be killed anywhere in it.
 *
 * Each kind has a burst that is allowed at once, and a rate at which it comes back: who has used up
 * the allowance waits for the next one, not for the end of a minute, and gets no more than others
 * of the address by being faster. That is the generic cell rate algorithm (ITU-T I.371).
 *
 * Counted is a customer: an IPv4 address or an IPv6 /56. A /48, which has 256 of those, has 16
 * times the allowance. The table has a fixed size. One network (an IPv4 /16 or an IPv6 /32) takes
 * at most a sixteenth of it in a minute; customers without a place in the table share one count of
 * their network, with the allowance of a /48. So a network that brings very many addresses shuts
 * out itself and not others.
 */
#ifndef TL_LIMITER_H
#define TL_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/net.h"

struct tl_limiter;

/* What is counted, each kind on its own. A new kind needs its rule in limiter.c. Unless said
 * otherwise, the whole allowance may come at once. */
enum tl_limiter_kind {
    TL_LIMITER_JOINS,    /* per minute, a third of them at once */
    TL_LIMITER_SHARES,   /* joins under pressure, per second */
    TL_LIMITER_INVITES,  /* that were not genuine, per minute */
    TL_LIMITER_PASSES,   /* the same */
    TL_LIMITER_TOKENS,   /* of a challenge service, the same */
    TL_LIMITER_WAITS,    /* signed waits that join, per minute */
    TL_LIMITER_FEEDBACK, /* reports of an API key on a queue, which stand for an address, per second
                          */
    TL_LIMITER_SIGN_INS, /* tokens of operators that were not genuine, per minute */
    TL_LIMITER_SESSIONS, /* their sessions, the same */
    TL_LIMITER_VIEWS,    /* waiting pages that are made, per minute, a third of them at once */
    TL_LIMITER_PAGES,    /* pages of the list of a draw, per second */
    TL_LIMITER_REPEATS,  /* commands of a visitor that may come again and again, per minute */
    TL_LIMITER_MOVES,    /* codes made and redeemed that move a place, per minute */
    TL_LIMITER_TRAIL,    /* what is asked of the trail, per second */
    TL_LIMITER_KINDS
};

/* Must be made before forking. NULL with TL_ERR_SYSTEM. */
struct tl_limiter *tl_limiter_new(struct tl_error *err);
void tl_limiter_free(struct tl_limiter **limiter); /* NULL allowed */
/* Counts one, unless that exceeds the allowance, `most` in its minute or second (0: no limit); then
 * false. now_ms: local monotonic time. */
bool tl_limiter_allow(struct tl_limiter *limiter, enum tl_limiter_kind kind,
                      const struct tl_address *address, uint64_t most, int64_t now_ms);
/* Would one more be allowed? Counts nothing. */
bool tl_limiter_within(struct tl_limiter *limiter, enum tl_limiter_kind kind,
                       const struct tl_address *address, uint64_t most, int64_t now_ms);

#endif
