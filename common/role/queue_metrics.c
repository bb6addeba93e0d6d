/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/role/queue_metrics.h"

enum {
    LABEL_SIZE = TL_QUEUE_NAME_MAX + 96,
    STATES_MAX = 16, /* more than a queue has */
};

struct tl_queue_metrics {
    const struct tl_queue_metrics_tables *tables;
    uint64_t most, n_named, n_others;
    struct tl_queue_series *first;
    struct tl_queue_series *gone; /* in the list: what others that are gone counted; or NULL */
    pthread_mutex_t lock; /* the list, states, and which lanes there are; values are atomic */
};

struct tl_queue_metrics *tl_queue_metrics_new(const struct tl_queue_metrics_tables *tables,
                                              uint64_t most)
{
    struct tl_queue_metrics *metrics = calloc(1, sizeof(*metrics));
    if (metrics == NULL || pthread_mutex_init(&metrics->lock, NULL) != 0) {
        free(metrics);
        return NULL;
    }
    metrics->tables = tables;
    metrics->most = most;
    return metrics;
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
    pthread_mutex_destroy(&metrics->lock);
    free(metrics);
    *metrics_in = NULL;
}

/* Under the lock. */
static struct tl_queue_series *add_series(struct tl_queue_metrics *metrics, const char *name,
                                          bool named)
{
    struct tl_queue_series *series = calloc(1, sizeof(*series));
    if (series == NULL)
        return NULL;
    series->owner = metrics;
    series->named = named;
    series->values = tl_metrics_new(metrics->tables->queue, metrics->tables->n_queue);
    if (series->values == NULL) {
        free(series);
        return NULL;
    }
    snprintf(series->name, sizeof(series->name), "%s", name);
    metrics->n_named += named;
    metrics->n_others += !named;
    series->next = metrics->first;
    metrics->first = series;
    return series;
}

struct tl_queue_series *tl_queue_metrics_add(struct tl_queue_metrics *metrics, const char *queue)
{
    struct tl_queue_series *series = NULL;
    pthread_mutex_lock(&metrics->lock);
    bool named = metrics->n_named < metrics->most;
    if (!named && metrics->gone == NULL)
        metrics->gone = add_series(metrics, TL_QUEUE_METRICS_OTHER, false);
    if (named || metrics->gone != NULL)
        series = add_series(metrics, queue, named);
    pthread_mutex_unlock(&metrics->lock);
    return series;
}

/* What it has counted stays in the sum of the others. Without memory for a lane, only that lane's
 * counters seem to start again. */
static void keep_counts(struct tl_queue_series *gone, const struct tl_queue_series *series)
{
    const struct tl_queue_metrics_tables *tables = gone->owner->tables;
    tl_metrics_add_up(gone->values, series->values);
    for (unsigned lane = 0; lane < TL_LANES_MAX; lane++) {
        if (series->lanes[lane] == NULL)
            continue;
        if (gone->lanes[lane] == NULL)
            gone->lanes[lane] = tl_metrics_new(tables->lane, tables->n_lane);
        if (gone->lanes[lane] != NULL)
            tl_metrics_add_up(gone->lanes[lane], series->lanes[lane]);
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
        keep_counts(metrics->gone, series);
    pthread_mutex_unlock(&metrics->lock);
    free_series(series);
    *series_in = NULL;
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
    pthread_mutex_lock(&series->owner->lock);
    snprintf(series->state, sizeof(series->state), "%s", state);
    pthread_mutex_unlock(&series->owner->lock);
}

/* ---- Prometheus text ---- */

/* What is written, and where to. */
struct writing {
    const struct tl_queue_metrics *metrics;
    const char *label;
    struct tl_metrics **others; /* room for a block of each of them */
    struct tl_text *out;
};

/* The samples of a row: of each queue that has series of its own, and of all others together. lane
 * -1: of the queues. */
static void write_samples(const struct writing *writing, size_t row, int lane)
{
    char label[LABEL_SIZE];
    char of_lane[24] = "";
    size_t n = 0;
    if (lane >= 0)
        snprintf(of_lane, sizeof(of_lane), ",lane=\"%d\"", lane);
    for (struct tl_queue_series *series = writing->metrics->first; series != NULL;
         series = series->next) {
        struct tl_metrics *block = lane < 0 ? series->values : series->lanes[lane];
        if (block != NULL && !series->named)
            writing->others[n++] = block;
        if (block == NULL || !series->named)
            continue;
        snprintf(label, sizeof(label), "%s,queue=\"%s\"%s", writing->label, series->name, of_lane);
        tl_metrics_write_samples(&block, 1, row, label, writing->out);
    }
    snprintf(label, sizeof(label), "%s,queue=\"%s\"%s", writing->label, TL_QUEUE_METRICS_OTHER,
             of_lane);
    tl_metrics_write_samples(writing->others, n, row, label, writing->out);
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
        if (series->state[0] != '\0' && series->named)
            tl_text_append(writing->out, "%s{%s,queue=\"%s\",state=\"%s\"} 1\n", name,
                           writing->label, series->name, series->state);
        else if (series->state[0] != '\0')
            count_state(tallies, series->state);
    }
    for (size_t i = 0; i < STATES_MAX && tallies[i].state != NULL; i++)
        tl_text_append(writing->out, "%s{%s,queue=\"%s\",state=\"%s\"} %u\n", name, writing->label,
                       TL_QUEUE_METRICS_OTHER, tallies[i].state, tallies[i].queues);
}

void tl_queue_metrics_write(struct tl_queue_metrics *metrics, const char *label,
                            struct tl_text *out)
{
    const struct tl_queue_metrics_tables *tables = metrics->tables;
    pthread_mutex_lock(&metrics->lock);
    const struct writing writing = {.metrics = metrics,
                                    .label = label,
                                    .others =
                                        calloc(metrics->n_others + 1, sizeof(struct tl_metrics *)),
                                    .out = out};
    out->failed = out->failed || writing.others == NULL;
    bool any = writing.others != NULL && metrics->first != NULL;
    for (size_t row = 0; any && row < tables->n_queue; row++) {
        tl_metrics_write_head(&tables->queue[row], out);
        write_samples(&writing, row, -1);
    }
    for (size_t row = 0; any && row < tables->n_lane; row++) {
        tl_metrics_write_head(&tables->lane[row], out);
        for (int lane = 0; lane < TL_LANES_MAX; lane++)
            write_samples(&writing, row, lane);
    }
    if (any && tables->state)
        write_states(&writing);
    pthread_mutex_unlock(&metrics->lock);
    free(writing.others);
}
