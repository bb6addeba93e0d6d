/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a request is refused: the problem types (RFC 9457) of the visitor API and of the admin API.
 * The `type` of a problem is /problems/NAME, which both listeners answer with what the table says
 * of it. docs/integrators/problems.md lists them, and a test compares it with the table.
 */
#ifndef TL_REFUSALS_H
#define TL_REFUSALS_H

#include <stdbool.h>

#include "common/base/text.h"

enum tl_refusal_kind {
    /* the request itself */
    TL_REFUSAL_BAD_REQUEST,
    TL_REFUSAL_BAD_QUERY,
    TL_REFUSAL_BAD_BODY,
    TL_REFUSAL_NOT_JSON,
    TL_REFUSAL_TOO_LARGE,
    TL_REFUSAL_INVALID,
    TL_REFUSAL_METHOD,
    TL_REFUSAL_NOT_FOUND,
    TL_REFUSAL_NO_QUEUE,
    TL_REFUSAL_KEY_IN_USE, /* an Idempotency-Key whose first request is under way */
    TL_REFUSAL_KEY_REUSED, /* ... that was sent with another request */
    /* who asks */
    TL_REFUSAL_BAD_TICKET,
    TL_REFUSAL_BAD_TOKEN, /* of an operator */
    TL_REFUSAL_FORGERIES, /* too many tokens of the address were not genuine */
    TL_REFUSAL_FORBIDDEN, /* to this operator */
    TL_REFUSAL_NOT_TRUSTED,
    TL_REFUSAL_FOREIGN_ORIGIN, /* a page of another web site sent it */
    TL_REFUSAL_BLOCKED,        /* the operator blocked the address */
    TL_REFUSAL_SHARED,         /* another client came first to this session */
    /* to join */
    TL_REFUSAL_BY_INVITATION,
    TL_REFUSAL_BAD_INVITE,
    TL_REFUSAL_INVITE_SPENT,
    TL_REFUSAL_CHALLENGE,        /* a new place needs the solution of a puzzle, or a token */
    TL_REFUSAL_CHALLENGE_FAILED, /* there was one, and it is not good */
    TL_REFUSAL_UNVERIFIED,       /* the challenge service cannot say whether a token is good */
    TL_REFUSAL_TOO_MANY,
    TL_REFUSAL_FULL,     /* as many wait as may */
    TL_REFUSAL_DRAINING, /* the operator takes no new visitors; the line is served */
    TL_REFUSAL_CLOSED,   /* the operator closed the queue */
    TL_REFUSAL_SOLD_OUT,
    TL_REFUSAL_OVER,    /* closes_at has passed */
    TL_REFUSAL_REMOVED, /* by the operator: the ticket gets no other place */
    /* the state of a place, or of what an operator changes */
    TL_REFUSAL_OLD_GENERATION,
    TL_REFUSAL_NOT_NUMBERED,
    TL_REFUSAL_NOT_ADMITTED,
    TL_REFUSAL_MOVED,       /* the place is on another device now */
    TL_REFUSAL_NOT_WAITING, /* only a place that waits can be handed over */
    TL_REFUSAL_NO_TRANSFER, /* the operator switched hand-overs off */
    TL_REFUSAL_BAD_CODE,    /* of a hand-over: forged, or of another queue */
    TL_REFUSAL_CODE_USED,
    TL_REFUSAL_CODE_OVER, /* too old, or its place has ended or has its turn */
    TL_REFUSAL_CONFLICT,
    TL_REFUSAL_LIMIT, /* as many queues, tokens or blocks as may be */
    TL_REFUSAL_CHANGED,
    /* the server */
    TL_REFUSAL_TOO_OFTEN, /* more calls of an API key or an address than it may make */
    TL_REFUSAL_BUSY,      /* a limit on the work in progress is reached */
    TL_REFUSAL_LOADING,   /* the line is not in memory yet */
    TL_REFUSAL_STORE,     /* the store cannot be reached, or refuses */
    TL_REFUSAL_ARCHIVE,   /* PostgreSQL cannot be reached, or is asked too much */
    TL_REFUSAL_UNKNOWN_OUTCOME,
    TL_REFUSAL_STOPPING,
    TL_REFUSAL_INTERNAL,
    TL_REFUSAL_COUNT
};

struct tl_refusal_row {
    const char *name; /* "no-such-queue" */
    unsigned status;
    unsigned retry_after_s; /* after this many seconds at least the same request may succeed; 0: it
                               will not by itself */
    const char *title;
    const char *help; /* what it means, and what to do; sentences */
};

/* Static storage. */
const struct tl_refusal_row *tl_refusal_row(enum tl_refusal_kind kind);

#define TL_REFUSAL_PATH "/problems/" /* and the name: the `type` of a problem */

/* Appends the page about the kind of this name, as plain text. False: there is no such kind. */
bool tl_refusal_page(const char *name, struct tl_text *page);

#endif
