/* What a role keeps that looks after queues: its connection, the queues it holds the leases of, and
 * where it stands in their events. */
#ifndef TL_KEEPER_H
#define TL_KEEPER_H

#include "common/role/daemon.h"
#include "common/store/roster.h"
#include "common/store/store.h"
#include "common/store/tail.h"

struct tl_keeper {
    struct tl_store *store;
    struct tl_roster *roster;
    struct tl_tail *tail; /* NULL for a role that does not follow the events */
};

struct tl_keeper_settings {
    struct tl_roster_settings roster; /* owner is filled in */
    tl_tail_handler *on_entry;        /* called with the roster's context; NULL: no tail */
};

/* Opens nothing yet. On failure what was made is taken back. */
bool tl_keeper_init(struct tl_keeper *keeper, const struct tl_daemon *daemon,
                    const struct tl_keeper_settings *settings, struct tl_error *err);
/* Gives the leases back, so that another replica need not wait for them to run out, and frees all
 * (each queue's state through `lost`). Accepts a zeroed keeper. */
void tl_keeper_deinit(struct tl_keeper *keeper);

/* The connection of a queue; NULL: the one for what belongs to no queue. */
struct tl_redis *tl_keeper_redis(const struct tl_keeper *keeper, const char *queue);
/* The held queue these keys belong to (the tail passes them to on_entry); NULL when the lease is
 * not held. */
struct tl_held_queue *tl_keeper_find(const struct tl_keeper *keeper, const struct tl_keys *keys);

#endif
