/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The expirer: ends sessions at their deadline and drops waiting visitors who went away.
 *
 * Sessions: it sleeps until the next deadline of a queue and then runs the function expire, which
 * ends what is overdue and returns the deadline after that. Events announce earlier deadlines in
 * between (schedule.c). Every few seconds it runs the function without a reason, in case an event
 * was missed.
 *
 * Waiting visitors: it keeps a copy of each line, loaded as a snapshot and kept current by events,
 * and compares it with the presence bitmaps of the store (absence.c). A gap in the events means
 * that the copy is wrong: it is loaded again.
 *
 * Only deadlines are kept to the millisecond. Everything else waits for the next turn, which comes
 * after half a second at most: each turn reads the streams of all queues, so turns are worth
 * saving.
 */
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/role/role_main.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "common/store/snapshot.h"
#include "common/wire/events.h"

#include "expirer/absence.h"
#include "expirer/schedule.h"
#include "expirer/visits.h"

/* Redis checks blocked clients ten times a second: a blocking read may return this much later than
 * asked. */
#define STORE_TIMER_MS 100
/* Runs the function this often for every queue even if nothing is due: it forgets old ends and
 * finds deadlines whose event was missed. */
#define RECHECK_MS  5000
#define PRESENCE_MS 1000
#define LOOK_MS     1000
/* After a point of the history could not be noted. */
#define HISTORY_AGAIN_MS 10000
/* How often old records are looked for. */
#define PRUNE_MS     600000
#define LIBRARIES_MS 3600000
/* Steps for one queue before the others get a turn. */
#define STEPS_MAX 50
/* Pages of a snapshot loaded in one turn: 40 ms at most, well within a lease. */
#define PAGES_MAX 20
/* Loads the line again because of its sizes this often at most. */
#define DIFFERS_EVERY_MS 30000
/* Ended visitors that the copy of the line forgets in one pass. */
#define FORGET_MAX 10000

enum { EXPIRED, ABSENT, STEPS, SNAPSHOTS, GAPS, LATE, METRICS };

static const struct tl_metric_desc metric_rows[METRICS + TL_ROLE_METRICS] = {
    [EXPIRED] = {"tellerline_expirer_expired_total", "Sessions ended at their deadline.",
                 TL_COUNTER},
    [ABSENT] = {"tellerline_expirer_absent_total",
                "Waiting visitors dropped because they were absent.", TL_COUNTER},
    [STEPS] = {"tellerline_expirer_steps_total", "Calls of the function expire.", TL_COUNTER},
    [SNAPSHOTS] = {"tellerline_expirer_snapshots_total", "Lines loaded from the store.",
                   TL_COUNTER},
    [GAPS] = {"tellerline_expirer_gaps_total", "Gaps found in the events.", TL_COUNTER},
    [LATE] = {"tellerline_expirer_late_seconds", "From a session's deadline to its end.",
              TL_HISTOGRAM},
    [METRICS] = TL_ROLE_METRIC_ROWS("expirer"),
};

/* The state of one held queue. */
struct queue {
    struct tl_snapshot *snapshot; /* being loaded; NULL once the line is there */
    struct tl_line *line;         /* the copy of the line; NULL until then */
    uint64_t base_seq;            /* of the incarnation that the line is of */
    int64_t differed_ms;          /* when it was loaded again because of its sizes */
    struct tl_schedule schedule;
    bool behind;         /* more is due than one turn could end */
    int64_t presence_ms; /* local monotonic: the next presence pass... */
    int64_t history_ms;  /* ...the next point of the history... */
    int64_t prune_ms;    /* ...and the next time that old records are dropped */
    struct tl_visits *visits;
    int64_t look_ms; /* local monotonic: when to look at the line for the metrics again */
};

struct expirer {
    struct tl_process *process;
    struct tl_absence *absence;
    struct tl_args args;
    int64_t libraries_ms; /* when to look for libraries that nobody uses */
};

static void check_at_once(void *context, struct tl_held_queue *held)
{
    struct queue *queue = held->state;
    (void)context;
    queue->schedule.check_ms = 0;
}

static bool take(void *context, struct tl_held_queue *held, struct tl_error *err)
{
    struct queue *queue = held->state;
    (void)context;
    queue->visits = tl_visits_new(held->series);
    return queue->visits != NULL || tl_error_set(err, TL_ERR_NOMEM, "no memory for a queue");
}

static void drop(void *context, struct tl_held_queue *held)
{
    struct queue *queue = held->state;
    (void)context;
    tl_visits_free(&queue->visits);
    tl_snapshot_abandon(&queue->snapshot);
    tl_line_free(&queue->line);
}

/* ---- the copy of the line ---- */

