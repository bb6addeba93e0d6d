/* SPDX-License-Identifier: Apache-2.0 */
/* The expirer: ends sessions at their deadline and drops waiting visitors who went away. */
#ifndef TL_EXPIRER_H
#define TL_EXPIRER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/metrics.h"
#include "common/role/daemon.h"

enum tl_expirer_metric {
    TL_EXPIRER_EXPIRED,    /* sessions */
    TL_EXPIRER_ABSENT,     /* waiting visitors dropped */
    TL_EXPIRER_STEPS,      /* calls of the function expire */
    TL_EXPIRER_SNAPSHOTS,  /* lines loaded */
    TL_EXPIRER_GAPS,       /* found in events */
    TL_EXPIRER_QUEUES,     /* leases held now */
    TL_EXPIRER_TROUBLED,   /* queues set aside */
    TL_EXPIRER_LATE,       /* from a deadline to the function call that serves it */
    TL_EXPIRER_LISTED,     /* all queues there are */
    TL_EXPIRER_STORE_TIME, /* one command */
    TL_EXPIRER_METRICS
};

extern const struct tl_metric_desc tl_expirer_metrics[TL_EXPIRER_METRICS];

void *tl_expirer_start(struct tl_daemon *daemon, struct tl_error *err);
bool tl_expirer_turn(void *state, int64_t now_ms, struct tl_error *err);
void tl_expirer_stop(void *state);

#endif
