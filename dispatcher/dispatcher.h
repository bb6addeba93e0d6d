/* The dispatcher: applies ingest batches to the lines and trims the ingest streams. */
#ifndef TL_DISPATCHER_H
#define TL_DISPATCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/metrics.h"
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
    TL_DISPATCHER_METRICS
};

extern const struct tl_metric_desc tl_dispatcher_metrics[TL_DISPATCHER_METRICS];

void *tl_dispatcher_start(struct tl_daemon *daemon, struct tl_error *err);
bool tl_dispatcher_turn(void *state, int64_t now_ms, struct tl_error *err);
void tl_dispatcher_stop(void *state);

#endif
