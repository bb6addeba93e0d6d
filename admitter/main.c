/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admitter: admits the next visitors while there is capacity.
 *
 * For every queue it holds the lease of, it calls the function admit, which admits as many visitors
 * as capacity and rate allow. Most calls would admit no visitor, so it waits for a reason: an event
 * says that a session ended, a visitor joined or the settings changed (wake.c), or the function
 * said when the queue opens or its rate allows the next admission. A slow timer behind the events
 * makes up for one that was missed.
 */
#include <stdlib.h>
#include <string.h>

#include "admitter/draw.h"
#include "admitter/steering.h"
#include "admitter/store_clock.h"
#include "admitter/wake.h"
#include "common/base/clock.h"
#include "common/role/role_main.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "common/wire/events.h"

/* The timer behind the events: with visitors waiting, and without. */
#define RECHECK_MS      1000
#define RECHECK_IDLE_MS 5000
/* Steps for one queue before the others get a turn. */
#define STEPS_MAX 50
/* A draw works this long before the other queues get a turn, and waits this long for what must be
 * applied before it. */
#define DRAW_TURN_MS  100
#define DRAW_AGAIN_MS 50

static const struct tl_metric_desc metric_rows[TL_ADMITTER_METRICS + TL_ROLE_METRICS] = {
    [TL_ADMITTER_ADMITTED] = {"tellerline_admitter_admitted_total", "Visitors admitted.",
                              TL_COUNTER},
    [TL_ADMITTER_STEPS] = {"tellerline_admitter_steps_total", "Calls of the function admit.",
                           TL_COUNTER},
    [TL_ADMITTER_IDLE_STEPS] = {"tellerline_admitter_idle_steps_total",
                                "Calls of the function admit that admitted no visitor.",
                                TL_COUNTER},
    [TL_ADMITTER_STEP_TIME] = {"tellerline_admitter_step_seconds",
                               "One call of the function admit.", TL_HISTOGRAM},
    [TL_ADMITTER_STEERED] = {"tellerline_admitter_queues_steered",
                             "Queues held with an adaptive capacity.", TL_GAUGE},
    [TL_ADMITTER_UNREPORTED] =
        {"tellerline_admitter_queues_without_feedback",
         "Adaptive queues without a fresh report, at their last safe capacity.", TL_GAUGE},
    [TL_ADMITTER_CAPACITY] = {"tellerline_admitter_capacity_steered",
                              "Sum of the adaptive capacities.", TL_GAUGE},
    [TL_ADMITTER_RAISES] = {"tellerline_admitter_capacity_raises_total",
                            "Times an adaptive capacity was raised.", TL_COUNTER},
    [TL_ADMITTER_CUTS] = {"tellerline_admitter_capacity_cuts_total",
                          "Times an adaptive capacity was cut.", TL_COUNTER},
    [TL_ADMITTER_PROBES] = {"tellerline_admitter_probes_total", "Probes of sites that ended.",
                            TL_COUNTER},
    [TL_ADMITTER_PROBE_ERRORS] = {"tellerline_admitter_probe_errors_total",
                                  "Probes of sites that failed.", TL_COUNTER},
    [TL_ADMITTER_METRICS] = TL_ROLE_METRIC_ROWS("admitter"),
};

/* Of a held queue. */
enum {
    QUEUE_WAITING,
    QUEUE_ACTIVE,
    QUEUE_CAPACITY,
    QUEUE_ADMITTED,
    QUEUE_OVER_ADMISSION,
    QUEUE_WITHOUT_FEEDBACK,
    QUEUE_SITE_LOAD,
    QUEUE_METRICS
};