/* The next turn starts a snapshot. */
static void drop_line(const struct expirer *self, struct queue *queue)
{
    tl_metrics_add(self->process->metrics, GAPS, 1);
    tl_line_free(&queue->line);
    queue->schedule.check_ms = 0;
}

/* Does the line serve although its sizes differ? If loading it again did not help, the store itself
 * is inconsistent, and loading it for every event would not help either. */
static bool tolerated(struct queue *queue, const struct tl_log_fields *fields)
{
    int64_t now_ms = tl_clock_ms();
    if (queue->differed_ms != 0 && now_ms < queue->differed_ms + DIFFERS_EVERY_MS)
        return true;
    queue->differed_ms = now_ms;
    tl_log(TL_LOG_WARN, fields,
           "the copy of the line has other sizes than the store; loading it again. If this comes "
           "back, run `tellerline audit`");
    return false;
}

static bool on_entry(void *context, struct tl_held_queue *held, const void *payload, size_t length)
{
    const struct expirer *self = context;
    struct queue *queue = held->state;
    if (queue->line == NULL)
        return false;
    struct tl_event_entry entry;
    struct tl_error err = {0};
    const struct tl_log_fields fields = {.queue = held->keys.queue, .error = &err};
    enum tl_line_result result = TL_LINE_GAP;
    if (tl_events_decode(payload, length, &entry, &err)) {
        result = tl_line_apply(queue->line, &entry, tl_clock_ms());
        tl_schedule_note(&queue->schedule, &entry);
        if (result == TL_LINE_APPLIED || result == TL_LINE_DIFFERS)
            tl_visits_apply(queue->visits, &entry, tl_clock_ms());
        tl_events_free(&entry);
    } else {
        tl_log(TL_LOG_ERROR, &fields, "cannot decode an event, loading the line again");
    }
    if (result == TL_LINE_APPLIED || result == TL_LINE_OLD ||
        (result == TL_LINE_DIFFERS && tolerated(queue, &fields)))
        return true;
    drop_line(self, queue);
    return false;
}

/* Loads some pages of the line if it is not there yet. Waits while sessions are overdue: the
 * store's time goes to them first, and what they end need not be loaded. Absent visitors are found
 * later for it. */
static bool load_line(struct expirer *self, const struct tl_held_queue *held, struct tl_error *err)
{
    struct queue *queue = held->state;
    if (queue->line != NULL && !tl_tail_follows(self->process->tail, &held->keys))
        tl_line_free(&queue->line); /* the stream could not be read */
    if (queue->line != NULL || queue->behind)
        return true;
    if (queue->snapshot == NULL &&
        (queue->snapshot = tl_snapshot_begin(held->redis, &held->keys, err)) == NULL)
        return false;
    bool done = false;
    for (int i = 0; i < PAGES_MAX && !done; i++)
        if (!tl_snapshot_step(queue->snapshot, held->redis, &done, err)) {
            tl_snapshot_abandon(&queue->snapshot);
            return false;
        }
    if (!done)
        return true;
    struct tl_tail_head head;
    queue->line = tl_snapshot_finish(&queue->snapshot, &head);
    queue->base_seq = head.base_seq;
    tl_visits_start(queue->visits, queue->line, tl_clock_ms());
    tl_metrics_add(self->process->metrics, SNAPSHOTS, 1);
    return tl_tail_follow(self->process->tail, &held->keys, &head, err);
}

/* ---- sessions ---- */

/* Calls the function expire once. *more is set when it did as much as it may in one step. */
static bool take_step(struct expirer *self, const struct tl_held_queue *held, bool *more,
                      struct tl_error *err)
{
    const struct tl_config *config = self->process->config;
    struct tl_metrics *metrics = self->process->metrics;
    struct queue *queue = held->state;
    struct tl_schedule *schedule = &queue->schedule;
    tl_call_begin(&self->args, TL_FN_EXPIRE, &held->keys);
    tl_args_uint(&self->args, config->expirer.batch);
    tl_args_uint(&self->args, config->retention.events_entries);
    tl_args_int(&self->args, config->retention.ended_ms);
    struct tl_reply *reply = tl_call(held->redis, &self->args, err);
    if (reply == NULL)
        return false;
    uint64_t ended = tl_reply_number(reply, TL_EXPIRE_ENDED);
    uint64_t forgotten = tl_reply_number(reply, TL_EXPIRE_FORGOTTEN);
    schedule->deadline_ms = tl_reply_signed(reply, TL_EXPIRE_DEADLINE);
    schedule->offset_ms = tl_reply_signed(reply, TL_EXPIRE_NOW) - tl_clock_ms();
    /* Another incarnation, whose events need not reach us: the ids of the stream may have gone back
     * with the store's clock. */
    if (queue->line != NULL && tl_reply_number(reply, TL_EXPIRE_BASE_SEQ) != queue->base_seq)
        drop_line(self, queue);
    tl_reply_free(reply);
    *more = ended >= config->expirer.batch || forgotten >= config->expirer.batch;
    tl_metrics_add(metrics, STEPS, 1);
    tl_metrics_add(metrics, EXPIRED, (int64_t)ended);
    return true;
}

