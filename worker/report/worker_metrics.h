/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of a worker process. */
#ifndef TL_WORKER_METRICS_H
#define TL_WORKER_METRICS_H

#include "common/base/metrics.h"

/* Handles, in the order of worker_metrics.def. */
enum tl_worker_metric {
#define METRIC(handle, type, name, help) handle,
#include "worker/report/worker_metrics.def"
#undef METRIC
    TL_WORKER_METRICS
};

extern const struct tl_metric_desc tl_worker_metrics[TL_WORKER_METRICS];

#endif
