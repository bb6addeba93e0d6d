/*
 * One worker process as its loop sees it: everything that handlers share. All of it belongs to the
 * loop's thread.
 */
#ifndef TL_EDGE_H
#define TL_EDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/base/metrics.h"
#include "common/config/config.h"
#include "common/role/signals.h"
#include "worker/api/secrets.h"
#include "worker/feed/follower.h"
#include "worker/feed/ingest.h"
#include "worker/http/limiter.h"
#include "worker/http/server.h"
#include "worker/page/brand.h"
#include "worker/queue/room.h"
#include "worker/report/slot.h"

struct tl_hold;

/* Held requests, the one whose time is over first in front. */
struct tl_holds {
    struct tl_hold *first, *last;
    uint64_t count;
};

struct tl_edge {
    uv_loop_t loop;
    uv_timer_t tick;
    uv_timer_t sweep; /* for whoever wants to hear of changes */
    struct tl_signals signals;
    uv_poll_t signals_poll;
    const char *role; /* for the log */
    const char *config_path;
    const struct tl_config *config;
    struct tl_secrets secrets;
    struct tl_brand *brand;
    struct tl_networks *proxies; /* whose X-Forwarded-For is believed */
    struct tl_limiter *limiter;
    struct tl_metrics *metrics;
    struct tl_slot *slot;
    char id[33]; /* this process among all workers, as the apply script knows it */

    int listen_fd;
    int64_t since_ms;         /* start of this process */
    struct tl_server *server; /* NULL until the lines are loaded */
    bool failed;
    struct tl_ingest *ingest;
    struct tl_follower *follower;

    struct tl_room **rooms; /* sorted by name */
    size_t n_rooms;
    struct tl_holds holds;   /* for a command's outcome */
    struct tl_holds lookups; /* for an answer of the store */
    uint64_t last_lookup;

    bool ingest_up, follower_up, listed, draining;
    int64_t drain_until_ms;
    uint64_t connections_max; /* event streams and the server's connections together */
    bool clock_known;
    int64_t clock_offset_ms; /* store's Unix ms minus local monotonic ms */
};

/* ---- edge.c: life ---- */

struct tl_edge_settings {
    const char *role; /* for the log; borrowed */
    const char *config_path;
    const struct tl_config *config;
    int listen_fd;
    struct tl_metrics *metrics;
    struct tl_slot *slot;
};
/* Runs a worker process until it is told to stop; returns the exit status. */
int tl_edge_run(const struct tl_edge_settings *settings);

/* Unix time in ms by the store's clock. */
int64_t tl_edge_now_ms(const struct tl_edge *edge);
enum tl_readiness tl_edge_readiness(const struct tl_edge *edge);
bool tl_edge_store_up(const struct tl_edge *edge);
/* Commands accepted but not yet applied, over all queues. */
/* Are there file descriptors left for another event stream, and for the requests beside it? */
bool tl_edge_has_room_for_stream(const struct tl_edge *edge);
size_t tl_edge_in_flight(const struct tl_edge *edge);

/* ---- rooms.c: the queues there are ---- */

struct tl_room *tl_edge_room(const struct tl_edge *edge,
                             const char *name); /* NULL: no such queue */
/* The room, made if need be. NULL when out of memory. */
struct tl_room *tl_edge_make_room(struct tl_edge *edge, const char *name);
void tl_edge_drop_room(struct tl_edge *edge, struct tl_room *room);
/* Fills in what the follower calls. */
void tl_edge_follow(struct tl_edge *edge, struct tl_follower_settings *settings);
/* Hands what has gathered to the ingest thread. */
void tl_edge_flush(struct tl_edge *edge);
/* Every tick: presence, forgetting, levels for the metrics. */
void tl_edge_tend_rooms(struct tl_edge *edge, int64_t now_ms);

#endif