static const struct tl_metric_desc queue_rows[QUEUE_METRICS] = {
    [QUEUE_WAITING] = {"tellerline_queue_waiting", "Visitors in the line.", TL_GAUGE},
    [QUEUE_ACTIVE] = {"tellerline_queue_active", "Visitors with a session.", TL_GAUGE},
    [QUEUE_CAPACITY] = {"tellerline_queue_capacity", "Capacity in force.", TL_GAUGE},
    [QUEUE_ADMITTED] = {"tellerline_queue_admitted_total", "Visitors admitted.", TL_COUNTER},
    [QUEUE_OVER_ADMISSION] =
        {"tellerline_queue_over_admission",
         "Active visitors beyond capacity and overbook at the last admission. Must be 0.",
         TL_GAUGE},
    [QUEUE_WITHOUT_FEEDBACK] = {"tellerline_queue_without_feedback",
                                "1 when the capacity is adaptive and the site reports nothing.",
                                TL_GAUGE},
    [QUEUE_SITE_LOAD] = {"tellerline_queue_site_load_percent",
                         "The last load that the site reported, with an adaptive capacity.",
                         TL_GAUGE_MAX},
};

static const struct tl_queue_metrics_tables queue_metrics = {
    .queue = queue_rows, .n_queue = QUEUE_METRICS, .state = true};

/* The state of one held queue. */
struct queue {
    bool wake;             /* there is a reason to try */
    struct tl_wake reason; /* since the last step */
    int64_t due_ms;        /* try then in any case; local monotonic */
    uint64_t generation;   /* at the last step, 0: none yet */
    uint64_t base_seq;     /* of the incarnation whose events are followed */
    bool moved;            /* the last step met another incarnation */
    int64_t told_ms;       /* of the jumps of the store's clock, told with a former step... */
    const struct tl_redis *told_of; /* ...which was taken by this node */
    struct tl_draw *draw;           /* while it is held, or NULL */
    struct tl_steered steered;
    uint64_t allowed; /* active visitors, at the last admission; UINT64_MAX: any number */
};

struct node_clock {
    const struct tl_redis *redis; /* borrowed */
    struct tl_store_clock clock;
};

struct admitter {
    struct tl_process *process;
    struct tl_steering *steering;
    struct tl_args args;
    struct node_clock *clocks; /* of the nodes so far: one, unless the store is a cluster */
    size_t n_clocks;
    struct tl_drawer *drawer;
};

static void wake(void *context, struct tl_held_queue *held)
{
    struct queue *queue = held->state;
    (void)context;
    queue->wake = true;
}

/* The lease is gone: another process goes on with the draw. */
static void drop(void *context, struct tl_held_queue *held)
{
    struct queue *queue = held->state;
    (void)context;
    tl_draw_free(&queue->draw);
}

/* Follows the events of a queue that was just acquired, whose stream could not be read, or that is
 * of another incarnation: the ids of its stream may have gone back with the store's clock. */
static bool follow(struct admitter *self, struct tl_held_queue *held, struct tl_error *err)
{
    struct queue *queue = held->state;
    struct tl_tail_head head;
    if (tl_tail_follows(self->process->tail, &held->keys) && !queue->moved)
        return true;
    wake(self, held);
    if (!tl_tail_head(held->redis, &held->keys, &head, err))
        return false;
    queue->base_seq = head.base_seq;
    queue->moved = false;
    return tl_tail_follow(self->process->tail, &held->keys, &head, err);
}

static void report_sizes(const struct tl_held_queue *held, uint64_t waiting, uint64_t active)
{
    tl_metrics_set(held->series->values, QUEUE_WAITING, (int64_t)waiting);
    tl_metrics_set(held->series->values, QUEUE_ACTIVE, (int64_t)active);
}

static bool on_entry(void *context, struct tl_held_queue *held, const void *payload, size_t length)
{
    struct queue *queue = held->state;
    struct tl_event_entry entry;
    (void)context;
    if (!tl_events_decode(payload, length, &entry, NULL)) {
        queue->wake = true; /* the function knows what happened */
        return true;
    }
    report_sizes(held, entry.waiting, entry.active);
    if (tl_wake_reason(&queue->reason, &entry)) {
        queue->wake = true;
        queue->reason.capacity_left =
            1; /* at least, until the next step returns the exact number */
        queue->reason.not_yet = false;
    }
    tl_events_free(&entry);
    return true;
}

