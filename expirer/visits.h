/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of the visitors of a held queue, for the metrics: how many join, are admitted and
 * end in which way, how long they wait and how long their sessions last. It reads the events that
 * the expirer follows anyway, and the copy of the line.
 *
 * Of visitors who joined or were admitted before this process held the queue, the times are not
 * known: they count, but not in the histograms, and the oldest wait is at least as long as told.
 */
#ifndef TL_VISITS_H
#define TL_VISITS_H

#include <stdint.h>

#include "common/line/line.h"
#include "common/role/queue_metrics.h"
#include "common/wire/events.h"

enum tl_visits_metric {
    TL_VISITS_JOINED,
    TL_VISITS_COMPLETED,
    TL_VISITS_LEFT,
    TL_VISITS_EXPIRED,
    TL_VISITS_NO_SHOWS,
    TL_VISITS_REMOVED,
    TL_VISITS_GAVE_UP,
    TL_VISITS_OLDEST_WAIT,
    TL_VISITS_OVER_1M, /* the next are those of longer waits, see look_at_waits */
    TL_VISITS_OVER_5M,
    TL_VISITS_OVER_10M,
    TL_VISITS_OVER_30M,
    TL_VISITS_OVER_1H,
    TL_VISITS_WAIT_TIME,
    TL_VISITS_SESSION_TIME,
    TL_VISITS_METRICS
};

enum tl_visits_lane_metric {
    TL_VISITS_LANE_WAITING,
    TL_VISITS_LANE_JOINED,
    TL_VISITS_LANE_ADMITTED,
    TL_VISITS_LANE_OLDEST_WAIT,
    TL_VISITS_LANE_METRICS
};

extern const struct tl_queue_metrics_tables tl_visits_tables;

struct tl_visits;

/* series is borrowed. NULL when out of memory. */
struct tl_visits *tl_visits_new(struct tl_queue_series *series);
void tl_visits_free(struct tl_visits **visits);

/* A line was loaded: what is known of places that it does not have is forgotten. now_ms: local
 * monotonic time everywhere. */
void tl_visits_start(struct tl_visits *visits, const struct tl_line *line, int64_t now_ms);
/* An entry of the events stream that the line has just taken. */
void tl_visits_apply(struct tl_visits *visits, const struct tl_event_entry *entry, int64_t now_ms);
/* Sets what is seen of the line. Call it about once a second. */
void tl_visits_look(struct tl_visits *visits, const struct tl_line *line, int64_t now_ms);

#endif
