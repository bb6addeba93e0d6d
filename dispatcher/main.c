/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher: applies what the workers took in, exactly once and in the order of the stream.
 *
 * It reads the ingest streams of all queues it holds the lease of by one XREADGROUP, or by one for
 * each in a cluster (common/store/streams.h), and applies their entries in pipelines of function
 * calls (apply.c). The function does the deciding: it applies an entry and acknowledges it in one
 * step, refuses a fence that is out of date, and refuses an entry while an older one is pending.
 *
 * All replicas read as one consumer of one group, so the current holder of the lease sees whatever
 * an earlier holder read and did not apply. That is the answer to every failure: what was read and
 * not applied is pending, and it is applied first. Applied entries are trimmed from the stream.
 */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/role/role_main.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "common/store/streams.h"

#include "dispatcher/apply.h"

/* How often a holder reads pending entries without a reason of its own: an earlier holder that woke
 * up late may have read some, which it can no longer apply. */
#define PENDING_CHECK_MS 1000
#define LAG_EVERY_MS     1000
/* Where Redis is far away, these things and trimming wait eight times as long as they took:
 * visitors wait for the turn. */
#define CHORE_PAUSE 8
/* How many queues are asked at each of these times whether another program has read entries. */
#define OTHERS_CHECKED  16
#define PENDING_AT_ONCE 64
#define CLAIMED_MAX     "1000" /* entries of a queue at a time */
#define LOG_EVERY_MS    60000

enum { BATCHES, REPEATED, COMMANDS, POISON, LOST, TAKEOVERS, UNAPPLIED, AGE, APPLY_TIME, METRICS };
enum { QUEUE_INGEST_UNAPPLIED, QUEUE_INGEST_AGE, QUEUE_COMMANDS, QUEUE_METRICS };

static const struct tl_metric_desc metric_rows[METRICS + TL_ROLE_METRICS] = {
    [BATCHES] = {"tellerline_dispatcher_batches_total", "Ingest batches applied.", TL_COUNTER},
    [REPEATED] = {"tellerline_dispatcher_repeated_total", "Batches sent twice and ignored.",
                  TL_COUNTER},
    [COMMANDS] = {"tellerline_dispatcher_commands_total", "Commands in the batches applied.",
                  TL_COUNTER},
    [POISON] = {"tellerline_dispatcher_poison_total",
                "Ingest entries set aside because they cannot be applied.", TL_COUNTER},
    [LOST] = {"tellerline_dispatcher_lost_total", "Ingest entries lost before they were applied.",
              TL_COUNTER},
    [TAKEOVERS] = {"tellerline_dispatcher_takeovers_total", "Leases taken.", TL_COUNTER},
    [UNAPPLIED] = {"tellerline_dispatcher_ingest_unapplied",
                   "Ingest entries of these queues not yet applied.", TL_GAUGE},
    [AGE] = {"tellerline_dispatcher_ingest_age_milliseconds",
             "Age of the oldest ingest entry not yet applied.", TL_GAUGE},
    [APPLY_TIME] = {"tellerline_dispatcher_apply_seconds",
                    "From reading ingest entries to their application.", TL_HISTOGRAM},
    [METRICS] = TL_ROLE_METRIC_ROWS("dispatcher"),
};

static const struct tl_metric_desc queue_rows[QUEUE_METRICS] = {
    [QUEUE_INGEST_UNAPPLIED] = {"tellerline_queue_ingest_unapplied",
                                "Ingest entries not yet applied.", TL_GAUGE},
    [QUEUE_INGEST_AGE] = {"tellerline_queue_ingest_age_milliseconds",
                          "Age of the oldest ingest entry not yet applied.", TL_GAUGE_MAX},
    [QUEUE_COMMANDS] = {"tellerline_queue_commands_total", "Commands of visitors applied.",
                        TL_COUNTER},
};

static const struct tl_queue_metrics_tables queue_metrics = {.queue = queue_rows,
                                                             .n_queue = QUEUE_METRICS};

/* The state of one held queue. */
struct queue {
    bool pending;                   /* apply pending entries before reading on */
    struct tl_stream *stream;       /* of ingest */
    bool behind;                    /* there may be entries that are not applied */
    bool refused;                   /* the last entries were refused because of their order */
    char applied[TL_STREAM_ID_MAX]; /* id of the last entry applied; "" for none */
    bool trim;                      /* `applied` has moved since the last trim */
};