/* Tells the metrics what a step found. Capacity may be lowered below those who are active: only
 * what was allowed at the last admission counts. */
static void report_step(const struct tl_held_queue *held, const struct tl_reply *step)
{
    struct queue *queue = held->state;
    struct tl_metrics *values = held->series->values;
    const char *state = tl_reply_text(step, TL_ADMIT_STATE);
    uint64_t admitted = tl_reply_number(step, TL_ADMIT_ADMITTED);
    uint64_t active = tl_reply_number(step, TL_ADMIT_ACTIVE);
    uint64_t allowed = tl_reply_number(step, TL_ADMIT_ALLOWED);
    if (allowed == 0)
        allowed = UINT64_MAX;
    if (queue->allowed == 0)
        queue->allowed = UINT64_MAX; /* as long as none was admitted */
    if (admitted > 0 || allowed > queue->allowed)
        queue->allowed = allowed;
    if (strcmp(state, "recovering") == 0 && active > queue->allowed)
        queue->allowed = active; /* sessions of the lost generation come back */
    report_sizes(held, tl_reply_number(step, TL_ADMIT_WAITING), active);
    tl_metrics_set(values, QUEUE_CAPACITY, tl_reply_signed(step, TL_ADMIT_CAPACITY));
    tl_metrics_add(values, QUEUE_ADMITTED, (int64_t)admitted);
    tl_metrics_set(values, QUEUE_OVER_ADMISSION,
                   active > queue->allowed ? (int64_t)(active - queue->allowed) : 0);
    tl_queue_series_set_state(held->series, state);
}

/* The clock of a node. NULL when out of memory. */
static struct tl_store_clock *clock_of(struct admitter *self, const struct tl_redis *redis,
                                       struct tl_error *err)
{
    for (size_t i = 0; i < self->n_clocks; i++)
        if (self->clocks[i].redis == redis)
            return &self->clocks[i].clock;
    struct node_clock *clocks = realloc(self->clocks, (self->n_clocks + 1) * sizeof(*clocks));
    if (clocks == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the clock of the store");
        return NULL;
    }
    self->clocks = clocks;
    clocks[self->n_clocks] = (struct node_clock){.redis = redis};
    return &clocks[self->n_clocks++].clock;
}

/* Follows the clocks of all nodes that can be reached; the only one has to be. */
static bool look_at_clocks(struct admitter *self, int64_t now_ms, struct tl_error *err)
{
    struct tl_store *store = self->process->store;
    for (size_t i = 0; i < tl_store_nodes(store); i++) {
        struct tl_redis *redis = tl_store_node(store, i);
        struct tl_store_clock *clock = clock_of(self, redis, err);
        if (clock == NULL)
            return false;
        if (tl_redis_is_node(redis) && !tl_redis_connected(redis))
            continue;
        if (!tl_store_clock_look(clock, redis, now_ms, err) && !tl_redis_is_node(redis))
            return false;
    }
    return true;
}