/* Ends what is overdue, in a bounded number of steps. */
static bool expire(struct expirer *self, const struct tl_held_queue *held, int64_t now_ms,
                   struct tl_error *err)
{
    struct queue *queue = held->state;
    if (!tl_schedule_is_due(&queue->schedule, now_ms))
        return true;
    int64_t late_ms = tl_clock_ms() - tl_schedule_deadline(&queue->schedule);
    if (late_ms >= 0)
        tl_metrics_observe(self->process->metrics, LATE, late_ms * 1000);
    queue->schedule.check_ms = now_ms + RECHECK_MS;
    queue->behind = false;
    bool more = true;
    for (int i = 0; i < STEPS_MAX && more; i++)
        if (!take_step(self, held, &more, err))
            return false;
    if (more) { /* go on after the other queues */
        queue->schedule.check_ms = now_ms;
        queue->behind = true;
    }
    return true;
}

/* ---- waiting visitors who went away ---- */

static bool drop_absent(struct expirer *self, const struct tl_held_queue *held, int64_t now_ms,
                        struct tl_error *err)
{
    struct queue *queue = held->state;
    if (queue->line == NULL || now_ms < queue->presence_ms)
        return true;
    tl_line_forget(queue->line, now_ms, FORGET_MAX);
    queue->presence_ms = now_ms + PRESENCE_MS;
    if (tl_line_waiting(queue->line) == 0)
        return true;
    uint64_t dropped;
    int64_t again_ms;
    if (!tl_absence_pass(self->absence, held, queue->line, &dropped, &again_ms, err))
        return false;
    queue->presence_ms = tl_clock_ms() + again_ms + 1;
    if (dropped > 0) {
        const struct tl_log_fields fields = {.queue = held->keys.queue};
        tl_log(TL_LOG_INFO, &fields, "%llu waiting visitors were absent and lost their place",
               (unsigned long long)dropped);
        tl_metrics_add(self->process->metrics, ABSENT, (int64_t)dropped);
    }
    return true;
}

/* ---- the history ---- */

/* Notes a point every 10 s. It is for people: a failure is logged and holds nothing up. */
static void note_history(struct expirer *self, const struct tl_held_queue *held, int64_t now_ms)
{
    struct queue *queue = held->state;
    struct tl_error err = {0};
    if (now_ms < queue->history_ms)
        return;
    queue->history_ms = now_ms + HISTORY_AGAIN_MS;
    tl_call_begin(&self->args, TL_FN_HISTORY, &held->keys);
    struct tl_reply *reply = tl_call(held->redis, &self->args, &err);
    if (reply != NULL)
        queue->history_ms = now_ms + tl_reply_integer(reply) + 1;
    else
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = held->keys.queue, .error = &err},
               "no point of the history was noted; the next try is in 10 s");
    tl_reply_free(reply);
}

/* ---- what is kept for people ---- */

/* The changes that belong to no queue: tl:changes. now_ms: of the store. */
static bool prune_common(struct expirer *self, int64_t now_ms, struct tl_error *err)
{
    const struct tl_config *config = self->process->config;
    char key[TL_KEY_MAX];
    int64_t before_ms = now_ms - config->retention.changes_ms;
    tl_args_reset(&self->args);
    tl_args_strs(&self->args, "XTRIM",
                 tl_key_common(config->redis.key_prefix, TL_COMMON_CHANGES, key), "MINID", "=",
                 NULL);
    tl_args_int(&self->args, before_ms > 0 ? before_ms : 0);
    return tl_redis_do(tl_store_common(self->process->store), &self->args, err);
}

/* Once an hour: the functions of releases that are gone. A failure is logged and holds nothing up.
 */
static void prune_libraries(struct expirer *self, int64_t now_ms)
{
    const struct tl_config *config = self->process->config;
    struct tl_error err = {0};
    unsigned n;
    if (now_ms < self->libraries_ms)
        return;
    self->libraries_ms = now_ms + LIBRARIES_MS;
    if (!tl_library_prune(self->process->store, config->redis.key_prefix, &n, &err))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = &err},
               "libraries of other releases were not looked for; the next try is in an hour");
    else if (n > 0)
        tl_log(TL_LOG_INFO, NULL, "%u of the store's libraries, unused for a day, deleted", n);
}

