/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/worker_metrics.h"

#define METRIC(handle, type, name, help) [handle] = {name, help, type},
const struct tl_metric_desc tl_worker_metrics[TL_WORKER_METRICS] = {
#include "worker/report/worker_metrics.def"
};