/* One call of the function admit. Returns its answer, which the caller frees; NULL with err. */
static struct tl_reply *take_step(struct admitter *self, const struct tl_held_queue *held,
                                  struct tl_error *err)
{
    struct queue *queue = held->state;
    struct tl_metrics *metrics = self->process->metrics;
    struct tl_store_clock *clock = clock_of(self, held->redis, err);
    int64_t started_us = tl_clock_us();
    if (clock == NULL)
        return NULL;
    if (queue->told_of != held->redis)
        queue->told_ms = 0;
    queue->told_of = held->redis;
    tl_call_begin(&self->args, TL_FN_ADMIT, &held->keys);
    tl_args_uint(&self->args, self->process->config->admitter.batch);
    tl_args_uint(&self->args, self->process->config->retention.events_entries);
    tl_args_uint(&self->args, queue->generation);
    /* How the store's clock runs. A step that runs late makes it seem to have jumped, which only
     * delays an admission by rate. */
    tl_args_int(&self->args, tl_store_clock_at(clock, started_us / 1000));
    tl_args_int(&self->args, clock->jumped_ms - queue->told_ms);
    tl_args_int(&self->args, clock->jumped_to_ms);
    struct tl_reply *step = tl_call(held->redis, &self->args, err);
    if (step == NULL)
        return NULL;
    uint64_t admitted = tl_reply_number(step, TL_ADMIT_ADMITTED);
    queue->generation = tl_reply_number(step, TL_ADMIT_GENERATION);
    queue->moved = tl_reply_number(step, TL_ADMIT_BASE_SEQ) != queue->base_seq;
    queue->steered.on = tl_reply_signed(step, TL_ADMIT_STEERED) == 1;
    queue->reason.overbooked = tl_reply_signed(step, TL_ADMIT_OVERBOOKED) == 1;
    report_step(held, step);
    tl_store_clock_note(clock, tl_reply_signed(step, TL_ADMIT_NOW), started_us / 1000,
                        tl_clock_ms());
    queue->told_ms = clock->jumped_ms;
    tl_metrics_add(metrics, TL_ADMITTER_STEPS, 1);
    tl_metrics_add(metrics, TL_ADMITTER_IDLE_STEPS, admitted == 0 ? 1 : 0);
    tl_metrics_add(metrics, TL_ADMITTER_ADMITTED, (int64_t)admitted);
    tl_metrics_observe(metrics, TL_ADMITTER_STEP_TIME, tl_clock_us() - started_us);
    return step;
}

/* Does what the last step said of the queue's draw, and lowers *wait_ms to the time after which it
 * goes on. */
static bool serve_draw(struct admitter *self, struct tl_held_queue *held,
                       const struct tl_reply *step, int64_t *wait_ms, struct tl_error *err)
{
    struct queue *queue = held->state;
    int64_t wanted = tl_reply_signed(step, TL_ADMIT_DRAW);
    int64_t opens_at_ms = tl_reply_signed(step, TL_ADMIT_OPENS_AT);
    enum tl_draw_state state;
    if (wanted != TL_WANTED_HOLD)
        tl_draw_free(&queue->draw);
    if (wanted == TL_WANTED_NOTHING)
        return true;
    if (queue->draw == NULL && !tl_drawer_announce(self->drawer, held, opens_at_ms, err))
        return false;
    if (wanted == TL_WANTED_ANNOUNCE)
        return true;
    if (!tl_drawer_hold(self->drawer, held, opens_at_ms, DRAW_TURN_MS, &queue->draw, &state, err))
        return false;
    *wait_ms = state == TL_DRAW_WAITS && *wait_ms > DRAW_AGAIN_MS ? DRAW_AGAIN_MS : *wait_ms;
    queue->wake = queue->wake || state != TL_DRAW_WAITS; /* to go on, or to admit */
    return true;
}

/* Admits visitors of one queue while a step admits as many as it may. */
static bool admit(struct admitter *self, struct tl_held_queue *held, struct tl_error *err)
{
    struct queue *queue = held->state;
    struct tl_reply *step = NULL;
    bool full = true;
    for (int i = 0; i < STEPS_MAX && full; i++) {
        tl_reply_free(step);
        step = take_step(self, held, err);
        if (step == NULL)
            return false;
        full = tl_reply_number(step, TL_ADMIT_ADMITTED) >= self->process->config->admitter.batch;
    }
    queue->wake = full; /* go on after the other queues */
    queue->reason.capacity_left = tl_reply_number(step, TL_ADMIT_LEFT);
    int64_t again_ms = tl_reply_signed(step, TL_ADMIT_AGAIN); /* 0: no need */
    queue->reason.not_yet = again_ms > 0;
    int64_t wait_ms = tl_reply_number(step, TL_ADMIT_WAITING) == 0 ? RECHECK_IDLE_MS : RECHECK_MS;
    if (again_ms > 0 && again_ms < wait_ms)
        wait_ms = again_ms;
    bool ok = serve_draw(self, held, step, &wait_ms, err);
    tl_reply_free(step);
    if (ok)
        queue->due_ms = tl_clock_ms() + wait_ms; /* of the clock now: steps take time */
    return ok;
}

