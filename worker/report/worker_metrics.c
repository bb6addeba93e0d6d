/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/worker_metrics.h"

#define METRIC(handle, type, name, help) [handle] = {name, help, type},
const struct tl_metric_desc tl_worker_metrics[TL_WORKER_METRICS] = {
#include "worker/report/worker_metrics.def"
};

const char *tl_readiness_text(enum tl_readiness readiness)
{
    switch (readiness) {
    case TL_NOT_STARTED:
        return "starting";
    case TL_STORE_DOWN:
        return "the store cannot be reached";
    case TL_STORE_NO_DISK:
        return "the store cannot save its data and takes no joins (MISCONF): is its disk full?";
    case TL_STORE_NO_MEMORY:
        return "the store is at its memory limit: joins are refused";
    case TL_LINES_LOADING:
        return "lines are being loaded";
    case TL_QUEUES_TROUBLED:
        return "the data of all queues is damaged";
    case TL_DRAINING:
        return "stopping";
    case TL_READY:
        return "ready";
    }
    return "unknown";
}
