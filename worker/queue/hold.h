/* Requests that wait: for their command to be applied, or for the store to say what it knows of a
 * place. */
#ifndef TL_HOLD_H
#define TL_HOLD_H

#include "worker/process/edge.h"

enum tl_hold_kind {
    TL_HOLD_JOIN,    /* until the place is known */
    TL_HOLD_COMMAND, /* LEAVE, COMPLETE, RENEW: until it is applied */
    TL_HOLD_LOOKUP,  /* until the store has answered, and our line has caught up if need be */
};

struct tl_hold {
    struct tl_hold *prev, *next; /* in the edge's list */
    struct tl_hold *next_waiter; /* of the same command */
    enum tl_hold_kind kind;
    struct tl_request *request;
    struct tl_room *room;
    struct tl_pending_command *pending; /* JOIN, COMMAND */
    uint64_t lookup;                    /* LOOKUP: its number */
    bool lagging;            /* LOOKUP: the store knows the place, our line does not yet */
    struct tl_ticket ticket; /* COMMAND, LOOKUP: of the visitor */
    int64_t since_us, deadline_ms;
};

/* Holds the request for this command. False when out of memory: then nothing was held. */
bool tl_hold_for_call(struct tl_room *room, struct tl_request *request,
                      struct tl_pending_command *pending, const struct tl_ticket *ticket);
/* Holds the request and asks the store about the ticket's place. */
bool tl_hold_for_lookup(struct tl_room *room, struct tl_request *request,
                        const struct tl_ticket *ticket);

/* The outbox's callback: answers the requests that wait for the command. context is the room. */
void tl_hold_settle(void *context, struct tl_pending_command *pending,
                    const struct tl_pending_result *result);
/* The store's answer to a lookup. */
void tl_hold_found(struct tl_edge *edge, uint64_t lookup, enum tl_lookup_found found,
                   enum tl_reason reason);
/* Every tick: answers those whose time is over, and those whose line has caught up. */
void tl_hold_tick(struct tl_edge *edge, int64_t now_ms);
/* Answers all lookups of a room that goes away (or of all rooms: NULL). */
void tl_hold_drop_lookups(struct tl_edge *edge, const struct tl_room *room);

#endif
