/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/store/library.h"
#include "common/store/reply.h"

#include "dispatcher/reading.h"

/* How often a holder reads pending entries without a reason of its own: an earlier holder that woke
 * up late may have read some, which it can no longer apply. */
#define PENDING_CHECK_MS 1000
/* An earlier holder does so soon after it was replaced: meanwhile no queue waits for its turn. */
#define TAKEN_OVER_MS 10000
/* Where Redis is far away, these things and trimming wait eight times as long as they took:
 * visitors wait for the turn. */
#define CHORE_PAUSE 8
/* How many queues are asked at each of these times whether another program has read entries; in a
 * cluster, also whether entries are pending. */
#define OTHERS_CHECKED  16
#define PENDING_AT_ONCE 64
#define CLAIMED_MAX     "1000" /* entries of a queue at a time */
#define LOG_EVERY_MS    60000

/* When to do something again that is done every every_ms, and began at this time. */
int64_t tl_reading_due_ms(int64_t began_ms, int64_t every_ms)
{
    int64_t now_ms = tl_clock_ms();
    int64_t pause_ms = CHORE_PAUSE * (now_ms - began_ms);
    return now_ms + (pause_ms > every_ms ? pause_ms : every_ms);
}

static bool in_cluster(const struct tl_reading *self)
{
    return tl_redis_is_node(tl_store_common(self->process->store));
}

bool tl_reading_rests(const struct tl_reading *self, const struct tl_held_queue *held,
                      int64_t now_ms)
{
    return tl_troubles_resting(self->process->troubles, held->keys.queue, now_ms);
}

void tl_reading_again(struct tl_held_queue *held)
{
    struct tl_read_queue *queue = held->state;
    queue->pending = queue->behind = true;
}

static const char *const read_command[] = {"XREADGROUP", "GROUP", TL_INGEST_GROUP,
                                           TL_INGEST_CONSUMER, NULL};

bool tl_reading_open(struct tl_reading *self, struct tl_process *process, struct tl_error *err)
{
    self->process = process;
    self->read_entries = TL_READ_ENTRIES_MIN;
    self->apply = tl_apply_new(process->config->retention.events_entries);
    self->streams.command = read_command;
    self->streams.writes = true;
    return self->apply != NULL || tl_error_set(err, TL_ERR_NOMEM, "no memory for the dispatcher");
}

void tl_reading_close(struct tl_reading *self)
{
    tl_streams_free(&self->streams);
    tl_apply_free(&self->apply);
    tl_args_free(&self->args);
}

