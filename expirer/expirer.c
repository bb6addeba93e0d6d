#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/role/keeper.h"
#include "common/store/reply.h"
#include "common/store/script.h"
#include "common/store/snapshot.h"
#include "common/wire/events.h"

#include "expirer/absence.h"
#include "expirer/expirer.h"
#include "generated/expirer_scripts.h"

#define BLOCK_MAX_MS 500
/* Redis looks ten times a second for blocked clients whose time is over: so much later may a
 * blocking read return than it was asked to. */
#define STORE_TIMER_MS 100
/* Looks at every queue so often even if nothing seems due: forgets old ends, and heals a deadline
 * that was missed. */
#define RECHECK_MS 5000
/* Batch non-urgent work: only deadlines are met to the millisecond. Each turn reads the streams of
 * all queues, and the times of many queues lie close together. */
#define COALESCE_MS 500
/* Steps for one queue before the others get a turn. */
#define STEPS_MAX 50
/* Pages of a snapshot loaded in one turn: 40 ms at most, well within a lease. */
#define PAGES_MAX 20

const struct tl_metric_desc tl_expirer_metrics[TL_EXPIRER_METRICS] = {
    [TL_EXPIRER_EXPIRED] = {"tellerline_expirer_expired_total", "Sessions ended at their deadline.",
                            TL_COUNTER},
    [TL_EXPIRER_ABSENT] = {"tellerline_expirer_absent_total",
                           "Waiting visitors dropped because they went away.", TL_COUNTER},
    [TL_EXPIRER_STEPS] = {"tellerline_expirer_steps_total", "Calls of the expire script.",
                          TL_COUNTER},
    [TL_EXPIRER_SNAPSHOTS] = {"tellerline_expirer_snapshots_total", "Lines built from the store.",
                              TL_COUNTER},
    [TL_EXPIRER_GAPS] = {"tellerline_expirer_gaps_total", "Gaps found in the events.", TL_COUNTER},
    [TL_EXPIRER_QUEUES] = {"tellerline_expirer_queues", "Queues this process holds the lease of.",
                           TL_GAUGE},
    [TL_EXPIRER_LATE] = {"tellerline_expirer_late_seconds",
                         "How long after the deadline waited for the expire script ran.",
                         TL_HISTOGRAM},
};

/* What is known of one queue whose lease is held. */
struct work {
    struct tl_snapshot *snapshot; /* being loaded; NULL once the line is there */
    struct tl_line *line;         /* NULL until then */
    bool behind;                  /* more is due than one turn could end */
    int64_t deadline_ms;          /* the next one, on Redis's clock; 0: none known */
    int64_t offset_ms;            /* Redis's clock minus the local monotonic one */
    int64_t check_ms;             /* local monotonic: run the script then in any case; 0: now */
    int64_t presence_ms;          /* local monotonic: the next presence pass */
    struct tl_log_limit limit;
};

struct expirer {
    struct tl_daemon *daemon;
    struct tl_keeper keeper;
    struct tl_absence *absence;
    struct tl_script script;
    struct tl_args args;
    uint64_t batch;
    uint64_t events_length;
};

/* ---- queues come and go ---- */

