/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "worker/feed/follower.h"
#include "worker/queue/queues.h"
#include "worker/report/queue_counts.h"
#include "worker/report/worker_metrics.h"

enum { REPORT_EVERY_MS = 10000 };

static struct tl_queue *at(const struct tl_queues *queues, size_t i)
{
    return queues->list.all[i].thing;
}

void tl_queues_clear(struct tl_queues *queues)
{
    while (queues->list.n > 0) {
        struct tl_queue *queue = at(queues, --queues->list.n);
        tl_queue_free(&queue);
    }
    tl_named_free(&queues->list);
    free(queues->blocks);
    queues->blocks = NULL;
}

struct tl_queue *tl_queues_find(const struct tl_queues *queues, const char *name)
{
    return tl_named_find(&queues->list, name);
}

/* NULL when out of memory. */
static struct tl_queue *add(struct tl_queues *self, const char *name)
{
    struct tl_queue *queue = tl_queues_find(self, name);
    if (queue != NULL)
        return queue;
    queue = tl_queue_new(self->env, name);
    if (queue != NULL && !tl_named_add(&self->list, queue->name, queue))
        tl_queue_free(&queue);
    return queue;
}

enum tl_readiness tl_queues_readiness_here(const struct tl_queues *queues)
{
    const struct tl_queue_env *env = queues->env;
    if (env->draining)
        return TL_DRAINING;
    if (!env->listed)
        return TL_LINES_LOADING;
    bool any_sound = queues->list.n == 0;
    for (size_t i = 0; i < queues->list.n; i++) {
        const struct tl_queue *queue = at(queues, i);
        if (!queue->troubled && queue->line == NULL)
            return TL_LINES_LOADING;
        any_sound = any_sound || !queue->troubled;
    }
    return any_sound ? TL_READY : TL_QUEUES_TROUBLED;
}

void tl_queues_troubles(const struct tl_queues *queues, char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < queues->list.n && length + 1 < size; i++) {
        if (!at(queues, i)->troubled)
            continue;
        int n = snprintf(text + length, size - length, "%s%s", length == 0 ? "not served: " : ", ",
                         at(queues, i)->name);
        length += n > 0 ? (size_t)n : 0;
    }
}

enum tl_readiness tl_queues_readiness(const struct tl_queues *queues)
{
    const struct tl_queue_env *env = queues->env;
    if (!env->draining && !tl_queue_env_store_up(env))
        return TL_STORE_DOWN;
    enum tl_readiness here = tl_queues_readiness_here(queues);
    if (here != TL_READY)
        return here;
    if (env->refuses == TL_ERR_OOM || env->memory_full)
        return TL_STORE_NO_MEMORY;
    return env->refuses == TL_OK ? TL_READY : TL_STORE_NO_DISK;
}

size_t tl_queues_in_flight(const struct tl_queues *queues)
{
    size_t count = 0;
    for (size_t i = 0; i < queues->list.n; i++)
        count += at(queues, i)->outbox->count;
    return count;
}

bool tl_queues_flushed(const struct tl_queues *queues)
{
    bool flushed = true;
    for (size_t i = 0; i < queues->list.n; i++)
        flushed = flushed && tl_outbox_flushed(at(queues, i)->outbox);
    return flushed;
}

/* ---- from the follower ---- */

static struct tl_taken take_line(struct tl_queues *self, struct tl_change *change, int64_t now_ms)
{
    const struct tl_queue_env *env = self->env;
    const struct tl_line *line = change->line;
    struct tl_queue *queue = add(self, change->queue);
    if (queue == NULL) {
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = change->queue},
               "no memory for a queue");
        tl_follower_rebuild(env->follower, change->queue); /* tries again */
        return (struct tl_taken){0};
    }
    bool first = queue->line == NULL;
    tl_queue_set_settings(queue, change->settings, now_ms);
    bool recreated = tl_queue_set_line(queue, change->line, now_ms);
    change->line = NULL;
    if (first)
        tl_log(TL_LOG_INFO, &(struct tl_log_fields){.queue = change->queue},
               "serving the queue: %llu waiting, %llu active",
               (unsigned long long)tl_line_waiting(line), (unsigned long long)tl_line_active(line));
    return (struct tl_taken){.kind = recreated ? TL_TAKEN_RECREATED : TL_TAKEN, .queue = queue};
}

static void take_settings(struct tl_queue *queue, const struct tl_queue_settings *settings,
                          int64_t now_ms)
{
    /* A steered capacity changes every few seconds. */
    const struct tl_capacity_now before = queue->settings.now;
    bool steered = before.capacity != settings->now.capacity || before.stale != settings->now.stale;
    tl_queue_set_settings(queue, settings, now_ms);
    tl_log(steered ? TL_LOG_DEBUG : TL_LOG_INFO, &(struct tl_log_fields){.queue = queue->name},
           "settings changed");
}

