/* The admitter: admits the next visitors while there is capacity. */
#ifndef TL_ADMITTER_H
#define TL_ADMITTER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/metrics.h"
#include "common/role/daemon.h"

enum tl_admitter_metric {
    TL_ADMITTER_ADMITTED,   /* visitors */
    TL_ADMITTER_STEPS,      /* calls of the admit script */
    TL_ADMITTER_IDLE_STEPS, /* of these, calls that admitted no visitor */
    TL_ADMITTER_QUEUES,     /* leases held now */
    TL_ADMITTER_TROUBLED,   /* queues set aside */
    TL_ADMITTER_STEP_TIME,  /* one call of the script */
    TL_ADMITTER_METRICS
};

extern const struct tl_metric_desc tl_admitter_metrics[TL_ADMITTER_METRICS];

void *tl_admitter_start(struct tl_daemon *daemon, struct tl_error *err);
bool tl_admitter_turn(void *state, int64_t now_ms, struct tl_error *err);
void tl_admitter_stop(void *state);

#endif
