/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/role/queue_metrics.h"
#include "common/wire/names.h"
#include "common/wire/place.h"

enum {
    LABEL_SIZE = TL_QUEUE_NAME_MAX + 96,
    STATES_MAX = 16, /* more than a queue has */
};

struct tl_queue_series {
    struct tl_queue_metrics *owner;
    char name[TL_QUEUE_NAME_MAX + 1];
    bool named; /* it has series of its own */
    struct tl_metrics *values;
    struct tl_metrics *lanes[TL_LANES_MAX]; /* NULL: not used yet */
    _Atomic(const char *) state;            /* NULL: not known yet */
    struct tl_queue_series *next;
};

struct tl_queue_metrics {
    const struct tl_queue_metrics_tables *tables;
    uint64_t most, n_named, n_others;
    struct tl_queue_series *first;
    struct tl_metrics *gone;                     /* what others counted that were removed... */
    struct tl_metrics *gone_lanes[TL_LANES_MAX]; /* ...and their lanes; NULL: never used */
    bool had_others;
    pthread_mutex_t lock; /* the list, and which lanes there are; values are atomic */
};

struct tl_queue_metrics *tl_queue_metrics_new(const struct tl_queue_metrics_tables *tables,
                                              uint64_t most)
{
    struct tl_queue_metrics *metrics = calloc(1, sizeof(*metrics));
    if (metrics == NULL)
        return NULL;
    metrics->tables = tables;
    metrics->most = most;
    metrics->gone = tl_metrics_new(tables->queue, tables->n_queue);
    if (metrics->gone != NULL && pthread_mutex_init(&metrics->lock, NULL) == 0)
        return metrics;
    free(metrics->gone);
    free(metrics);
    return NULL;
}

static void free_series(struct tl_queue_series *series)
{
    for (unsigned lane = 0; lane < TL_LANES_MAX; lane++)
        free(series->lanes[lane]);
    free(series->values);
    free(series);
}

void tl_queue_metrics_free(struct tl_queue_metrics **metrics_in)
{
    struct tl_queue_metrics *metrics = *metrics_in;
    if (metrics == NULL)
        return;
    while (metrics->first != NULL) {
        struct tl_queue_series *series = metrics->first;
        metrics->first = series->next;
        free_series(series);
    }
    for (unsigned lane = 0; lane < TL_LANES_MAX; lane++)
        free(metrics->gone_lanes[lane]);
    free(metrics->gone);
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
    *metrics_in = NULL;
}

struct tl_queue_series *tl_queue_metrics_add(struct tl_queue_metrics *metrics, const char *queue)
{
    struct tl_queue_series *series = calloc(1, sizeof(*series));
    if (series == NULL)
        return NULL;
    series->owner = metrics;
    series->values = tl_metrics_new(metrics->tables->queue, metrics->tables->n_queue);
    if (series->values == NULL) {
        free(series);
        return NULL;
    }
    snprintf(series->name, sizeof(series->name), "%s", queue);
    pthread_mutex_lock(&metrics->lock);
    series->named = metrics->n_named < metrics->most;
    metrics->n_named += series->named;
    metrics->n_others += !series->named;
    metrics->had_others = metrics->had_others || !series->named;
    series->next = metrics->first;
    metrics->first = series;
    pthread_mutex_unlock(&metrics->lock);
    return series;
}

/* What it has counted stays in the sum of the others. Without memory for a lane, only that lane's
 * counters seem to start again. */
static void keep_counts(struct tl_queue_metrics *metrics, const struct tl_queue_series *series)
{
    const struct tl_queue_metrics_tables *tables = metrics->tables;
    tl_metrics_add_up(metrics->gone, series->values);
    for (unsigned lane = 0; lane < TL_LANES_MAX; lane++) {
        if (series->lanes[lane] == NULL)
            continue;
        if (metrics->gone_lanes[lane] == NULL)
            metrics->gone_lanes[lane] = tl_metrics_new(tables->lane, tables->n_lane);
        if (metrics->gone_lanes[lane] != NULL)
            tl_metrics_add_up(metrics->gone_lanes[lane], series->lanes[lane]);
    }
}

void tl_queue_metrics_remove(struct tl_queue_metrics *metrics, struct tl_queue_series **series_in)
{
    struct tl_queue_series *series = *series_in;
    if (series == NULL)
        return;
    pthread_mutex_lock(&metrics->lock);
    struct tl_queue_series **link = &metrics->first;
    while (*link != series)
        link = &(*link)->next;
    *link = series->next;
    metrics->n_named -= series->named;
    metrics->n_others -= !series->named;
    if (!series->named)
        keep_counts(metrics, series);
    pthread_mutex_unlock(&metrics->lock);
    free_series(series);
    *series_in = NULL;
}

struct tl_metrics *tl_queue_series_values(struct tl_queue_series *series)
{
    return series->values;
}

struct tl_metrics *tl_queue_series_lane(struct tl_queue_series *series, unsigned lane)
{
    struct tl_queue_metrics *metrics = series->owner;
    if (lane >= TL_LANES_MAX || series->lanes[lane] != NULL)
        return lane < TL_LANES_MAX ? series->lanes[lane] : NULL;
    struct tl_metrics *block = tl_metrics_new(metrics->tables->lane, metrics->tables->n_lane);
    pthread_mutex_lock(&metrics->lock);
    series->lanes[lane] = block;
    pthread_mutex_unlock(&metrics->lock);
    return block;
}

