/* The expirer's loop: sleeps until the next deadline, ends what is overdue. */
#ifndef TL_EXPIRER_H
#define TL_EXPIRER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/metrics.h"
#include "common/role/daemon.h"

enum tl_expirer_metric {
    TL_EXPIRER_EXPIRED,
    TL_EXPIRER_ABSENT,
    TL_EXPIRER_STEPS,
    TL_EXPIRER_SNAPSHOTS,
    TL_EXPIRER_GAPS,
    TL_EXPIRER_QUEUES,
    TL_EXPIRER_LATE, /* how long after its deadline the first session of a step ended */
    TL_EXPIRER_METRICS
};

extern const struct tl_metric_desc tl_expirer_metrics[TL_EXPIRER_METRICS];

void *tl_expirer_start(struct tl_daemon *daemon, struct tl_error *err);
bool tl_expirer_turn(void *state, int64_t now_ms, struct tl_error *err);
void tl_expirer_stop(void *state);

#endif
