/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "lab/series.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void halve(struct tl_series *series)
{
    struct tl_series_point *points = series->points;
    for (size_t i = 0; i < TL_SERIES_MOST / 2; i++) {
        const struct tl_series_point *first = &points[2 * i];
        const struct tl_series_point *second = &points[2 * i + 1];
        points[i] = (struct tl_series_point){
            .arrived = first->arrived + second->arrived,
            .admitted = first->admitted + second->admitted,
            .waiting = larger(first->waiting, second->waiting),
            .active = larger(first->active, second->active),
        };
    }
    memset(points + TL_SERIES_MOST / 2, 0, TL_SERIES_MOST / 2 * sizeof(*points));
    series->width_ms *= 2;
    series->n = (series->n + 1) / 2;
}

void tl_series_init(struct tl_series *series)
{
    *series = (struct tl_series){.width_ms = 1};
}

void tl_series_note(struct tl_series *series, int64_t now_ms, const struct tl_series_point *point)
{
    while (now_ms / series->width_ms >= TL_SERIES_MOST)
        halve(series);
    size_t index = (size_t)(now_ms / series->width_ms);
    for (size_t i = series->n; i <= index; i++) {
        /* What was noted last holds until now, which may be the very beginning of a stretch. */
        bool before = (int64_t)i * series->width_ms < now_ms;
        series->points[i] = (struct tl_series_point){.waiting = before ? series->waiting : 0,
                                                     .active = before ? series->active : 0};
    }
    struct tl_series_point *at = &series->points[index];
    series->n = index + 1;
    at->arrived += point->arrived;
    at->admitted += point->admitted;
    at->waiting = larger(at->waiting, point->waiting);
    at->active = larger(at->active, point->active);
    series->waiting = point->waiting;
    series->active = point->active;
}
