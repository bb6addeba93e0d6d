/* SPDX-License-Identifier: Apache-2.0 */
/* Why a request is refused: what predicates and handlers return instead of answering themselves. To
 * programs it is told as RFC 9457 problem details (application/problem+json). */
#ifndef TL_REFUSAL_H
#define TL_REFUSAL_H

#include <stdbool.h>

struct tl_request;

enum tl_refusal_kind {
    TL_REFUSAL_NOT_FOUND,
    TL_REFUSAL_MALFORMED,
    TL_REFUSAL_METHOD,
    TL_REFUSAL_NO_QUEUE,
    TL_REFUSAL_BAD_BODY,
    TL_REFUSAL_BAD_QUERY,
    TL_REFUSAL_NOT_JSON,
    TL_REFUSAL_TOO_LARGE,
    TL_REFUSAL_NOT_TRUSTED,
    TL_REFUSAL_FOREIGN_ORIGIN, /* a page of another web site sent it */
    TL_REFUSAL_BAD_TICKET,
    TL_REFUSAL_BY_INVITATION,
    TL_REFUSAL_BAD_INVITE,
    TL_REFUSAL_INVITE_SPENT,
    TL_REFUSAL_REMOVED,          /* by the operator: the ticket gets no other place */
    TL_REFUSAL_BLOCKED,          /* the operator blocked the address */
    TL_REFUSAL_SHARED,           /* another client came first to this session */
    TL_REFUSAL_CHALLENGE,        /* a new place needs the solution of a puzzle, or a token */
    TL_REFUSAL_CHALLENGE_FAILED, /* there was one, and it is not good */
    TL_REFUSAL_UNVERIFIED,       /* the challenge service cannot say whether a token is good */
    TL_REFUSAL_TOO_MANY,
    TL_REFUSAL_TOO_OFTEN, /* more calls of an API key or an address than it may make */
    TL_REFUSAL_FULL,      /* as many wait as may */
    TL_REFUSAL_DRAINING,  /* the operator takes no new visitors; the line is served */
    TL_REFUSAL_CLOSED,    /* the operator closed the queue */
    TL_REFUSAL_SOLD_OUT,
    TL_REFUSAL_OVER,      /* closes_at has passed */
    TL_REFUSAL_FORGERIES, /* too many tokens of the address were not genuine */
    TL_REFUSAL_OLD_GENERATION,
    TL_REFUSAL_NOT_NUMBERED,
    TL_REFUSAL_NOT_ADMITTED,
    TL_REFUSAL_MOVED,       /* the place is on another device now */
    TL_REFUSAL_NOT_WAITING, /* only a place that waits can be handed over */
    TL_REFUSAL_NO_TRANSFER, /* the operator switched hand-overs off */
    TL_REFUSAL_BAD_CODE,    /* of a hand-over: forged, or of another queue */
    TL_REFUSAL_CODE_USED,
    TL_REFUSAL_CODE_OVER, /* too old, or its place has ended or has its turn */
    TL_REFUSAL_BUSY,      /* a limit on the work in progress is reached */
    TL_REFUSAL_STORE,     /* the store cannot be reached, or refuses */
    TL_REFUSAL_LOADING,   /* the line is not in memory yet */
    TL_REFUSAL_UNKNOWN_OUTCOME,
    TL_REFUSAL_STOPPING,
    TL_REFUSAL_COUNT
};

struct tl_refusal {
    enum tl_refusal_kind kind;
    char detail[512];    /* for a person; nothing secret; "": the kind says it all */
    const char *allowed; /* METHOD: the methods allowed, "GET, HEAD" */
    struct {
        char text[48];
        unsigned parts, bits;
    } puzzle; /* CHALLENGE, CHALLENGE_FAILED: the one to solve (common/auth/puzzle.h); text "": none
               */
    struct {
        const char *provider, *site_key; /* static, or of the configuration */
    } service;                           /* likewise: whose token is asked for; NULL: none's */
};

/* Fills in a refusal. Returns false, so that a predicate can `return tl_refuse(...)`. */
bool tl_refuse(struct tl_refusal *refusal, enum tl_refusal_kind kind, const char *detail, ...)
    __attribute__((format(printf, 3, 4)));

/* The status code of this kind of refusal. */
unsigned tl_problem_status(enum tl_refusal_kind kind);
/* Seconds for Retry-After; 0: none. Differs from call to call, so that clients do not come back all
 * at once. */
unsigned tl_problem_retry_after_s(enum tl_refusal_kind kind);

/* Answers the request with the refusal as JSON. */
void tl_problem_answer(struct tl_request *request, const struct tl_refusal *refusal);

#endif
