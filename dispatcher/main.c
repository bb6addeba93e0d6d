/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dispatcher: applies what the workers took in, exactly once and in the order of the stream.
 *
 * It reads the ingest streams of all queues it holds the lease of (reading.c), and applies their
 * entries in pipelines of function calls (apply.c). The function does the deciding: it applies an
 * entry and acknowledges it in one step, refuses a fence that is out of date, and refuses an entry
 * while an older one is pending.
 *
 * All replicas read as one consumer of one group, so the current holder of the lease sees whatever
 * an earlier holder read and did not apply. That is the answer to every failure: what was read and
 * not applied is pending, and it is applied first. Applied entries are trimmed from the stream.
 */
#include "common/base/clock.h"
#include "common/store/library.h"
#include "common/store/reply.h"

#include "dispatcher/reading.h"

#define LAG_EVERY_MS 1000
#define LOG_EVERY_MS 60000

static const struct tl_metric_desc metric_rows[TL_DISPATCHED_METRICS + TL_ROLE_METRICS] = {
    [TL_DISPATCHED_BATCHES] = {"tellerline_dispatcher_batches_total", "Ingest batches applied.",
                               TL_COUNTER},
    [TL_DISPATCHED_REPEATED] = {"tellerline_dispatcher_repeated_total",
                                "Batches sent twice and ignored.", TL_COUNTER},
    [TL_DISPATCHED_COMMANDS] = {"tellerline_dispatcher_commands_total",
                                "Commands in the batches applied.", TL_COUNTER},
    [TL_DISPATCHED_POISON] = {"tellerline_dispatcher_poison_total",
                              "Ingest entries set aside because they cannot be applied.",
                              TL_COUNTER},
    [TL_DISPATCHED_LOST] = {"tellerline_dispatcher_lost_total",
                            "Ingest entries lost before they were applied.", TL_COUNTER},
    [TL_DISPATCHED_TAKEOVERS] = {"tellerline_dispatcher_takeovers_total", "Leases taken.",
                                 TL_COUNTER},
    [TL_DISPATCHED_UNAPPLIED] = {"tellerline_dispatcher_ingest_unapplied",
                                 "Ingest entries of these queues not yet applied.", TL_GAUGE},
    [TL_DISPATCHED_AGE] = {"tellerline_dispatcher_ingest_age_milliseconds",
                           "Age of the oldest ingest entry not yet applied.", TL_GAUGE},
    [TL_DISPATCHED_TIME] = {"tellerline_dispatcher_apply_seconds",
                            "From reading ingest entries to their application.", TL_HISTOGRAM},
    [TL_DISPATCHED_METRICS] = TL_ROLE_METRIC_ROWS("dispatcher"),
};

static const struct tl_metric_desc queue_rows[TL_DISPATCHED_QUEUE_METRICS] = {
    [TL_DISPATCHED_QUEUE_UNAPPLIED] = {"tellerline_queue_ingest_unapplied",
                                       "Ingest entries not yet applied.", TL_GAUGE},
    [TL_DISPATCHED_QUEUE_AGE] = {"tellerline_queue_ingest_age_milliseconds",
                                 "Age of the oldest ingest entry not yet applied.", TL_GAUGE_MAX},
    [TL_DISPATCHED_QUEUE_COMMANDS] = {"tellerline_queue_commands_total",
                                      "Commands of visitors applied.", TL_COUNTER},
};

static const struct tl_queue_metrics_tables queue_metrics = {
    .queue = queue_rows, .n_queue = TL_DISPATCHED_QUEUE_METRICS};

struct dispatcher {
    struct tl_reading reading;
    struct tl_log_limit lag_log;
    int64_t lag_due_ms;
};

static bool open_dispatcher(void *context, struct tl_process *process, struct tl_error *err)
{
    return tl_reading_open(&((struct dispatcher *)context)->reading, process, err);
}

static void close_dispatcher(void *context)
{
    tl_reading_close(&((struct dispatcher *)context)->reading);
}

static bool take(void *context, struct tl_held_queue *held, struct tl_error *err)
{
    struct dispatcher *self = context;
    if (!tl_reading_take(&self->reading, held, err))
        return false;
    tl_metrics_add(self->reading.process->metrics, TL_DISPATCHED_TAKEOVERS, 1);
    return true;
}

