/* Why a request is refused: what predicates and handlers return instead of answering themselves. */
#ifndef TL_REFUSAL_H
#define TL_REFUSAL_H

#include <stdbool.h>

enum tl_refusal_kind {
    TL_REFUSAL_NOT_FOUND,
    TL_REFUSAL_METHOD,
    TL_REFUSAL_NO_QUEUE,
    TL_REFUSAL_BAD_BODY,
    TL_REFUSAL_BAD_QUERY,
    TL_REFUSAL_NOT_JSON,
    TL_REFUSAL_TOO_LARGE,
    TL_REFUSAL_NOT_TRUSTED,
    TL_REFUSAL_BAD_TICKET,
    TL_REFUSAL_BY_INVITATION,
    TL_REFUSAL_BAD_INVITE,
    TL_REFUSAL_INVITE_SPENT,
    TL_REFUSAL_TOO_MANY,
    TL_REFUSAL_OLD_GENERATION,
    TL_REFUSAL_NOT_NUMBERED,
    TL_REFUSAL_NOT_ADMITTED,
    TL_REFUSAL_BUSY,    /* a limit on the work in progress is reached */
    TL_REFUSAL_STORE,   /* the store cannot be reached, or refuses */
    TL_REFUSAL_LOADING, /* the line is not in memory yet */
    TL_REFUSAL_UNKNOWN_OUTCOME,
    TL_REFUSAL_STOPPING,
    TL_REFUSAL_COUNT
};

struct tl_refusal {
    enum tl_refusal_kind kind;
    char detail[256];    /* for a person; nothing secret; "": the kind says it all */
    const char *allowed; /* METHOD: the methods allowed, "GET, HEAD" */
};

/* Fills in a refusal. Returns false, so that a predicate can `return tl_refuse(...)`. */
bool tl_refuse(struct tl_refusal *refusal, enum tl_refusal_kind kind, const char *detail, ...)
    __attribute__((format(printf, 3, 4)));

#endif