struct dispatcher {
    struct tl_process *process;
    struct tl_streams streams; /* of ingest; their things are the held queues */
    struct tl_apply *apply;
    struct tl_args args;
    size_t next_claim; /* the first queue to ask about other consumers */
    struct tl_log_limit lag_log, claim_log;
    int64_t lag_due_ms;
    int64_t pending_due_ms; /* read pending entries then in any case */
    int64_t trim_due_ms;
    uint64_t read_entries; /* at a time */
};

/* When to do something again that is done every every_ms, and began at this time. */
static int64_t next_due_ms(int64_t began_ms, int64_t every_ms)
{
    int64_t now_ms = tl_clock_ms();
    int64_t pause_ms = CHORE_PAUSE * (now_ms - began_ms);
    return now_ms + (pause_ms > every_ms ? pause_ms : every_ms);
}

static bool in_cluster(const struct dispatcher *self)
{
    return tl_redis_is_node(tl_store_common(self->process->store));
}

static bool is_resting(const struct dispatcher *self, const struct tl_held_queue *held,
                       int64_t now_ms)
{
    return tl_troubles_resting(self->process->troubles, held->keys.queue, now_ms);
}

/* Entries that were read may not have been applied: read them again. */
static void mark_pending(void *context, struct tl_held_queue *held)
{
    struct queue *queue = held->state;
    (void)context;
    queue->pending = queue->behind = true;
}

static bool take(void *context, struct tl_held_queue *held, struct tl_error *err)
{
    struct dispatcher *self = context;
    struct queue *queue = held->state;
    queue->stream = tl_streams_add(&self->streams, held->keys.names[TL_KEY_INGEST], held);
    if (queue->stream == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a queue");
    snprintf(queue->stream->id, sizeof(queue->stream->id), ">"); /* what nobody has read */
    mark_pending(context, held);
    tl_metrics_add(self->process->metrics, TAKEOVERS, 1);
    return true;
}

static void drop(void *context, struct tl_held_queue *held)
{
    struct dispatcher *self = context;
    tl_streams_remove(&self->streams, held->keys.names[TL_KEY_INGEST]);
}

static const char *const read_command[] = {"XREADGROUP", "GROUP", TL_INGEST_GROUP,
                                           TL_INGEST_CONSUMER, NULL};

static bool open_dispatcher(void *context, struct tl_process *process, struct tl_error *err)
{
    struct dispatcher *self = context;
    self->process = process;
    self->read_entries = TL_READ_ENTRIES_MIN;
    self->apply = tl_apply_new(process->config->retention.events_entries);
    self->streams.command = read_command;
    self->streams.writes = true;
    return self->apply != NULL || tl_error_set(err, TL_ERR_NOMEM, "no memory for the dispatcher");
}

static void close_dispatcher(void *context)
{
    struct dispatcher *self = context;
    tl_streams_free(&self->streams);
    tl_apply_free(&self->apply);
    tl_args_free(&self->args);
}

/* ---- the trouble of one queue ---- */

/* Takes over entries that a program which is no dispatcher has read, and logs who had read them.
 * *found tells if there were any. */
static bool claim_entries(struct dispatcher *self, struct tl_held_queue *held, bool *found,
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
    tl_metrics_add(self->process->metrics, LOST, (int64_t)lost);
    *found = lost > 0 || tl_reply_signed(reply, 1) > 0;
    tl_reply_free(reply);
    if (*found)
        mark_pending(self, held);
    return true;
}

/* Asks whether another consumer has read entries of the queue: send for each queue, then receive as
 * many answers in the same order. */
static bool ask_others(struct dispatcher *self, const struct tl_held_queue *held,
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

/* Entries of a queue could not be read or applied. False when the error concerns all queues. */
static bool queue_failed(struct dispatcher *self, struct tl_held_queue *held, int64_t now_ms,
                         struct tl_error *err)
{
    struct queue *queue = held->state;
    if (err->kind == TL_ERR_ORDER) {
        bool found = false;
        bool first = !queue->refused;
        queue->refused = true;
        mark_pending(self, held);
        if (claim_entries(self, held, &found, err) && (found || first))
            return true; /* read again from the oldest pending entry */
    }
    return tl_process_set_aside(self->process, held, now_ms, err);
}

/* Makes a consumer group that was deleted. All entries still in the stream are read again; the
 * function apply knows the batches it has applied. */
static bool restore_group(struct dispatcher *self, struct tl_held_queue *held, struct tl_error *err)
{
    tl_call_begin(&self->args, TL_FN_GROUP, &held->keys);
    struct tl_reply *reply = tl_call(held->redis, &self->args, err);
    if (reply == NULL)
        return false;
    tl_reply_free(reply);
    tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = held->keys.queue},
           "the consumer group of the ingest stream was missing and was made again");
    mark_pending(self, held);
    return true;
}