static bool acquired(void *context, struct tl_held_queue *held, struct tl_error *err)
{
    struct expirer *self = context;
    struct work *work = calloc(1, sizeof(*work));
    if (work == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a queue");
    held->work = work;
    tl_metrics_add(tl_daemon_metrics(self->daemon), TL_EXPIRER_QUEUES, 1);
    const struct tl_log_fields fields = {.queue = held->keys.queue};
    tl_log(TL_LOG_INFO, &fields, "lease taken");
    return true;
}

static void forget_line(struct expirer *self, struct tl_held_queue *held)
{
    struct work *work = held->work;
    tl_tail_forget(self->keeper.tail, &held->keys);
    tl_snapshot_abandon(&work->snapshot);
    tl_line_free(&work->line);
    work->check_ms = 0; /* a deadline may have been missed */
}

static void lost(void *context, struct tl_held_queue *held)
{
    struct expirer *self = context;
    forget_line(self, held);
    tl_metrics_add(tl_daemon_metrics(self->daemon), TL_EXPIRER_QUEUES, -1);
    const struct tl_log_fields fields = {.queue = held->keys.queue};
    tl_log(TL_LOG_INFO, &fields, "lease given up");
    free(held->work);
    held->work = NULL;
}

/* ---- the line ---- */

static void note_deadlines(struct work *work, const struct tl_event_entry *entry)
{
    for (size_t i = 0; i < entry->n_events; i++) {
        const struct tl_event *event = &entry->events[i];
        if ((event->kind == TL_EVENT_ADMITTED || event->kind == TL_EVENT_RENEWED) &&
            (work->deadline_ms == 0 || event->deadline_ms < work->deadline_ms))
            work->deadline_ms = event->deadline_ms;
    }
}

static bool on_entry(void *context, const struct tl_keys *keys, const void *payload, size_t length)
{
    struct expirer *self = context;
    const struct tl_held_queue *held = tl_keeper_find(&self->keeper, keys);
    struct work *work = held != NULL ? held->work : NULL;
    if (work == NULL || work->line == NULL)
        return false;
    struct tl_event_entry entry;
    struct tl_error err = {0};
    const struct tl_log_fields fields = {.queue = keys->queue, .error = &err};
    enum tl_line_result result = TL_LINE_GAP;
    if (tl_events_decode(payload, length, &entry, &err)) {
        result = tl_line_apply(work->line, &entry, tl_clock_ms());
        note_deadlines(work, &entry);
        tl_events_free(&entry);
    } else {
        tl_log(TL_LOG_ERROR, &fields, "an event cannot be understood, building the line anew");
    }
    if (result == TL_LINE_APPLIED || result == TL_LINE_OLD)
        return true;
    tl_metrics_add(tl_daemon_metrics(self->daemon), TL_EXPIRER_GAPS, 1);
    tl_line_free(&work->line); /* the next turn starts a snapshot */
    work->check_ms = 0;
    return false;
}

/* Loads some pages of the line if it is not there yet. *more is set while there is more to load.
 * Waits while sessions are overdue: the store's time is theirs, and what has ended need not be
 * loaded. Only who is absent is found later for it. */
static bool load_line(struct expirer *self, struct tl_held_queue *held, bool *more,
                      struct tl_error *err)
{
    struct work *work = held->work;
    struct tl_redis *redis = tl_keeper_redis(&self->keeper, held->keys.queue);
    *more = *more || work->behind;
    if (work->line != NULL || work->behind)
        return true;
    if (work->snapshot == NULL &&
        (work->snapshot = tl_snapshot_begin(redis, &held->keys, err)) == NULL)
        return false;
    bool done = false;
    for (int i = 0; i < PAGES_MAX && !done; i++)
        if (!tl_snapshot_step(work->snapshot, redis, &done, err)) {
            tl_snapshot_abandon(&work->snapshot);
            return false;
        }
    *more = *more || !done;
    if (!done)
        return true;
    struct tl_tail_head head;
    work->line = tl_snapshot_finish(&work->snapshot, &head);
    tl_metrics_add(tl_daemon_metrics(self->daemon), TL_EXPIRER_SNAPSHOTS, 1);
    return tl_tail_follow(self->keeper.tail, &held->keys, &head, err);
}

/* ---- sessions ---- */

static int64_t redis_now(const struct work *work, int64_t now_ms)
{
    return now_ms + work->offset_ms;
}

/* One step of the expire script; *ended gets how many sessions it ended. */
static bool step(struct expirer *self, struct tl_held_queue *held, uint64_t *ended,
                 uint64_t *forgotten, struct tl_error *err)
{
    struct work *work = held->work;
    struct tl_redis *redis = tl_keeper_redis(&self->keeper, held->keys.queue);
    if (!tl_script_begin(redis, &self->script, &self->args, err))
        return false;
    tl_keys_append(&held->keys, &self->args);
    tl_args_uint(&self->args, self->batch);
    tl_args_uint(&self->args, self->events_length);
    struct tl_reply *reply = tl_script_call(redis, &self->script, &self->args, err);
    if (reply == NULL)
        return false;
    *ended = (uint64_t)tl_reply_integer(tl_reply_at(reply, 0));
    work->deadline_ms = tl_reply_integer(tl_reply_at(reply, 1));
    work->offset_ms = tl_reply_integer(tl_reply_at(reply, 2)) - tl_clock_ms();
    *forgotten = (uint64_t)tl_reply_integer(tl_reply_at(reply, 3));
    tl_reply_free(reply);
    tl_metrics_add(tl_daemon_metrics(self->daemon), TL_EXPIRER_STEPS, 1);
    tl_metrics_add(tl_daemon_metrics(self->daemon), TL_EXPIRER_EXPIRED, (int64_t)*ended);
    return true;
}

static bool is_due(const struct work *work, int64_t now_ms)
{
    return now_ms >= work->check_ms ||
           (work->deadline_ms != 0 && redis_now(work, now_ms) >= work->deadline_ms);
}

static bool expire(struct expirer *self, struct tl_held_queue *held, int64_t now_ms,
                   struct tl_error *err)
{
    struct work *work = held->work;
    if (!is_due(work, now_ms))
        return true;
    if (work->deadline_ms != 0 && redis_now(work, now_ms) >= work->deadline_ms)
        tl_metrics_observe(tl_daemon_metrics(self->daemon), TL_EXPIRER_LATE,
                           (redis_now(work, now_ms) - work->deadline_ms) * 1000);
    work->check_ms = now_ms + RECHECK_MS;
    work->behind = false;
    for (int i = 0; i < STEPS_MAX; i++) {
        uint64_t ended, forgotten;
        if (!step(self, held, &ended, &forgotten, err))
            return false;
        if (ended < self->batch && forgotten < self->batch)
            return true;
    }
    work->check_ms = now_ms; /* more to do, after the other queues */
    work->behind = true;
    return true;
}

/* ---- waiting visitors who went away ---- */

static bool drop_absent(struct expirer *self, struct tl_held_queue *held, int64_t now_ms,
                        struct tl_error *err)
{
    struct work *work = held->work;
    if (work->line == NULL || now_ms < work->presence_ms)
        return true;
    tl_line_forget(work->line, now_ms, 10000);
    work->presence_ms = now_ms + 1000;
    if (tl_line_waiting(work->line) == 0)
        return true;
    uint64_t dropped;
    int64_t again_ms;
    if (!tl_absence_pass(self->absence, tl_keeper_redis(&self->keeper, held->keys.queue),
                         &held->keys, work->line, &dropped, &again_ms, err))
        return false;
    work->presence_ms = tl_clock_ms() + again_ms + 1;
    if (dropped > 0) {
        const struct tl_log_fields fields = {.queue = held->keys.queue};
        tl_log(TL_LOG_INFO, &fields, "%llu waiting visitors were absent and lost their place",
               (unsigned long long)dropped);
        tl_metrics_add(tl_daemon_metrics(self->daemon), TL_EXPIRER_ABSENT, (int64_t)dropped);
    }
    return true;
}

/* ---- the loop ---- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How long a turn may wait, in ms. */
struct wait {
    int64_t idle;     /* for all that may be a little late */
    int64_t deadline; /* for the next deadline */
};

static void note_wait(struct wait *wait, const struct work *work, int64_t now_ms)
{
    int64_t idle = smaller(work->check_ms, work->presence_ms) - now_ms;
    wait->idle = smaller(wait->idle, idle > COALESCE_MS ? idle : COALESCE_MS);
    if (work->deadline_ms != 0)
        wait->deadline = smaller(wait->deadline, work->deadline_ms - redis_now(work, now_ms));
}

static bool tend(struct expirer *self, struct tl_held_queue *held, bool *more, struct tl_error *err)
{
    int64_t now_ms = tl_clock_ms();
    if (expire(self, held, now_ms, err) && load_line(self, held, more, err) &&
        drop_absent(self, held, now_ms, err))
        return true;
    /* A queue deleted meanwhile must not hold up the others; the next round drops it. */
    if (err->kind != TL_ERR_NOQUEUE)
        return false;
    struct work *work = held->work;
    unsigned suppressed;
    const struct tl_log_fields fields = {.queue = held->keys.queue, .error = err};
    if (tl_log_allow(&work->limit, now_ms, 10000, &suppressed))
        tl_log(TL_LOG_WARN, &fields, "nothing to expire");
    work->check_ms = work->presence_ms = now_ms + 1000;
    tl_roster_recheck_now(self->keeper.roster);
    return true;
}

/* Reads events for as long, or sleeps when the next deadline is too near for the store's timer; a
 * session that begins meanwhile lasts longer than that. */
static bool read_events(struct expirer *self, const struct wait *wait, struct tl_error *err)
{
    int64_t block_ms = smaller(wait->idle, wait->deadline - STORE_TIMER_MS);
    block_ms = block_ms > 0 ? block_ms : 0;
    if (!tl_tail_read(self->keeper.tail, tl_keeper_redis(&self->keeper, NULL), block_ms, NULL, err))
        return false;
    return block_ms > 0 || wait->idle == 0 ||
           tl_daemon_pause(self->daemon, smaller(wait->idle, wait->deadline));
}

static bool turn(struct expirer *self, int64_t now_ms, struct tl_error *err)
{
    if (!tl_store_connect(self->keeper.store, err) ||
        !tl_roster_round(self->keeper.roster, self->keeper.store, now_ms, err))
        return false;
    struct wait wait = {.idle = smaller(tl_roster_due(self->keeper.roster) - now_ms, BLOCK_MAX_MS),
                        .deadline = BLOCK_MAX_MS + STORE_TIMER_MS};
    bool more = false;
    for (size_t i = 0; i < tl_roster_count(self->keeper.roster); i++) {
        struct tl_held_queue *held = tl_roster_at(self->keeper.roster, i);
        if (!tend(self, held, &more, err))
            return false;
        note_wait(&wait, held->work, tl_clock_ms());
    }
    wait.idle = more ? 0 : wait.idle < 1 ? 1 : wait.idle;
    wait.deadline = wait.deadline < 1 ? 1 : wait.deadline;
    if (tl_tail_count(self->keeper.tail) == 0)
        return tl_daemon_pause(self->daemon, smaller(wait.idle, wait.deadline));
    return read_events(self, &wait, err);
}

bool tl_expirer_turn(void *state, int64_t now_ms, struct tl_error *err)
{
    struct expirer *self = state;
    if (turn(self, now_ms, err))
        return true;
    tl_roster_recheck_now(self->keeper.roster);
    for (size_t i = 0; i < tl_roster_count(self->keeper.roster); i++)
        ((struct work *)tl_roster_at(self->keeper.roster, i)->work)->check_ms = 0;
    return false;
}

void *tl_expirer_start(struct tl_daemon *daemon, struct tl_error *err)
{
    const struct tl_config *config = tl_daemon_config(daemon);
    struct expirer *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the expirer");
        return NULL;
    }
    self->daemon = daemon;
    self->batch = config->expirer.batch;
    self->events_length = config->streams.events_length;
    self->script.source = tl_script_expire;
    const struct tl_keeper_settings keeper = {
        .roster = {.role = "expirer", .context = self, .acquired = acquired, .lost = lost},
        .on_entry = on_entry};
    self->absence = tl_absence_new(self->events_length);
    if (self->absence == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the expirer");
    else if (tl_keeper_init(&self->keeper, daemon, &keeper, err))
        return self;
    tl_expirer_stop(self);
    return NULL;
}

void tl_expirer_stop(void *state)
{
    struct expirer *self = state;
    tl_keeper_deinit(&self->keeper);
    tl_absence_free(&self->absence);
    tl_args_free(&self->args);
    free(self);
}