bool tl_reading_take(struct tl_reading *self, struct tl_held_queue *held, struct tl_error *err)
{
    struct tl_read_queue *queue = held->state;
    queue->stream = tl_streams_add(&self->streams, held->keys.names[TL_KEY_INGEST], held);
    if (queue->stream == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a queue");
    snprintf(queue->stream->id, sizeof(queue->stream->id), ">"); /* what nobody has read */
    queue->taken_ms = tl_clock_ms();
    tl_reading_again(held);
    return true;
}

void tl_reading_drop(struct tl_reading *self, const struct tl_held_queue *held)
{
    tl_streams_remove(&self->streams, held->keys.names[TL_KEY_INGEST]);
}

/* ---- the trouble of one queue ---- */

/* Takes over entries that a program which is no dispatcher has read, and logs who had read them.
 * *found tells if there were any. */
static bool claim_entries(struct tl_reading *self, struct tl_held_queue *held, bool *found,
                          struct tl_error *err)
{
    const struct tl_log_fields fields = {.queue = held->keys.queue};
    tl_call_begin(&self->args, TL_FN_CLAIM, &held->keys);
    tl_args_strs(&self->args, CLAIMED_MAX, TL_INGEST_CONSUMER, NULL);
    struct tl_reply *reply = tl_call(held->redis, &self->args, err);
    if (reply == NULL)
        return false;
    const char *other = tl_reply_text(reply, 0);
    size_t lost = tl_reply_count(reply) > 2 ? tl_reply_count(reply) - 2 : 0;
    unsigned suppressed;
    if (other[0] != '\0' &&
        tl_log_allow(&self->claim_log, tl_clock_ms(), LOG_EVERY_MS, &suppressed))
        tl_log(
            TL_LOG_ERROR, &fields,
            "the consumer %.64s, which is no dispatcher, read entries of the ingest stream; they "
            "are applied now, but stop that program",
            other);
    for (size_t i = 0; i < lost; i++)
        tl_log(TL_LOG_ERROR, &fields,
               "ingest entry %s was trimmed away before it was applied: its commands are lost",
               tl_reply_text(reply, 2 + i));
    tl_metrics_add(self->process->metrics, TL_DISPATCHED_LOST, (int64_t)lost);
    *found = lost > 0 || tl_reply_signed(reply, 1) > 0;
    tl_reply_free(reply);
    if (*found)
        tl_reading_again(held);
    return true;
}

/* Asks whether another consumer has read entries of the queue: send for each queue, then receive as
 * many answers in the same order. */
static bool ask_others(struct tl_reading *self, const struct tl_held_queue *held,
                       struct tl_error *err)
{
    tl_args_reset(&self->args);
    tl_args_strs(&self->args, "XPENDING", held->keys.names[TL_KEY_INGEST], TL_INGEST_GROUP, NULL);
    return tl_redis_append(held->redis, &self->args, err);
}

/* False with err when the store refused. */
static bool receive_others(const struct tl_held_queue *held, bool *others, struct tl_error *err)
{
    struct tl_reply *reply = tl_redis_next(held->redis, err);
    if (reply == NULL)
        return false;
    const struct tl_reply *consumers = tl_reply_at(reply, 3); /* [[name, n]...] */
    *others = false;
    for (size_t i = 0; i < tl_reply_count(consumers); i++) {
        const char *name = tl_reply_string(tl_reply_at(tl_reply_at(consumers, i), 0), NULL);
        *others = *others || strcmp(name, TL_INGEST_CONSUMER) != 0;
    }
    tl_reply_free(reply);
    return true;
}

bool tl_reading_failed(struct tl_reading *self, struct tl_held_queue *held, int64_t now_ms,
                       struct tl_error *err)
{
    struct tl_read_queue *queue = held->state;
    if (err->kind == TL_ERR_ORDER) {
        bool found = false;
        bool first = !queue->refused;
        queue->refused = true;
        tl_reading_again(held);
        if (claim_entries(self, held, &found, err) && (found || first))
            return true; /* read again from the oldest pending entry */
    }
    return tl_process_set_aside(self->process, held, now_ms, err);
}

/* Makes a consumer group that was deleted. All entries still in the stream are read again; the
 * function apply knows the batches it has applied. */
static bool restore_group(struct tl_reading *self, struct tl_held_queue *held, struct tl_error *err)
{
    tl_call_begin(&self->args, TL_FN_GROUP, &held->keys);
    struct tl_reply *reply = tl_call(held->redis, &self->args, err);
    if (reply == NULL)
        return false;
    tl_reply_free(reply);
    tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = held->keys.queue},
           "the consumer group of the ingest stream was missing and was made again");
    tl_reading_again(held);
    return true;
}

/* The stream of a queue may be one that cannot be read: then mends it or sets it aside. False when
 * the error concerns all queues. *found (may be NULL) becomes true when it was that one. */
static bool check_readable(struct tl_reading *self, struct tl_held_queue *held, int64_t now_ms,
                           bool *found, struct tl_error *err)
{
    struct tl_error problem = {0};
    bool others;
    if (tl_reading_rests(self, held, now_ms) ||
        (ask_others(self, held, &problem) && receive_others(held, &others, &problem)))
        return true;
    if ((problem.kind == TL_ERR_NOGROUP && restore_group(self, held, &problem)) ||
        tl_reading_failed(self, held, now_ms, &problem)) {
        if (found != NULL)
            *found = true;
        return true;
    }
    *err = problem;
    return false;
}

/* One command reads all queues, so one whose stream cannot be read fails it for all: finds which,
 * and sets them aside. False when there is none, or the error concerns all queues. */
