/* A command that was accepted and whose outcome is not known yet: one JOIN, LEAVE, COMPLETE or
 * RENEW. Owned by the outbox. */
#ifndef TL_PENDING_H
#define TL_PENDING_H

#include <stdbool.h>

#include "common/wire/batch.h"
#include "common/wire/events.h"
#include "common/wire/names.h"
#include "common/wire/place.h"

struct tl_pending_command {
    struct tl_pending_command *chain; /* in the table of joins */
    void *waiters;                    /* the caller's list of requests held for it */
    tl_place place;                   /* LEAVE, COMPLETE, RENEW */
    unsigned lane;                    /* JOIN */
    enum tl_command_kind kind;
    bool sent;    /* the store has it */
    bool invited; /* JOIN: spends an invite, so it serves one request only */
    char visitor[TL_VISITOR_MAX + 1];
};

enum tl_pending_end {
    TL_PENDING_APPLIED, /* with an outcome */
    TL_PENDING_REFUSED, /* the store does not have it */
    TL_PENDING_LOST,    /* the store had it, but the event with its outcome was missed */
};

struct tl_pending_result {
    enum tl_pending_end end;
    enum tl_outcome outcome;
    tl_place place; /* JOIN: the visitor's place */
};

#endif