/* The follower has logged why; visitors must not see it. queue: NULL without memory. */
static void set_trouble(struct tl_queues *self, struct tl_queue *queue, bool troubled, bool away)
{
    int64_t n = 0;
    if (queue != NULL) {
        queue->troubled = troubled;
        queue->away = away;
    }
    for (size_t i = 0; i < self->list.n; i++)
        n += at(self, i)->troubled;
    tl_metrics_set(self->env->metrics, TL_WORKER_TROUBLED, n);
}

static struct tl_taken drop(struct tl_queues *self, const char *name)
{
    struct tl_queue *queue = tl_named_remove(&self->list, name);
    if (queue == NULL)
        return (struct tl_taken){0};
    set_trouble(self, queue, false, false);
    tl_log(TL_LOG_INFO, &(struct tl_log_fields){.queue = name}, "the queue was deleted");
    queue->deleted = true;
    return (struct tl_taken){.kind = TL_TAKEN_DELETED, .queue = queue};
}

static void take_memory(struct tl_queue_env *env, const struct tl_change *change)
{
    const struct tl_store_memory *memory = &change->memory;
    env->memory_full = change->level == TL_MEMORY_FULL;
    env->memory_percent = tl_store_memory_percent(memory);
    tl_metrics_set(env->metrics, TL_WORKER_STORE_USED, (int64_t)memory->used);
    tl_metrics_set(env->metrics, TL_WORKER_STORE_LIMIT, (int64_t)memory->limit);
    tl_metrics_set(env->metrics, TL_WORKER_STORE_APPENDS, memory->appends ? 1 : 0);
    tl_metrics_set(env->metrics, TL_WORKER_STORE_UNWRITTEN, memory->not_written ? 1 : 0);
}

static void take_blocks(struct tl_queues *self, struct tl_change *change)
{
    free(self->blocks);
    self->blocks = change->blocks;
    self->blocks_version++;
    change->blocks = NULL;
}

struct tl_taken tl_queues_take(struct tl_queues *self, struct tl_change *change, int64_t now_ms)
{
    struct tl_queue_env *env = self->env;
    struct tl_queue *queue = tl_queues_find(self, change->queue);
    struct tl_taken taken = {.queue = queue};
    switch (change->kind) {
    case TL_CHANGE_LINE:
        return take_line(self, change, now_ms);
    case TL_CHANGE_ENTRY:
        if (queue != NULL &&
            tl_queue_apply(queue, change->bytes, change->length, now_ms, &taken.entry))
            taken.kind = TL_TAKEN_ENTRY;
        break;
    case TL_CHANGE_SETTINGS:
        if (queue != NULL)
            take_settings(queue, change->settings, now_ms);
        break;
    case TL_CHANGE_NOTICE:
        if (queue != NULL)
            tl_queue_set_notice(queue, change->bytes, change->length);
        break;
    case TL_CHANGE_RECOVERY:
        queue = add(self, change->queue); /* its line comes next */
        if (queue != NULL)
            tl_queue_set_recovery(queue, &change->recovery);
        break;
    case TL_CHANGE_TURNS:
        if (queue != NULL && queue->line != NULL) {
            tl_line_set_turns(queue->line, change->turns.field, change->turns.event);
            tl_line_weigh(queue->line, &queue->settings.lane_weights);
        }
        break;
    case TL_CHANGE_GONE:
        return drop(self, change->queue);
    case TL_CHANGE_TROUBLE:
        set_trouble(self, add(self, change->queue), true, change->away);
        break;
    case TL_CHANGE_SOUND:
        set_trouble(self, queue, false, false);
        break;
    case TL_CHANGE_LISTED:
        env->listed = true;
        break;
    case TL_CHANGE_CLOCK:
        env->store_offset_ms = change->offset_ms;
        env->heard_ms = now_ms; /* the follower reads the clock once a second */
        env->changes++;
        break;
    case TL_CHANGE_STORE:
        env->follower_up = change->up;
        break;
    case TL_CHANGE_MEMORY:
        take_memory(env, change);
        break;
    case TL_CHANGE_BLOCKS:
        take_blocks(self, change);
        break;
    }
    return taken;
}

/* ---- to the store ---- */