/* The stream of a queue may be one that cannot be read: then mends it or sets it aside. False when
 * the error concerns all queues. *found (may be NULL) becomes true when it was that one. */
static bool check_readable(struct dispatcher *self, struct tl_held_queue *held, int64_t now_ms,
                           bool *found, struct tl_error *err)
{
    struct tl_error problem = {0};
    bool others;
    if (is_resting(self, held, now_ms) ||
        (ask_others(self, held, &problem) && receive_others(held, &others, &problem)))
        return true;
    if ((problem.kind == TL_ERR_NOGROUP && restore_group(self, held, &problem)) ||
        queue_failed(self, held, now_ms, &problem)) {
        if (found != NULL)
            *found = true;
        return true;
    }
    *err = problem;
    return false;
}

/* One command reads all queues, so one whose stream cannot be read fails it for all: finds which,
 * and sets them aside. False when there is none, or the error concerns all queues. */
static bool find_unreadable(struct dispatcher *self, int64_t now_ms, struct tl_error *err)
{
    bool found = false;
    if (err->kind != TL_ERR_STORE && err->kind != TL_ERR_NOGROUP)
        return false;
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++)
        (void)check_readable(self, tl_roster_at(self->process->roster, i), now_ms, &found, err);
    return found;
}

/* In a cluster each stream is read by a command of its own: some were refused. */
static bool check_refused(struct dispatcher *self, int64_t now_ms, struct tl_error *err)
{
    bool ok = true;
    for (size_t i = 0; ok && i < tl_roster_count(self->process->roster); i++) {
        struct tl_held_queue *held = tl_roster_at(self->process->roster, i);
        const struct queue *queue = held->state;
        if (queue->stream->failed == TL_OK)
            continue;
        mark_pending(self, held); /* its entries may have been read all the same */
        ok = check_readable(self, held, now_ms, NULL, err);
    }
    return ok;
}

/* Asks some queues whether another program has read entries: a quiet queue would show it only when
 * the next entry is refused. */