/* Drops what is too old. It is for people: a failure is logged and holds nothing up. */
static void prune(struct expirer *self, const struct tl_held_queue *held, int64_t now_ms)
{
    const struct tl_config *config = self->process->config;
    struct queue *queue = held->state;
    struct tl_error err = {0};
    if (now_ms < queue->prune_ms)
        return;
    queue->prune_ms = now_ms + PRUNE_MS;
    tl_call_begin(&self->args, TL_FN_PRUNE, &held->keys);
    tl_args_int(&self->args, config->retention.misuse_ms);
    tl_args_int(&self->args, config->retention.changes_ms);
    struct tl_reply *reply = tl_call(held->redis, &self->args, &err);
    if (reply == NULL || !prune_common(self, tl_reply_integer(reply), &err))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = held->keys.queue, .error = &err},
               "old signs and changes were not dropped; the next try is in 10 minutes");
    tl_reply_free(reply);
}

/* ---- the turn ---- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool serve(void *context, struct tl_held_queue *held, int64_t now_ms, int64_t *due_ms,
                  struct tl_error *err)
{
    struct queue *queue = held->state;
    if (!expire(context, held, now_ms, err) || !load_line(context, held, err) ||
        !drop_absent(context, held, now_ms, err))
        return false;
    if (queue->line != NULL && now_ms >= queue->look_ms) {
        queue->look_ms = now_ms + LOOK_MS;
        tl_visits_look(queue->visits, queue->line, now_ms);
    }
    note_history(context, held, now_ms);
    prune(context, held, now_ms);
    bool more = queue->behind || queue->line == NULL;
    *due_ms = smaller(*due_ms, more ? now_ms : tl_schedule_deadline(&queue->schedule));
    return true;
}

/* Sessions end on time, although the line cannot be read. A failure was logged when the queue was
 * set aside. */
static void serve_resting(void *context, struct tl_held_queue *held, int64_t now_ms,
                          int64_t *due_ms)
{
    struct queue *queue = held->state;
    if (!expire(context, held, now_ms, NULL))
        queue->schedule.deadline_ms = 0; /* not known: the next step is that of the recheck */
    *due_ms = smaller(*due_ms, queue->behind ? now_ms : tl_schedule_deadline(&queue->schedule));
}

/* Waits for events until something is due, but not past due_ms, when sessions have to end: shortly
 * before it sleeps instead, because the store's timer is too coarse. A session that begins
 * meanwhile lasts longer than that. */
static bool wait_for_events(const struct expirer *self, int64_t due_ms, int64_t now_ms,
                            struct tl_error *err)
{
    struct tl_process *process = self->process;
    int64_t block_ms =
        smaller(tl_process_wait_ms(process, INT64_MAX, now_ms), due_ms - now_ms - STORE_TIMER_MS);
    if (block_ms > 0)
        return tl_process_wait(process, block_ms, err);
    if (!tl_process_wait(process, 0, err))
        return false;
    (void)tl_signals_wait(process->signals, tl_process_wait_ms(process, due_ms, now_ms));
    return true;
}

static bool turn(void *context, int64_t now_ms, struct tl_error *err)
{
    struct expirer *self = context;
    int64_t due_ms = INT64_MAX;
    if (!tl_process_refresh(self->process, now_ms, err) ||
        !tl_process_serve(self->process, now_ms, &due_ms, err))
        return false;
    prune_libraries(self, now_ms);
    return wait_for_events(self, due_ms, tl_clock_ms(), err);
}

static bool open_expirer(void *context, struct tl_process *process, struct tl_error *err)
{
    struct expirer *self = context;
    self->process = process;
    self->absence = tl_absence_new(process->config->retention.events_entries);
    return self->absence != NULL || tl_error_set(err, TL_ERR_NOMEM, "no memory for the expirer");
}

static void close_expirer(void *context)
{
    struct expirer *self = context;
    tl_absence_free(&self->absence);
    tl_args_free(&self->args);
}

static const struct tl_role role = {
    .name = "expirer",
    .summary = "Ends sessions at their deadline and drops waiting visitors who went away.",
    .admin = offsetof(struct tl_config, admin.expirer),
    .size = sizeof(struct expirer),
    .queue_size = sizeof(struct queue),
    .metrics = metric_rows,
    .n_metrics = METRICS,
    .queue_metrics = &tl_visits_tables,
    .open = open_expirer,
    .close = close_expirer,
    .turn = turn,
    .take = take,
    .drop = drop,
    .outdated = check_at_once,
    .serve = serve,
    .serve_resting = serve_resting,
    .event = on_entry,
};

int main(int argc, char **argv)
{
    return tl_role_main(&role, argc, argv);
}