static bool find_unreadable(struct tl_reading *self, int64_t now_ms, struct tl_error *err)
{
    bool found = false;
    if (err->kind != TL_ERR_STORE && err->kind != TL_ERR_NOGROUP)
        return false;
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++)
        (void)check_readable(self, tl_roster_at(self->process->roster, i), now_ms, &found, err);
    return found;
}

/* In a cluster each stream is read by a command of its own: some were refused. */
static bool check_refused(struct tl_reading *self, int64_t now_ms, struct tl_error *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < tl_roster_count(self->process->roster); i++) {
        struct tl_held_queue *held = tl_roster_at(self->process->roster, i);
        const struct tl_read_queue *queue = held->state;
        if (queue->stream->failed == TL_OK)
            continue;
        tl_reading_again(held); /* its entries may have been read all the same */
        ok = check_readable(self, held, now_ms, NULL, err);
    }
    return ok;
}

/* Asks some queues whether another program has read entries: a quiet queue would show it only when
 * the next entry is refused. */
static void check_others(struct tl_reading *self, int64_t now_ms)
{
    size_t n = tl_roster_count(self->process->roster);
    struct tl_held_queue *asked[OTHERS_CHECKED];
    bool others[OTHERS_CHECKED] = {false};
    size_t n_asked = 0;
    struct tl_error problem = {0}; /* it comes back when the stream is read */
    for (size_t i = 0; i < n && i < OTHERS_CHECKED; i++) {
        struct tl_held_queue *held =
            tl_roster_at(self->process->roster, (self->next_claim + i) % n);
        if (!tl_reading_rests(self, held, now_ms) && ask_others(self, held, &problem))
            asked[n_asked++] = held;
    }
    for (size_t i = 0; i < n_asked; i++)
        (void)receive_others(asked[i], &others[i], &problem);
    for (size_t i = 0; i < n_asked; i++)
        if (others[i])
            (void)claim_entries(self, asked[i], &others[i], &problem);
    self->next_claim = n > 0 ? (self->next_claim + OTHERS_CHECKED) % n : 0;
}

/* ---- applying what was read ---- */

/* Applies all entries of one stream. What was applied before an error is counted too. */
static bool apply_stream(struct tl_reading *self, const struct tl_held_queue *held,
                         const struct tl_reply *entries, struct tl_error *err)
{
    struct tl_metrics *metrics = self->process->metrics;
    struct tl_read_queue *queue = held->state;
    struct tl_apply_counts counts = {0};
    int64_t started_us = tl_clock_us();
    queue->behind = true;
    bool ok = tl_apply_entries(self->apply, held, entries, &counts, err);
    if (counts.last[0] != '\0') {
        snprintf(queue->applied, sizeof(queue->applied), "%s", counts.last);
        queue->trim = true;
    }
    tl_metrics_add(metrics, TL_DISPATCHED_BATCHES, (int64_t)counts.applied);
    tl_metrics_add(metrics, TL_DISPATCHED_REPEATED, (int64_t)counts.repeated);
    tl_metrics_add(metrics, TL_DISPATCHED_COMMANDS, (int64_t)counts.commands);
    tl_metrics_add(metrics, TL_DISPATCHED_POISON, (int64_t)counts.poison);
    tl_metrics_add(metrics, TL_DISPATCHED_LOST, (int64_t)counts.lost);
    tl_metrics_add(held->series->values, TL_DISPATCHED_QUEUE_COMMANDS, (int64_t)counts.commands);
    tl_metrics_observe(metrics, TL_DISPATCHED_TIME, tl_clock_us() - started_us);
    self->read_entries = tl_apply_read_size(&counts);
    return ok;
}

