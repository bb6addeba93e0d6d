#include <stdlib.h>

#include "admitter/admitter.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/role/keeper.h"
#include "common/store/reply.h"
#include "common/store/script.h"
#include "common/wire/events.h"

#include "generated/admitter_scripts.h"

/* The timer behind the events: with somebody waiting, and in any case. */
#define RECHECK_MS      1000
#define RECHECK_IDLE_MS 5000
#define BLOCK_MAX_MS    500
/* Steps for one queue before the others get a turn. */
#define STEPS_MAX 50

const struct tl_metric_desc tl_admitter_metrics[TL_ADMITTER_METRICS] = {
    [TL_ADMITTER_ADMITTED] = {"tellerline_admitter_admitted_total", "Visitors admitted.",
                              TL_COUNTER},
    [TL_ADMITTER_STEPS] = {"tellerline_admitter_steps_total", "Calls of the admit script.",
                           TL_COUNTER},
    [TL_ADMITTER_IDLE_STEPS] = {"tellerline_admitter_idle_steps_total",
                                "Calls of the admit script that admitted nobody.", TL_COUNTER},
    [TL_ADMITTER_QUEUES] = {"tellerline_admitter_queues", "Queues this process holds the lease of.",
                            TL_GAUGE},
    [TL_ADMITTER_STEP_TIME] = {"tellerline_admitter_step_seconds", "One call of the admit script.",
                               TL_HISTOGRAM},
};

/* What is known of one queue whose lease is held. */
struct work {
    bool wake;      /* something happened: try to admit */
    uint64_t room;  /* left after the last step */
    int64_t due_ms; /* try again then in any case; local monotonic */
    struct tl_log_limit limit;
};

struct admitter {
    struct tl_daemon *daemon;
    struct tl_keeper keeper;
    struct tl_script script;
    struct tl_args args;
    uint64_t epoch;
    uint64_t batch;
    uint64_t events_length;
};

static bool acquired(void *context, struct tl_held_queue *held, struct tl_error *err)
{
    struct admitter *self = context;
    struct tl_tail_head head;
    if (!tl_tail_head(tl_keeper_redis(&self->keeper, held->keys.queue), &held->keys, &head, err) ||
        !tl_tail_follow(self->keeper.tail, &held->keys, &head, err))
        return false;
    struct work *work = calloc(1, sizeof(*work));
    if (work == NULL) {
        tl_tail_forget(self->keeper.tail, &held->keys);
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a queue");
    }
    work->wake = true;
    held->work = work;
    tl_metrics_add(tl_daemon_metrics(self->daemon), TL_ADMITTER_QUEUES, 1);
    const struct tl_log_fields fields = {.queue = held->keys.queue};
    tl_log(TL_LOG_INFO, &fields, "lease taken");
    return true;
}

static void lost(void *context, struct tl_held_queue *held)
{
    struct admitter *self = context;
    tl_tail_forget(self->keeper.tail, &held->keys);
    tl_metrics_add(tl_daemon_metrics(self->daemon), TL_ADMITTER_QUEUES, -1);
    const struct tl_log_fields fields = {.queue = held->keys.queue};
    tl_log(TL_LOG_INFO, &fields, "lease given up");
    free(held->work);
    held->work = NULL;
}

/* Does this entry give a reason to try? Room is free, or somebody came while room was left, or
 * settings changed. Room that nobody waits for now is kept in mind for whoever comes next. */
static bool is_reason(const struct tl_event_entry *entry, struct work *work)
{
    for (size_t i = 0; i < entry->n_events; i++) {
        enum tl_event_kind kind = entry->events[i].kind;
        if (kind == TL_EVENT_FREED)
            work->room++; /* at least; the next step tells exactly */
        if (kind == TL_EVENT_CONFIG || (kind == TL_EVENT_FREED && entry->waiting > 0) ||
            (kind == TL_EVENT_JOINED && work->room > 0))
            return true;
    }
    return false;
}

static bool on_entry(void *context, const struct tl_keys *keys, const void *payload, size_t length)
{
    struct admitter *self = context;
    const struct tl_held_queue *held = tl_keeper_find(&self->keeper, keys);
    struct tl_event_entry entry;
    if (held == NULL)
        return true;
    struct work *work = held->work;
    if (!tl_events_decode(payload, length, &entry, NULL)) {
        work->wake = true; /* whatever it was: the script knows the truth */
        return true;
    }
    if (is_reason(&entry, work)) {
        work->wake = true;
        work->room =
            1; /* until the next step tells: later joiners in the same read are a reason too */
    }
    tl_events_free(&entry);
    return true;
}

void *tl_admitter_start(struct tl_daemon *daemon, struct tl_error *err)
{
    const struct tl_config *config = tl_daemon_config(daemon);
    struct admitter *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the admitter");
        return NULL;
    }
    self->daemon = daemon;
    self->batch = config->admitter.batch;
    self->events_length = config->streams.events_length;
    self->script.source = tl_script_admit;
    const struct tl_keeper_settings keeper = {
        .roster = {.role = "admitter", .context = self, .acquired = acquired, .lost = lost},
        .on_entry = on_entry};
    if (!tl_keeper_init(&self->keeper, daemon, &keeper, err)) {
        tl_admitter_stop(self);
        return NULL;
    }
    return self;
}

