/* The admitter's loop: listens to events, promotes while there is room. */
#ifndef TL_ADMITTER_H
#define TL_ADMITTER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/metrics.h"
#include "common/role/daemon.h"

enum tl_admitter_metric {
    TL_ADMITTER_ADMITTED,
    TL_ADMITTER_STEPS,      /* calls of the script */
    TL_ADMITTER_IDLE_STEPS, /* of these, how many admitted nobody */
    TL_ADMITTER_QUEUES,
    TL_ADMITTER_STEP_TIME,
    TL_ADMITTER_METRICS
};

extern const struct tl_metric_desc tl_admitter_metrics[TL_ADMITTER_METRICS];

void *tl_admitter_start(struct tl_daemon *daemon, struct tl_error *err);
bool tl_admitter_turn(void *state, int64_t now_ms, struct tl_error *err);
void tl_admitter_stop(void *state);

#endif