/* Applies what XREADGROUP returned for one stream; adds the number of entries to *n. */
static bool apply_read(struct tl_reading *self, const struct tl_reply *read, int64_t now_ms,
                       size_t *n, struct tl_error *err)
{
    const struct tl_reply *entries = tl_reply_at(read, 1);
    const struct tl_stream *stream = tl_streams_find(&self->streams, tl_reply_text(read, 0));
    if (stream == NULL)
        return true;
    struct tl_held_queue *held = stream->thing;
    struct tl_read_queue *queue = held->state;
    if (tl_reply_count(entries) == 0) /* only in a read of pending entries */
        queue->pending = false;
    else if (apply_stream(self, held, entries, err))
        queue->refused = false;
    else
        return tl_reading_failed(self, held, now_ms, err);
    (void)tl_troubles_end(self->process->troubles, held->keys.queue, now_ms);
    *n += tl_reply_count(entries);
    return true;
}

/* ---- reading ---- */

static void begin_pending(struct tl_reading *self)
{
    tl_args_reset(&self->args);
    for (size_t i = 0; read_command[i] != NULL; i++)
        tl_args_str(&self->args, read_command[i]);
    tl_args_str(&self->args, "COUNT");
    tl_args_uint(&self->args, self->read_entries);
    tl_args_str(&self->args, "STREAMS");
}

static bool has_pending(const struct tl_reading *self, const struct tl_held_queue *held,
                        int64_t now_ms)
{
    return ((const struct tl_read_queue *)held->state)->pending &&
           !tl_reading_rests(self, held, now_ms);
}

/* Reads once from the pending entries of all queues marked so; *n gets the number of entries. */
static bool read_pending(struct tl_reading *self, int64_t now_ms, size_t *n, struct tl_error *err)
{
    size_t streams = 0;
    begin_pending(self);
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++) {
        const struct tl_held_queue *held = tl_roster_at(self->process->roster, i);
        if (!has_pending(self, held, now_ms))
            continue;
        tl_args_str(&self->args, held->keys.names[TL_KEY_INGEST]);
        streams++;
    }
    *n = 0;
    if (streams == 0)
        return true;
    for (size_t i = 0; i < streams; i++)
        tl_args_str(&self->args, "0");
    struct tl_reply *reply = tl_redis_call(tl_store_common(self->process->store), &self->args, err);
    bool ok = reply != NULL || find_unreadable(self, now_ms, err);
    for (size_t i = 0; ok && i < tl_reply_count(reply); i++)
        ok = apply_read(self, tl_reply_at(reply, i), now_ms, n, err);
    tl_reply_free(reply);
    return ok;
}

/* The same in a cluster: some queues, each by a command of its own, which are all answered before
 * the first is applied. */
static bool read_nodes_pending(struct tl_reading *self, int64_t now_ms, size_t *n,
                               struct tl_error *err)
{
    struct tl_reply *replies[PENDING_AT_ONCE];
    struct tl_held_queue *asked[PENDING_AT_ONCE];
    size_t n_asked = 0;
    bool ok = true;
    *n = 0;
    for (size_t i = 0; ok && i < tl_roster_count(self->process->roster); i++) {
        struct tl_held_queue *held = tl_roster_at(self->process->roster, i);
        if (n_asked == PENDING_AT_ONCE || !has_pending(self, held, now_ms))
            continue;
        begin_pending(self);
        tl_args_strs(&self->args, held->keys.names[TL_KEY_INGEST], "0", NULL);
        if (tl_redis_append(held->redis, &self->args, err))
            asked[n_asked++] = held;
        else
            ok = tl_reading_failed(self, held, now_ms, err);
    }
    for (size_t i = 0; i < n_asked; i++)
        replies[i] = tl_redis_next(asked[i]->redis, NULL);
    for (size_t i = 0; i < n_asked; i++) {
        if (ok && replies[i] != NULL)
            ok = apply_read(self, tl_reply_at(replies[i], 0), now_ms, n, err);
        else if (ok)
            ok = check_readable(self, asked[i], now_ms, NULL, err);
        tl_reply_free(replies[i]);
    }
    *n += n_asked == PENDING_AT_ONCE; /* there may be others */
    return ok;
}

static struct tl_read_queue *read_queue_at(const struct tl_reading *self, size_t i)
{
    return tl_roster_at(self->process->roster, i)->state;
}