static bool serve(void *context, struct tl_held_queue *held, int64_t now_ms, int64_t *due_ms,
                  struct tl_error *err)
{
    struct admitter *self = context;
    struct queue *queue = held->state;
    if (!follow(self, held, err))
        return false;
    if ((queue->wake || now_ms >= queue->due_ms) && !admit(self, held, err))
        return false;
    int64_t next_ms = queue->wake || queue->moved ? now_ms : queue->due_ms;
    if (!tl_steering_step(self->steering, held, &queue->steered, now_ms, err))
        return false;
    if (queue->steered.on && queue->steered.due_ms < next_ms)
        next_ms = queue->steered.due_ms;
    if (queue->steered.on && queue->steered.probe_ms < next_ms)
        next_ms = queue->steered.probe_ms;
    *due_ms = next_ms < *due_ms ? next_ms : *due_ms;
    return true;
}

static bool open_admitter(void *context, struct tl_process *process, struct tl_error *err)
{
    struct admitter *self = context;
    const struct tl_config *config = process->config;
    struct tl_actor actor;
    self->process = process;
    tl_actor_of_program(&actor, "admitter", config->retention.changes_entries);
    self->drawer =
        tl_drawer_new(config->secrets.draw_key, config->retention.events_entries, &actor);
    if (self->drawer == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the admitter");
    self->steering = tl_steering_new(config, process->metrics, err);
    return self->steering != NULL;
}

static void close_admitter(void *context)
{
    struct admitter *self = context;
    tl_drawer_free(&self->drawer);
    tl_steering_free(&self->steering);
    tl_args_free(&self->args);
    free(self->clocks);
}

static void count_steered(const struct admitter *self)
{
    struct tl_metrics *metrics = self->process->metrics;
    int64_t steered = 0, unreported = 0, capacity = 0;
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++) {
        const struct tl_held_queue *held = tl_roster_at(self->process->roster, i);
        const struct queue *queue = held->state;
        steered += queue->steered.on;
        unreported += queue->steered.on && queue->steered.unreported;
        capacity += queue->steered.on ? queue->steered.capacity : 0;
        struct tl_metrics *values = held->series->values;
        tl_metrics_set(values, QUEUE_WITHOUT_FEEDBACK,
                       queue->steered.on && queue->steered.unreported ? 1 : 0);
        tl_metrics_set(values, QUEUE_SITE_LOAD,
                       queue->steered.on && queue->steered.load > 0 ? queue->steered.load / 10 : 0);
    }
    tl_metrics_set(metrics, TL_ADMITTER_STEERED, steered);
    tl_metrics_set(metrics, TL_ADMITTER_UNREPORTED, unreported);
    tl_metrics_set(metrics, TL_ADMITTER_CAPACITY, capacity);
}

static bool turn(void *context, int64_t now_ms, struct tl_error *err)
{
    struct admitter *self = context;
    struct tl_process *process = self->process;
    int64_t due_ms = INT64_MAX;
    bool ok = tl_process_refresh(process, now_ms, err) && look_at_clocks(self, now_ms, err) &&
              tl_process_serve(process, now_ms, &due_ms, err);
    count_steered(self);
    return ok && tl_process_wait(process, tl_process_wait_ms(process, due_ms, tl_clock_ms()), err);
}

static const struct tl_role role = {
    .name = "admitter",
    .summary = "Admits the next visitors while there is capacity.",
    .admin = offsetof(struct tl_config, admin.admitter),
    .size = sizeof(struct admitter),
    .queue_size = sizeof(struct queue),
    .metrics = metric_rows,
    .n_metrics = TL_ADMITTER_METRICS,
    .queue_metrics = &queue_metrics,
    .open = open_admitter,
    .close = close_admitter,
    .turn = turn,
    .drop = drop,
    .outdated = wake,
    .serve = serve,
    .event = on_entry,
};

int main(int argc, char **argv)
{
    return tl_role_main(&role, argc, argv);
}