void tl_queue_series_set_state(struct tl_queue_series *series, const char *state)
{
    atomic_store(&series->state, state);
}

/* ---- Prometheus text ---- */

/* What is written, and where to. */
struct writing {
    const struct tl_queue_metrics *metrics;
    const char *label;
    struct tl_metrics **blocks; /* room for those of all others, and of those that are gone */
    struct tl_text *out;
};

/* The blocks of the others, and what those that are gone have counted. lane -1: of the queues. */
static size_t collect_others(const struct writing *writing, int lane)
{
    const struct tl_queue_metrics *metrics = writing->metrics;
    struct tl_metrics *gone = lane < 0 ? metrics->gone : metrics->gone_lanes[lane];
    size_t n = 0;
    if (!metrics->had_others)
        return 0;
    for (struct tl_queue_series *series = metrics->first; series != NULL; series = series->next) {
        struct tl_metrics *block = lane < 0 ? series->values : series->lanes[lane];
        if (!series->named && block != NULL)
            writing->blocks[n++] = block;
    }
    if (gone != NULL)
        writing->blocks[n++] = gone;
    return n;
}

static void write_queue_row(const struct writing *writing, size_t row)
{
    char label[LABEL_SIZE];
    tl_metrics_write_head(&writing->metrics->tables->queue[row], writing->out);
    for (struct tl_queue_series *series = writing->metrics->first; series != NULL;
         series = series->next) {
        snprintf(label, sizeof(label), "%s,queue=\"%s\"", writing->label, series->name);
        if (series->named)
            tl_metrics_write_samples(&series->values, 1, row, label, writing->out);
    }
    snprintf(label, sizeof(label), "%s,queue=\"%s\"", writing->label, TL_QUEUE_METRICS_OTHER);
    size_t n = collect_others(writing, -1);
    tl_metrics_write_samples(writing->blocks, n, row, label, writing->out);
}

static void write_lane_row(const struct writing *writing, size_t row)
{
    char label[LABEL_SIZE];
    tl_metrics_write_head(&writing->metrics->tables->lane[row], writing->out);
    for (unsigned lane = 0; lane < TL_LANES_MAX; lane++) {
        for (struct tl_queue_series *series = writing->metrics->first; series != NULL;
             series = series->next) {
            if (!series->named || series->lanes[lane] == NULL)
                continue;
            snprintf(label, sizeof(label), "%s,queue=\"%s\",lane=\"%u\"", writing->label,
                     series->name, lane);
            tl_metrics_write_samples(&series->lanes[lane], 1, row, label, writing->out);
        }
        snprintf(label, sizeof(label), "%s,queue=\"%s\",lane=\"%u\"", writing->label,
                 TL_QUEUE_METRICS_OTHER, lane);
        size_t n = collect_others(writing, (int)lane);
        tl_metrics_write_samples(writing->blocks, n, row, label, writing->out);
    }
}

/* How many of the others are in a state. */
struct tally {
    const char *state;
    unsigned queues;
};

static void count_state(struct tally tallies[STATES_MAX], const char *state)
{
    for (size_t i = 0; i < STATES_MAX; i++) {
        if (tallies[i].state != NULL && strcmp(tallies[i].state, state) != 0)
            continue;
        tallies[i].state = state;
        tallies[i].queues++;
        return;
    }
}

/* One series for each queue with the state as a label; of the others, how many are in each. */
static void write_states(const struct writing *writing)
{
    const char name[] = "tellerline_queue_state";
    struct tally tallies[STATES_MAX] = {0};
    tl_text_append(writing->out,
                   "# HELP %s 1, with the state of the queue as a label; of the others, how many "
                   "queues are in it\n# TYPE %s gauge\n",
                   name, name);
    for (struct tl_queue_series *series = writing->metrics->first; series != NULL;
         series = series->next) {
        const char *state = atomic_load(&series->state);
        if (state != NULL && series->named)
            tl_text_append(writing->out, "%s{%s,queue=\"%s\",state=\"%s\"} 1\n", name,
                           writing->label, series->name, state);
        else if (state != NULL)
            count_state(tallies, state);
    }
    for (size_t i = 0; i < STATES_MAX && tallies[i].state != NULL; i++)
        tl_text_append(writing->out, "%s{%s,queue=\"%s\",state=\"%s\"} %u\n", name, writing->label,
                       TL_QUEUE_METRICS_OTHER, tallies[i].state, tallies[i].queues);
}

void tl_queue_metrics_write(struct tl_queue_metrics *metrics, const char *label,
                            struct tl_text *out)
{
    pthread_mutex_lock(&metrics->lock);
    const struct writing writing = {.metrics = metrics,
                                    .label = label,
                                    .blocks =
                                        calloc(metrics->n_others + 1, sizeof(struct tl_metrics *)),
                                    .out = out};
    out->failed = out->failed || writing.blocks == NULL;
    bool any = writing.blocks != NULL && (metrics->first != NULL || metrics->had_others);
    for (size_t row = 0; any && row < metrics->tables->n_queue; row++)
        write_queue_row(&writing, row);
    for (size_t row = 0; any && row < metrics->tables->n_lane; row++)
        write_lane_row(&writing, row);
    if (any && metrics->tables->state)
        write_states(&writing);
    pthread_mutex_unlock(&metrics->lock);
    free(writing.blocks);
}