static void check_others(struct dispatcher *self, int64_t now_ms)
{
    size_t n = tl_roster_count(self->process->roster);
    struct tl_held_queue *asked[OTHERS_CHECKED];
    bool others[OTHERS_CHECKED] = {false};
    size_t n_asked = 0;
    struct tl_error problem = {0}; /* it comes back when the stream is read */
    for (size_t i = 0; i < n && i < OTHERS_CHECKED; i++) {
        struct tl_held_queue *held =
            tl_roster_at(self->process->roster, (self->next_claim + i) % n);
        if (!is_resting(self, held, now_ms) && ask_others(self, held, &problem))
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
static bool apply_stream(struct dispatcher *self, const struct tl_held_queue *held,
                         const struct tl_reply *entries, struct tl_error *err)
{
    struct tl_metrics *metrics = self->process->metrics;
    struct queue *queue = held->state;
    struct tl_apply_counts counts = {0};
    int64_t started_us = tl_clock_us();
    queue->behind = true;
    bool ok = tl_apply_entries(self->apply, held, entries, &counts, err);
    if (counts.last[0] != '\0') {
        snprintf(queue->applied, sizeof(queue->applied), "%s", counts.last);
        queue->trim = true;
    }
    tl_metrics_add(metrics, BATCHES, (int64_t)counts.applied);
    tl_metrics_add(metrics, REPEATED, (int64_t)counts.repeated);
    tl_metrics_add(metrics, COMMANDS, (int64_t)counts.commands);
    tl_metrics_add(metrics, POISON, (int64_t)counts.poison);
    tl_metrics_add(metrics, LOST, (int64_t)counts.lost);
    tl_metrics_add(held->series->values, QUEUE_COMMANDS, (int64_t)counts.commands);
    tl_metrics_observe(metrics, APPLY_TIME, tl_clock_us() - started_us);
    self->read_entries = tl_apply_read_size(&counts);
    return ok;
}

/* Applies what XREADGROUP returned for one stream; adds the number of entries to *n. */
static bool apply_read(struct dispatcher *self, const struct tl_reply *read, int64_t now_ms,
                       size_t *n, struct tl_error *err)
{
    const struct tl_reply *entries = tl_reply_at(read, 1);
    const struct tl_stream *stream = tl_streams_find(&self->streams, tl_reply_text(read, 0));
    if (stream == NULL)
        return true;
    struct tl_held_queue *held = stream->thing;
    struct queue *queue = held->state;
    if (tl_reply_count(entries) == 0) /* only in a read of pending entries */
        queue->pending = false;
    else if (apply_stream(self, held, entries, err))
        queue->refused = false;
    else
        return queue_failed(self, held, now_ms, err);
    (void)tl_troubles_end(self->process->troubles, held->keys.queue, now_ms);
    *n += tl_reply_count(entries);
    return true;
}

/* ---- reading ---- */

static void begin_pending(struct dispatcher *self)
{
    tl_args_reset(&self->args);
    for (size_t i = 0; read_command[i] != NULL; i++)
        tl_args_str(&self->args, read_command[i]);
    tl_args_str(&self->args, "COUNT");
    tl_args_uint(&self->args, self->read_entries);
    tl_args_str(&self->args, "STREAMS");
}

static bool has_pending(const struct dispatcher *self, const struct tl_held_queue *held,
                        int64_t now_ms)
{
    return ((const struct queue *)held->state)->pending && !is_resting(self, held, now_ms);
}

/* Reads once from the pending entries of all queues marked so; *n gets the number of entries. */
static bool read_pending(struct dispatcher *self, int64_t now_ms, size_t *n, struct tl_error *err)
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
static bool read_nodes_pending(struct dispatcher *self, int64_t now_ms, size_t *n,
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
            ok = queue_failed(self, held, now_ms, err);
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

/* Applies the entries that were read but not acknowledged, oldest first, until none is left. */
static bool read_all_pending(struct dispatcher *self, int64_t now_ms, struct tl_error *err)
{
    int64_t began_ms = tl_clock_ms();
    if (now_ms >= self->pending_due_ms) {
        for (size_t i = 0; i < tl_roster_count(self->process->roster); i++)
            ((struct queue *)tl_roster_at(self->process->roster, i)->state)->pending = true;
        check_others(self, now_ms);
        self->pending_due_ms = next_due_ms(began_ms, PENDING_CHECK_MS);
    }
    size_t n = 1;
    bool ok = true;
    while (ok && n > 0 && !tl_signals_wait(self->process->signals, 0))
        ok = in_cluster(self) ? read_nodes_pending(self, now_ms, &n, err)
                              : read_pending(self, now_ms, &n, err);
    return ok;
}

/* Reads new entries over this connection (tl_streams_read), and applies them. */
static bool read_new_of(struct dispatcher *self, struct tl_redis *redis, int64_t now_ms,
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

/* Waits up to block_ms for new entries of all held queues that are not set aside, and applies them.
 */
static bool read_new(struct dispatcher *self, int64_t now_ms, int64_t block_ms,
                     struct tl_error *err)
{
    size_t awake = 0;
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++) {
        const struct tl_held_queue *held = tl_roster_at(self->process->roster, i);
        const struct queue *queue = held->state;
        queue->stream->rests = is_resting(self, held, now_ms);
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

/* Drops applied entries from the streams. Entries are applied in order, so all up to the last
 * applied one are. */
static bool trim(struct dispatcher *self, int64_t now_ms, struct tl_error *err)
{
    int64_t began_ms = tl_clock_ms();
    if (now_ms < self->trim_due_ms)
        return true;
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++) {
        struct tl_held_queue *held = tl_roster_at(self->process->roster, i);
        struct queue *queue = held->state;
        if (!queue->trim || is_resting(self, held, now_ms))
            continue;
        tl_args_reset(&self->args);
        tl_args_strs(&self->args, "XTRIM", held->keys.names[TL_KEY_INGEST], "MINID", "~",
                     queue->applied, NULL);
        queue->trim = false;
        if (!tl_redis_do(held->redis, &self->args, err) && !queue_failed(self, held, now_ms, err))
            return false;
    }
    self->trim_due_ms = next_due_ms(began_ms, 0);
    return true;
}

/* ---- how far behind ---- */

/* Measures once a second how far the held queues are behind: how many entries are not yet applied,
 * and the age of the oldest by the clock of the store. A queue that was not behind and has had no
 * entries since is left out: reading its stream would have returned them. An error of the store is
 * only logged, because no visitor's place depends on the figure; a broken connection ends the turn.
 */
static bool measure_lag(struct dispatcher *self, int64_t now_ms, struct tl_error *err)
{
    struct tl_metrics *metrics = self->process->metrics;
    int64_t all_entries = 0, oldest_ms = 0;
    int64_t began_ms = tl_clock_ms();
    if (now_ms < self->lag_due_ms)
        return true;
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++) {
        struct tl_held_queue *held = tl_roster_at(self->process->roster, i);
        struct queue *queue = held->state;
        unsigned suppressed;
        if (!queue->behind || is_resting(self, held, now_ms))
            continue;
        struct tl_reply *lag = tl_call_read(held->redis, TL_FN_LAG, &held->keys, err);
        if (lag != NULL) {
            int64_t entries = tl_reply_signed(lag, 0);
            int64_t age_ms = tl_reply_signed(lag, 1);
            queue->behind = entries > 0;
            all_entries += entries;
            oldest_ms = age_ms > oldest_ms ? age_ms : oldest_ms;
            tl_metrics_set(held->series->values, QUEUE_INGEST_UNAPPLIED, entries);
            tl_metrics_set(held->series->values, QUEUE_INGEST_AGE, age_ms);
            tl_reply_free(lag);
            continue;
        }
        if (tl_error_is_of_store(err) && tl_redis_is_node(held->redis)) {
            (void)queue_failed(self, held, now_ms, err);
            continue;
        }
        if (!tl_redis_connected(held->redis))
            return false;
        const struct tl_log_fields fields = {.queue = held->keys.queue, .error = err};
        if (tl_log_allow(&self->lag_log, now_ms, LOG_EVERY_MS, &suppressed))
            tl_log(TL_LOG_WARN, &fields, "cannot tell how far the line is behind");
    }
    self->lag_due_ms = next_due_ms(began_ms, LAG_EVERY_MS);
    tl_metrics_set(metrics, UNAPPLIED, all_entries);
    tl_metrics_set(metrics, AGE, oldest_ms);
    return true;
}

/* ---- the turn ---- */

static bool turn(void *context, int64_t now_ms, struct tl_error *err)
{
    struct dispatcher *self = context;
    if (!tl_process_refresh(self->process, now_ms, err) || !measure_lag(self, now_ms, err) ||
        !read_all_pending(self, now_ms, err) || !trim(self, now_ms, err))
        return false;
    int64_t wait_ms = tl_process_wait_ms(self->process, INT64_MAX, tl_clock_ms());
    return read_new(self, now_ms, wait_ms > 0 ? wait_ms : 1, err); /* BLOCK 0 waits forever */
}

static const struct tl_role role = {
    .name = "dispatcher",
    .summary = "Applies the batches of the workers to the lines, in the order of the stream.",
    .admin = offsetof(struct tl_config, admin.dispatcher),
    .fenced = true,
    .size = sizeof(struct dispatcher),
    .queue_size = sizeof(struct queue),
    .metrics = metric_rows,
    .n_metrics = METRICS,
    .queue_metrics = &queue_metrics,
    .open = open_dispatcher,
    .close = close_dispatcher,
    .turn = turn,
    .take = take,
    .drop = drop,
    .outdated = mark_pending,
};

int main(int argc, char **argv)
{
    return tl_role_main(&role, argc, argv);
}
