/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The subscribers of all queues as a data structure: a ring in which each gets its turn, and an
 * index by place, or by visitor of those whose place has no number yet; and what one of them is
 * told: events over its stream, and what the client knows already. Who is told, subscribers.c
 * decides.
 */
#ifndef TL_SUBSCRIBER_TABLE_H
#define TL_SUBSCRIBER_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sodium.h>

#include "common/auth/ticket.h"
#include "common/line/line.h"
#include "common/line/placemap.h"
#include "worker/http/clients.h"

struct tl_queue;
struct tl_stream;
struct tl_visit;
struct tl_worker;

/* An event stream, or a request that waits for a change. */
struct tl_subscriber {
    struct tl_subscriber *prev, *next; /* the ring */
    struct tl_subscriber *chain;       /* the next older one at the same place (tabs, devices) */
    struct tl_subscriber *chain_back;  /* the one before it there; NULL: it is the first */
    struct tl_worker *worker;          /* borrowed, and so is: */
    struct tl_queue *queue;
    struct tl_stream *stream;   /* or: */
    struct tl_visit *visit;     /* of a request, which is held */
    struct tl_ticket ticket;    /* of its place, which has a number or not yet */
    bool give_ticket;           /* the next view carries the ticket */
    bool spent;                 /* not numbered: a JOIN is refused, its place may have ended */
    bool over;                  /* not numbered: its place has ended, for this... */
    unsigned reason;            /* ...reason (enum tl_reason); 0: not known */
    bool until_admitted;        /* a request that waits only for its admission */
    bool told;                  /* a view was sent, or is known to the client */
    unsigned told_weather;      /* as told: how the queue was (struct tl_weather) */
    enum tl_line_status status; /* as told */
    uint64_t ahead;             /* as told */
    uint64_t notice;            /* version of the notice told */
    const char *language;       /* of a stream: in which it is told; lasts as long; NULL: any */
    int64_t told_ms;            /* the last view */
    int64_t moved_ms;           /* the last view that changed the position; 0: none */
    int64_t wrote_ms;           /* the last byte */
    int64_t ticket_ms;          /* the last ticket given, or the start */
    int64_t asked_ms;           /* the last question about an unknown place */
    int64_t ask_after_ms;       /* the line was full: no question before */
    int64_t deadline_ms;        /* of a request */
    struct tl_client client;    /* as counted */
    struct tl_address address;  /* of the client */
    bool has_address;           /* else it is not known */
    uint64_t blocks;            /* version of the blocked prefixes that let it pass */
};

struct tl_subscriber_table {
    struct tl_placemap first;   /* of each chain, by its key */
    struct tl_subscriber *turn; /* the next to have its turn; NULL: the table is empty */
    size_t n;
    unsigned char key[crypto_shorthash_KEYBYTES]; /* so that clients cannot choose chains */
};

void tl_subscriber_table_init(struct tl_subscriber_table *table);
/* It must be empty. */
void tl_subscriber_table_clear(struct tl_subscriber_table *table);

/* A new subscriber of the ticket's visitor, whose turn comes last. NULL when out of memory. */
struct tl_subscriber *tl_subscriber_table_add(struct tl_subscriber_table *table,
                                              struct tl_queue *queue,
                                              const struct tl_ticket *ticket);
/* Removes and frees it; its stream and request are the caller's. */
void tl_subscriber_table_remove(struct tl_subscriber_table *table,
                                struct tl_subscriber *subscriber);
/* Gives a subscriber its place, or, after a draw or a move, another one. False when out of memory.
 */
bool tl_subscriber_table_set_place(struct tl_subscriber_table *table,
                                   struct tl_subscriber *subscriber, uint64_t generation,
                                   tl_place place);

/* The newest subscriber at this place (older ones follow by `chain`), or NULL. Where the place has
 * no number yet, those of this visitor; else visitor is not read. */
struct tl_subscriber *tl_subscriber_table_first(const struct tl_subscriber_table *table,
                                                const struct tl_queue *queue, const char *visitor,
                                                tl_place place);
/* The subscriber whose turn it is, or NULL; the next call gives the one behind it. */
struct tl_subscriber *tl_subscriber_table_next(struct tl_subscriber_table *table);

/* ---- what one subscriber is told, and when (telling.c); now_ms: local monotonic time ---- */

/* The first places in the line are told of each step at once. */
#define TL_TELLING_FRONT 20

/* Is the client to be told this state now? Not if it knows, or was told a similar one lately. */
bool tl_telling_due(const struct tl_subscriber *subscriber, const struct tl_line_view *state,
                    int64_t now_ms);
/* Does the next view carry the ticket? */
bool tl_telling_gives_ticket(const struct tl_subscriber *subscriber,
                             const struct tl_line_view *state, int64_t now_ms);
/* The client knows this state. */
void tl_telling_note(struct tl_subscriber *subscriber, const struct tl_line_view *state,
                     int64_t now_ms);

/* The rest is for streams, and does nothing while one is still sending the last event. False when
 * the stream is to be dropped. */

/* Sends an event. data is JSON. */
bool tl_telling_event(struct tl_subscriber *subscriber, const char *event, const char *data,
                      size_t length, int64_t now_ms);
/* Sends the view of the place. */
bool tl_telling_view(struct tl_subscriber *subscriber, const struct tl_line_view *state,
                     int64_t now_ms);
/* Sends when the client is to reconnect: in min_ms, and up to spread_ms more at random. */
bool tl_telling_retry(struct tl_subscriber *subscriber, unsigned min_ms, unsigned spread_ms);
/* Sends the notice or a heartbeat when one is due. */
bool tl_telling_maintain(struct tl_subscriber *subscriber, int64_t now_ms);

#endif