void tl_queues_batch_sent(struct tl_queues *queues, const char *name,
                          const struct tl_batch_receipt *receipt, int64_t now_ms)
{
    struct tl_queue *queue = tl_queues_find(queues, name);
    if (receipt->fate != TL_BATCH_TAKEN)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = name, .error = receipt->refusal},
               receipt->fate == TL_BATCH_REFUSED
                   ? "the store did not take a batch"
                   : "it is not known whether the store took a batch; its commands are sent again");
    if (queue != NULL)
        tl_outbox_sent(queue->outbox, receipt->number, receipt->fate, receipt->entry, now_ms);
}

void tl_queues_batch_checked(struct tl_queues *queues, const char *name, uint64_t number,
                             const struct tl_batch_check *check, int64_t now_ms)
{
    struct tl_queue *queue = tl_queues_find(queues, name);
    if (queue == NULL)
        return;
    if (!check->waits)
        tl_metrics_add(queues->env->metrics, TL_WORKER_BATCHES_MISSED, 1);
    tl_outbox_checked(queue->outbox, number, check, now_ms);
}

void tl_queues_flush(struct tl_queues *queues)
{
    struct tl_queue_env *env = queues->env;
    for (size_t i = 0; i < queues->list.n; i++) {
        struct tl_queue *queue = at(queues, i);
        struct tl_outbox *outbox = queue->outbox;
        struct tl_outbox_payload payload;
        if (!tl_outbox_next(outbox, &payload))
            continue;
        if (tl_ingest_send(env->ingest, queue->name, payload.number, payload.bytes, payload.length,
                           payload.joins)) {
            tl_metrics_add(env->metrics, TL_WORKER_BATCHES, 1);
            tl_metrics_add(env->metrics, TL_WORKER_COMMANDS, (int64_t)payload.n_commands);
            tl_metrics_observe(env->metrics, TL_WORKER_BATCH_SIZE, (int64_t)payload.n_commands);
        } else {
            free(payload.bytes);
            tl_outbox_sent(outbox, payload.number, TL_BATCH_REFUSED, "", 0);
        }
    }
    env->in_flight = tl_queues_in_flight(queues);
    env->full = env->in_flight >= queues->commands_max;
}

/* ---- time ---- */

/* Adds what came true of the waits told to the metrics at once, and to the totals in the store
 * every ten seconds at most. While the store takes no notes the totals wait. */
static void report_promises(const struct tl_queue_env *env, struct tl_queue *queue, int64_t now_ms)
{
    struct tl_promises_news *news = &queue->promises.news;
    const char *name = queue->name;
    if (news->since_ms == 0)
        return;
    const uint32_t stream = tl_queue_counts_stream(name);
    for (unsigned field = 0; field < TL_PROMISED_FIELDS; field++) {
        tl_queue_counts_add(env->queue_counts, name, stream,
                            (enum tl_queue_count)(TL_QUEUE_ETA_JUDGED + field),
                            news->counts[field] - news->measured[field]);
        news->measured[field] = news->counts[field];
    }
    if (now_ms < news->since_ms + REPORT_EVERY_MS || !tl_queue_env_takes_notes(env))
        return;
    tl_ingest_promised(env->ingest, name, news->counts);
    *news = (struct tl_promises_news){0};
}

/* Asks the store about the oldest batch, if its outcome is overdue. */
static void check_batch(const struct tl_queue_env *env, struct tl_queue *queue, int64_t now_ms)
{
    uint64_t number;
    const char *entry;
    if (tl_outbox_overdue(queue->outbox, queue->line->event, now_ms, &number, &entry) &&
        !tl_ingest_check(env->ingest, queue->name, env->worker_id, number, entry))
        tl_outbox_checked(queue->outbox, number, &(struct tl_batch_check){.waits = true},
                          now_ms); /* no memory: asks again later */
}

void tl_queues_tick(struct tl_queues *queues, int64_t now_ms)
{
    size_t bytes = 0;
    for (size_t i = 0; i < queues->list.n; i++) {
        struct tl_queue *queue = at(queues, i);
        if (queue->line == NULL)
            continue;
        tl_queue_tick(queue, now_ms);
        report_promises(queues->env, queue, now_ms);
        if (tl_queue_store_up(queue))
            check_batch(queues->env, queue, now_ms);
        bytes += tl_line_bytes(queue->line) + sizeof(queue->eta) +
                 tl_placemap_bytes(&queue->eta.sessions.running);
    }
    tl_metrics_set(queues->env->metrics, TL_WORKER_LINE_BYTES, (int64_t)bytes);
}

void tl_queues_farewell(struct tl_queues *queues)
{
    for (size_t i = 0; i < queues->list.n; i++) {
        struct tl_queue *queue = at(queues, i);
        if (queue->line != NULL && !tl_presence_farewell(&queue->presence))
            tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue->name},
                   "no memory for the farewell; absent visitors keep their places a little longer");
    }
}
