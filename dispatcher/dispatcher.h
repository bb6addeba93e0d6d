/* SPDX-License-Identifier: Apache-2.0 */
/* The dispatcher: applies ingest batches to the lines and trims the ingest streams. */
#ifndef TL_DISPATCHER_H
#define TL_DISPATCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/role/daemon.h"

enum tl_dispatcher_metric {
    TL_DISPATCHER_BATCHES,    /* applied */
    TL_DISPATCHER_REPEATED,   /* recognised as sent twice */
    TL_DISPATCHER_COMMANDS,   /* in the batches applied */
    TL_DISPATCHER_POISON,     /* entries set aside */
    TL_DISPATCHER_LOST,       /* pending entries whose payload was gone */
    TL_DISPATCHER_TAKEOVERS,  /* leases taken */
    TL_DISPATCHER_QUEUES,     /* leases held now */
    TL_DISPATCHER_TROUBLED,   /* queues set aside */
    TL_DISPATCHER_UNAPPLIED,  /* entries of their ingest streams not yet applied */
    TL_DISPATCHER_AGE,        /* of the oldest of these, ms */
    TL_DISPATCHER_APPLY_TIME, /* from reading entries to having them applied */
    TL_DISPATCHER_LISTED,     /* all queues there are */
    TL_DISPATCHER_STORE_TIME, /* one command */
    TL_DISPATCHER_METRICS
};

extern const struct tl_metric_desc tl_dispatcher_metrics[TL_DISPATCHER_METRICS];

/* Of a held queue. */
enum tl_dispatcher_queue_metric {
    TL_QUEUE_INGEST_UNAPPLIED, /* entries */
    TL_QUEUE_INGEST_AGE,       /* of the oldest of these, ms */
    TL_QUEUE_COMMANDS,         /* in the batches applied */
    TL_DISPATCHER_QUEUE_METRICS
};

extern const struct tl_queue_metrics_tables tl_dispatcher_queue_metrics;

void *tl_dispatcher_start(struct tl_daemon *daemon, struct tl_error *err);
bool tl_dispatcher_turn(void *state, int64_t now_ms, struct tl_error *err);
void tl_dispatcher_stop(void *state);

#endif