static void drop(void *context, struct tl_held_queue *held)
{
    tl_reading_drop(&((struct dispatcher *)context)->reading, held);
}

static void outdated(void *context, struct tl_held_queue *held)
{
    (void)context;
    tl_reading_again(held);
}

/* ---- how far behind ---- */

/* Measures once a second how far the held queues are behind: how many entries are not yet applied,
 * and the age of the oldest by the clock of the store. A queue that was not behind and has had no
 * entries since is left out: reading its stream would have returned them. An error of the store is
 * only logged, because no visitor's place depends on the figure; a broken connection ends the turn.
 */
static bool measure_lag(struct dispatcher *self, int64_t now_ms, struct tl_error *err)
{
    const struct tl_process *process = self->reading.process;
    int64_t all_entries = 0, oldest_ms = 0;
    int64_t began_ms = tl_clock_ms();
    if (now_ms < self->lag_due_ms)
        return true;
    for (size_t i = 0; i < tl_roster_count(process->roster); i++) {
        struct tl_held_queue *held = tl_roster_at(process->roster, i);
        struct tl_read_queue *queue = held->state;
        unsigned suppressed;
        if (!queue->behind || tl_reading_rests(&self->reading, held, now_ms))
            continue;
        struct tl_reply *lag = tl_call_read(held->redis, TL_FN_LAG, &held->keys, err);
        if (lag != NULL) {
            int64_t entries = tl_reply_signed(lag, 0);
            int64_t age_ms = tl_reply_signed(lag, 1);
            queue->behind = entries > 0;
            all_entries += entries;
            oldest_ms = age_ms > oldest_ms ? age_ms : oldest_ms;
            tl_metrics_set(held->series->values, TL_DISPATCHED_QUEUE_UNAPPLIED, entries);
            tl_metrics_set(held->series->values, TL_DISPATCHED_QUEUE_AGE, age_ms);
            tl_reply_free(lag);
            continue;
        }
        if (tl_error_is_of_store(err) && tl_redis_is_node(held->redis)) {
            (void)tl_reading_failed(&self->reading, held, now_ms, err);
            continue;
        }
        if (!tl_redis_connected(held->redis))
            return false;
        const struct tl_log_fields fields = {.queue = held->keys.queue, .error = err};
        if (tl_log_allow(&self->lag_log, now_ms, LOG_EVERY_MS, &suppressed))
            tl_log(TL_LOG_WARN, &fields, "cannot tell how far the line is behind");
    }
    self->lag_due_ms = tl_reading_due_ms(began_ms, LAG_EVERY_MS);
    tl_metrics_set(process->metrics, TL_DISPATCHED_UNAPPLIED, all_entries);
    tl_metrics_set(process->metrics, TL_DISPATCHED_AGE, oldest_ms);
    return true;
}

/* ---- the turn ---- */

static bool turn(void *context, int64_t now_ms, struct tl_error *err)
{
    struct dispatcher *self = context;
    if (!tl_process_refresh(self->reading.process, now_ms, err) ||
        !measure_lag(self, now_ms, err) || !tl_reading_pending(&self->reading, now_ms, err) ||
        !tl_reading_trim(&self->reading, now_ms, err))
        return false;
    int64_t wait_ms = tl_process_wait_ms(self->reading.process, INT64_MAX, tl_clock_ms());
    wait_ms = wait_ms > 0 ? wait_ms : 1; /* BLOCK 0 waits forever */
    return tl_reading_new(&self->reading, now_ms, wait_ms, err);
}

static const struct tl_role role = {
    .name = "dispatcher",
    .summary = "Applies the batches of the workers to the lines, in the order of the stream.",
    .admin = offsetof(struct tl_config, admin.dispatcher),
    .fenced = true,
    .size = sizeof(struct dispatcher),
    .queue_size = sizeof(struct tl_read_queue),
    .metrics = metric_rows,
    .n_metrics = TL_DISPATCHED_METRICS,
    .queue_metrics = &queue_metrics,
    .open = open_dispatcher,
    .close = close_dispatcher,
    .turn = turn,
    .take = take,
    .drop = drop,
    .outdated = outdated,
};

int main(int argc, char **argv)
{
    return tl_role_main(&role, argc, argv);
}
