/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/report/worker_metrics.h"

#define METRIC(handle, type, name, help) [handle] = {name, help, type},
const struct tl_metric_desc tl_worker_metrics[TL_WORKER_METRICS] = {
#include "worker/report/worker_metrics.def"
};

const char *tl_readiness_text(enum tl_readiness readiness)
{
    static const char *const texts[] = {
        [TL_NOT_STARTED] = "starting",
        [TL_STORE_DOWN] = "the store cannot be reached",
        [TL_STORE_NO_DISK] =
            "the store cannot save its data and takes no joins (MISCONF): is its disk full?",
        [TL_STORE_NO_MEMORY] = "the store is at its memory limit: joins are refused",
        [TL_LINES_LOADING] = "lines are being loaded",
        [TL_QUEUES_TROUBLED] = "the data of all queues is damaged",
        [TL_DRAINING] = "stopping",
        [TL_READY] = "ready",
    };
    return texts[readiness];
}
