/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker process reports to its parent in shared memory: its metrics, and its slot. */
#ifndef TL_WORKER_METRICS_H
#define TL_WORKER_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/metrics.h"

/* Handles, in the order of worker_metrics.def. */
enum tl_worker_metric {
#define METRIC(handle, type, name, help) handle,
#include "worker/report/worker_metrics.def"
#undef METRIC
    TL_WORKER_METRICS
};

extern const struct tl_metric_desc tl_worker_metrics[TL_WORKER_METRICS];

enum tl_readiness {
    TL_NOT_STARTED,
    TL_STORE_DOWN,
    TL_STORE_NO_DISK,   /* it answers, but takes no batch: MISCONF */
    TL_STORE_NO_MEMORY, /* OOM */
    TL_LINES_LOADING,
    TL_QUEUES_TROUBLED,
    TL_DRAINING,
    TL_READY,
};

struct tl_slot {
    _Atomic int64_t beats;       /* grows with every tick of its loop */
    _Atomic int readiness;       /* enum tl_readiness */
    _Atomic bool accepts;        /* it takes connections from its listening socket */
    _Atomic int64_t accepted;    /* how many it took so far */
    _Atomic uint32_t ticket_key; /* fingerprint of the key that signs; 0: none yet */
};

/* The reason for /readyz and the service manager. */
const char *tl_readiness_text(enum tl_readiness readiness);

#endif