/* Has the pending entries of queues read. In a cluster each takes a command of its own: some queues
 * in turn, and those that were taken lately. */
static void mark_pending(struct tl_reading *self, int64_t now_ms)
{
    const size_t n = tl_roster_count(self->process->roster);
    const size_t in_turn = in_cluster(self) && n > OTHERS_CHECKED ? OTHERS_CHECKED : n;
    for (size_t i = 0; i < n; i++) {
        struct tl_read_queue *queue = read_queue_at(self, (self->next_claim + i) % n);
        queue->pending = queue->pending || i < in_turn || now_ms - queue->taken_ms < TAKEN_OVER_MS;
    }
}

bool tl_reading_pending(struct tl_reading *self, int64_t now_ms, struct tl_error *err)
{
    int64_t began_ms = tl_clock_ms();
    if (now_ms >= self->pending_due_ms) {
        mark_pending(self, began_ms);
        check_others(self, now_ms);
        self->pending_due_ms = tl_reading_due_ms(began_ms, PENDING_CHECK_MS);
    }
    size_t n = 1;
    bool ok = true;
    while (ok && n > 0 && !tl_signals_wait(self->process->signals, 0))
        ok = in_cluster(self) ? read_nodes_pending(self, now_ms, &n, err)
                              : read_pending(self, now_ms, &n, err);
    return ok;
}

/* Reads new entries over this connection (tl_streams_read), and applies them. */
static bool read_new_of(struct tl_reading *self, struct tl_redis *redis, int64_t now_ms,
                        int64_t block_ms, struct tl_error *err)
{
    size_t at = 0, entries = 0;
    const struct tl_reply *read;
    bool ok = true;
    if (!tl_streams_read(&self->streams, redis, self->read_entries, block_ms, err))
        return tl_redis_is_node(redis) || find_unreadable(self, now_ms, err);
    while (ok && (read = tl_streams_next(&self->streams, &at)) != NULL)
        ok = apply_read(self, read, now_ms, &entries, err);
    return ok;
}

bool tl_reading_new(struct tl_reading *self, int64_t now_ms, int64_t block_ms, struct tl_error *err)
{
    size_t awake = 0;
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++) {
        const struct tl_held_queue *held = tl_roster_at(self->process->roster, i);
        const struct tl_read_queue *queue = held->state;
        queue->stream->rests = tl_reading_rests(self, held, now_ms);
        awake += queue->stream->rests ? 0 : 1;
    }
    if (awake == 0) {
        (void)tl_signals_wait(self->process->signals, block_ms);
        return true;
    }
    struct tl_store *store = self->process->store;
    if (!in_cluster(self))
        return read_new_of(self, tl_store_common(store), now_ms, block_ms, err);
    tl_streams_wait(&self->streams, store, block_ms);
    bool ok = true;
    for (size_t i = 0; ok && i < tl_store_nodes(store); i++)
        ok = !tl_redis_connected(tl_store_node(store, i)) ||
             read_new_of(self, tl_store_node(store, i), now_ms, 0, err);
    return ok && check_refused(self, now_ms, err);
}

/* Entries are applied in order, so all up to the last applied one are. */
bool tl_reading_trim(struct tl_reading *self, int64_t now_ms, struct tl_error *err)
{
    int64_t began_ms = tl_clock_ms();
    if (now_ms < self->trim_due_ms)
        return true;
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++) {
        struct tl_held_queue *held = tl_roster_at(self->process->roster, i);
        struct tl_read_queue *queue = held->state;
        if (!queue->trim || tl_reading_rests(self, held, now_ms))
            continue;
        tl_args_reset(&self->args);
        tl_args_strs(&self->args, "XTRIM", held->keys.names[TL_KEY_INGEST], "MINID", "~",
                     queue->applied, NULL);
        queue->trim = false;
        if (!tl_redis_do(held->redis, &self->args, err) &&
            !tl_reading_failed(self, held, now_ms, err))
            return false;
    }
    self->trim_due_ms = tl_reading_due_ms(began_ms, 0);
    return true;
}
