/* SPDX-License-Identifier: Apache-2.0 */
/* The notifier: tells the hooks of the configuration what happens to queues. */
#ifndef TL_NOTIFIER_H
#define TL_NOTIFIER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/role/daemon.h"
#include "notifier/hook.h"

extern const struct tl_metric_desc tl_notifier_metrics[TL_NOTIFIER_METRICS];
extern const struct tl_queue_metrics_tables tl_notifier_queue_metrics;

void *tl_notifier_start(struct tl_daemon *daemon, struct tl_error *err);
bool tl_notifier_turn(void *state, int64_t now_ms, struct tl_error *err);
void tl_notifier_stop(void *state);

#endif