void tl_admitter_stop(void *state)
{
    struct admitter *self = state;
    tl_keeper_deinit(&self->keeper);
    tl_args_free(&self->args);
    free(self);
}

struct step {
    uint64_t admitted, room, waiting;
    int64_t opens_in_ms; /* 0: open */
};

static bool step(struct admitter *self, struct tl_held_queue *held, struct step *step,
                 struct tl_error *err)
{
    struct tl_metrics *metrics = tl_daemon_metrics(self->daemon);
    struct tl_redis *redis = tl_keeper_redis(&self->keeper, held->keys.queue);
    int64_t started_us = tl_clock_us();
    if (!tl_script_begin(redis, &self->script, &self->args, err))
        return false;
    tl_keys_append(&held->keys, &self->args);
    tl_args_uint(&self->args, self->batch);
    tl_args_uint(&self->args, self->events_length);
    struct tl_reply *reply = tl_script_call(redis, &self->script, &self->args, err);
    if (reply == NULL)
        return false;
    step->admitted = (uint64_t)tl_reply_integer(tl_reply_at(reply, 0));
    step->room = (uint64_t)tl_reply_integer(tl_reply_at(reply, 1));
    step->waiting = (uint64_t)tl_reply_integer(tl_reply_at(reply, 2));
    step->opens_in_ms = tl_reply_integer(tl_reply_at(reply, 4));
    tl_reply_free(reply);
    tl_metrics_add(metrics, TL_ADMITTER_STEPS, 1);
    tl_metrics_add(metrics, TL_ADMITTER_IDLE_STEPS, step->admitted == 0 ? 1 : 0);
    tl_metrics_add(metrics, TL_ADMITTER_ADMITTED, (int64_t)step->admitted);
    tl_metrics_observe(metrics, TL_ADMITTER_STEP_TIME, tl_clock_us() - started_us);
    return true;
}

/* A queue's own trouble (deleted meanwhile, a policy of a newer version) must not hold up the
 * others. */
static bool is_own_trouble(const struct tl_error *err)
{
    return err->kind == TL_ERR_NOQUEUE || err->kind == TL_ERR_STORE;
}

static bool serve(struct admitter *self, struct tl_held_queue *held, int64_t now_ms,
                  struct tl_error *err)
{
    struct work *work = held->work;
    struct step last = {0};
    work->wake = false;
    work->due_ms = now_ms + RECHECK_MS;
    for (int i = 0; i < STEPS_MAX; i++) {
        if (!step(self, held, &last, err)) {
            unsigned suppressed;
            if (!is_own_trouble(err))
                return false;
            const struct tl_log_fields fields = {.queue = held->keys.queue, .error = err};
            if (tl_log_allow(&work->limit, now_ms, 10000, &suppressed))
                tl_log(TL_LOG_ERROR, &fields, "nobody can be admitted");
            tl_roster_recheck_now(self->keeper.roster);
            return true;
        }
        work->room = last.room;
        if (last.admitted < self->batch)
            break;
        work->wake = i == STEPS_MAX - 1; /* more to do, after the other queues */
    }
    if (last.waiting == 0)
        work->due_ms = now_ms + RECHECK_IDLE_MS;
    if (last.opens_in_ms > 0 && now_ms + last.opens_in_ms < work->due_ms)
        work->due_ms = now_ms + last.opens_in_ms;
    return true;
}

static bool turn(struct admitter *self, int64_t now_ms, struct tl_error *err)
{
    if (!tl_store_connect(self->keeper.store, err) ||
        !tl_roster_round(self->keeper.roster, self->keeper.store, now_ms, err))
        return false;
    bool reconnected = tl_redis_epoch(tl_keeper_redis(&self->keeper, NULL)) != self->epoch;
    int64_t due_ms = tl_roster_due(self->keeper.roster);
    bool more = false;
    for (size_t i = 0; i < tl_roster_count(self->keeper.roster); i++) {
        struct tl_held_queue *held = tl_roster_at(self->keeper.roster, i);
        struct work *work = held->work;
        if ((reconnected || work->wake || now_ms >= work->due_ms) &&
            !serve(self, held, now_ms, err))
            return false;
        more = more || work->wake;
        due_ms = work->due_ms < due_ms ? work->due_ms : due_ms;
    }
    self->epoch = tl_redis_epoch(tl_keeper_redis(&self->keeper, NULL));
    int64_t block_ms = due_ms - tl_clock_ms();
    block_ms = more ? 0 : block_ms < 1 ? 1 : block_ms > BLOCK_MAX_MS ? BLOCK_MAX_MS : block_ms;
    if (tl_tail_count(self->keeper.tail) == 0)
        return tl_daemon_pause(self->daemon, block_ms);
    return tl_tail_read(self->keeper.tail, tl_keeper_redis(&self->keeper, NULL), block_ms, NULL,
                        err);
}

bool tl_admitter_turn(void *state, int64_t now_ms, struct tl_error *err)
{
    struct admitter *self = state;
    if (turn(self, now_ms, err))
        return true;
    for (size_t i = 0; i < tl_roster_count(self->keeper.roster); i++)
        ((struct work *)tl_roster_at(self->keeper.roster, i)->work)->wake = true;
    tl_roster_recheck_now(self->keeper.roster);
    return false;
}
