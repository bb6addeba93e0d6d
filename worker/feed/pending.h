/* SPDX-License-Identifier: Apache-2.0 */
/* A command that was accepted and whose outcome is not known yet: one JOIN, LEAVE, COMPLETE, RENEW,
 * CLAIM, EXTEND, HAND_OVER, RESTORE, LOST or CALLED. Owned by the outbox. */
#ifndef TL_PENDING_H
#define TL_PENDING_H

#include <stdbool.h>

#include "common/wire/batch.h"
#include "common/wire/events.h"
#include "common/wire/names.h"
#include "common/wire/place.h"

enum { TL_PENDING_NUMBERS = TL_COMMAND_NUMBERS - 1 };

struct tl_pending_command {
    struct tl_pending_command *chain; /* in the table of joins */
    void *waiters;                    /* the caller's list of requests held for it */
    tl_place place;                   /* of all but JOIN, LOST, CALLED */
    char *invite; /* JOIN: it spends this invite, and serves one request only; or NULL */
    uint64_t invite_until_ms; /* as in struct tl_command */
    uint64_t made_ms;         /* JOIN: when, by the store's clock, Unix ms; 0: not known */
    uint64_t numbers[TL_PENDING_NUMBERS]; /* behind the place; LOST, CALLED: all */
    unsigned lane;                        /* JOIN */
    enum tl_command_kind kind;
    unsigned again; /* how often it was gathered again */
    bool leaves;    /* JOIN: the visitor gives the place up as soon as it is known */
    char visitor[TL_VISITOR_MAX + 1];
};

enum tl_pending_end {
    TL_PENDING_APPLIED, /* with an outcome */
    TL_PENDING_REFUSED, /* the store never had it */
    TL_PENDING_LOST,    /* the store may have applied it, and nothing more is heard of it */
};

/* What became of a batch on its way into the store. */
enum tl_batch_fate {
    TL_BATCH_TAKEN,
    TL_BATCH_REFUSED, /* the store does not have it */
    TL_BATCH_UNKNOWN, /* the store may have it; it is not sent again under this number */
};

/* What the store says about a batch that it took. */
struct tl_batch_check {
    bool waits;     /* it is in the stream and not applied yet; or the store did not say */
    uint64_t event; /* applied: its outcome is in an event up to this number. 0: it is gone */
};

#define TL_ENTRY_ID_MAX 48 /* bytes of a stream entry's id, with the NUL */

struct tl_pending_result {
    enum tl_pending_end end;
    enum tl_outcome outcome;
    tl_place place; /* JOIN: the visitor's place */
};

#endif
