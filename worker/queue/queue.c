/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/config/queue_settings.h"
#include "worker/feed/follower.h"
#include "worker/queue/queue.h"
#include "worker/report/worker_metrics.h"

enum {
    ENDED_MAX = 100000,       /* ends remembered from the store's answers */
    DIFFERS_EVERY_MS = 30000, /* between two rebuilds because of the line's sizes */
    FORGET_PER_TICK = 1000,   /* old ends forgotten in one tick */
    STALE_MS = 5000,
};

/* Notes the outcome of a RESTORE. */
static void note_restored(struct tl_queue *queue, const struct tl_pending_command *pending,
                          const struct tl_pending_result *result)
{
    uint64_t generation = pending->numbers[0];
    bool held = result->outcome != TL_OUTCOME_GONE,
         returned = held && result->place == pending->place;
    if (result->end == TL_PENDING_APPLIED)
        tl_lost_answered(&queue->lost, generation, pending->place, returned,
                         held && !returned ? result->place : 0);
}

void tl_queue_settled(struct tl_queue *queue, const struct tl_pending_command *pending,
                      const struct tl_pending_result *result)
{
    if (pending->kind == TL_COMMAND_RENEW || pending->kind == TL_COMMAND_CLAIM)
        tl_claims_settled(&queue->claims, queue->line, pending, result, tl_clock_ms());
    if (pending->kind == TL_COMMAND_RESTORE)
        note_restored(queue, pending, result);
    tl_lost_settled(&queue->lost, pending, result);
    queue->weather.known = false;
}

struct tl_queue *tl_queue_new(const struct tl_queue_env *env, const char *name)
{
    struct tl_queue *queue = calloc(1, sizeof(*queue));
    if (queue == NULL)
        return NULL;
    queue->env = env;
    snprintf(queue->name, sizeof(queue->name), "%s", name);
    queue->outbox = tl_outbox_new(env->worker_id, &env->store_offset_ms, env->settle, queue);
    queue->presence.outbox = queue->outbox;
    queue->promises.random = (uint64_t)(uintptr_t)queue;
    if (queue->outbox == NULL)
        tl_queue_free(&queue);
    return queue;
}

void tl_queue_free(struct tl_queue **queue)
{
    if (*queue == NULL)
        return;
    tl_outbox_free(&(*queue)->outbox);
    tl_presence_forget(&(*queue)->presence);
    tl_claims_clear(&(*queue)->claims);
    tl_placemap_clear(&(*queue)->ended);
    tl_lost_clear(&(*queue)->lost);
    tl_placemap_clear(&(*queue)->eta.sessions.running);
    tl_line_free(&(*queue)->line);
    tl_notice_clear(&(*queue)->notice);
    free((*queue)->shared);
    free(*queue);
    *queue = NULL;
}

/* ---- what is known ---- */

/* Without news from the store for this long, numbers are shown with their age. */
static int64_t as_of_ms(const struct tl_queue_env *env, int64_t now_ms)
{
    if (env->heard_ms == 0 || now_ms - env->heard_ms < STALE_MS)
        return 0;
    return tl_queue_env_store_ms(env, env->heard_ms);
}

/* How it is at this time, all but the version. */
static struct tl_weather work_out(const struct tl_queue *queue, int64_t now_ms)
{
    enum { RECOVERING = 2, STALE = 4, OVER = 8, NO_CAPACITY = 16, MODE = 32 };
    const struct tl_queue_settings *settings = &queue->settings;
    const struct tl_queue_env *env = queue->env;
    const int64_t store_ms = tl_queue_env_store_ms(env, now_ms);
    const uint64_t event = queue->line != NULL ? queue->line->event : 0;
    struct tl_phase_facts facts = {.now_ms = store_ms,
                                   .full_since_ms = queue->lost.known.full_since_ms,
                                   .drawing = tl_lost_undrawn(&queue->lost, settings, event),
                                   .recovering = tl_lost_recovering(&queue->lost)};
    struct tl_weather weather = {
        .mode = tl_queue_env_lets_in(env, queue->name) ? TL_MODE_PASSTHROUGH : settings->mode,
        .drawing = facts.drawing,
        .recovering = facts.recovering,
        .scheduled = settings->opens_at_ms > store_ms,
        .as_of_ms = as_of_ms(env, now_ms),
        .known = true,
        .at_ms = now_ms,
        .env_changes = env->changes};
    if (queue->line != NULL) {
        facts.waiting = weather.waiting = tl_line_waiting(queue->line);
        weather.active = tl_line_active(queue->line);
    }
    weather.phase = tl_phase_of(settings, &facts);
    weather.open = !facts.recovering && !facts.drawing && tl_mode_admits(settings, store_ms);
    bool none = settings->policy != TL_POLICY_RATE && settings->capacity == 0;
    weather.told = (weather.drawing ? TL_TOLD_DRAWING : 0) | (weather.recovering ? RECOVERING : 0) |
                   (weather.as_of_ms != 0 ? STALE : 0) |
                   (weather.phase == TL_PHASE_OVER ? OVER : 0) | (none ? NO_CAPACITY : 0) |
                   (unsigned)weather.mode * MODE;
    return weather;
}

static bool same_weather(const struct tl_weather *a, struct tl_weather b)
{
    return a->mode == b.mode && a->phase == b.phase && a->open == b.open &&
           a->drawing == b.drawing && a->recovering == b.recovering &&
           a->scheduled == b.scheduled && a->waiting == b.waiting && a->active == b.active &&
           a->as_of_ms == b.as_of_ms && a->told == b.told;
}

const struct tl_weather *tl_queue_weather(struct tl_queue *queue, int64_t now_ms)
{
    struct tl_weather *weather = &queue->weather;
    if (weather->known && weather->at_ms == now_ms && weather->env_changes == queue->env->changes) {
#ifndef NDEBUG
        const struct tl_weather so = work_out(queue, now_ms);
        assert(same_weather(weather, so));
#endif
        return weather;
    }
    struct tl_weather now = work_out(queue, now_ms);
    now.version = weather->version + !same_weather(weather, now);
    *weather = now;
    return weather;
}

struct tl_line_view tl_queue_look(const struct tl_queue *queue, tl_place place, bool *known)
{
    struct tl_line_view view =
        tl_claims_view(&queue->claims, place, tl_line_look(queue->line, place));
    uint64_t reason = 0;
    *known = view.status != TL_LINE_UNKNOWN;
    if (!*known && tl_placemap_get(&queue->ended, place, &reason)) {
        *known = true;
        view.status = reason != 0 ? TL_LINE_ENDED : TL_LINE_UNKNOWN;
        view.reason = (enum tl_reason)reason;
    }
    return view;
}

bool tl_queue_about_to_admit(struct tl_queue *queue, tl_place place, int64_t now_ms)
{
    struct tl_line_view view = tl_line_look(queue->line, place);
    return view.status == TL_LINE_WAITING && queue->settings.policy == TL_POLICY_COUNTER &&
           tl_queue_weather(queue, now_ms)->open &&
           view.ahead + tl_line_active(queue->line) < tl_queue_capacity(&queue->settings);
}

bool tl_queue_must_claim(const struct tl_queue *queue, tl_place place)
{
    return queue->settings.overbook > 0 && !tl_claims_has(&queue->claims, place) &&
           tl_line_look(queue->line, place).status == TL_LINE_ACTIVE;
}

bool tl_queue_estimate(struct tl_queue *queue, uint64_t position, int64_t now_ms,
                       struct tl_eta_range *range, enum tl_eta_reason *reason)
{
    tl_eta_set_open(&queue->eta, tl_queue_weather(queue, now_ms)->open, now_ms);
    return tl_eta_estimate(&queue->eta, position, now_ms, range, reason);
}

void tl_queue_set_settings(struct tl_queue *queue, const struct tl_queue_settings *settings,
                           int64_t now_ms)
{
    const struct tl_eta_rule rule = {
        .counted = settings->policy != TL_POLICY_RATE,
        .capacity = tl_queue_capacity(settings),
        .admit = settings->policy != TL_POLICY_COUNTER ? settings->rate.admit : 0,
        .every_ms = settings->rate.every_ms,
        .burst = settings->rate.burst,
        .batches = settings->rate.shape == TL_RATE_BATCHES};
    queue->settings = *settings;
    queue->weather.version++;
    queue->weather.known = false;
    if (queue->line != NULL)
        tl_line_weigh(queue->line, &settings->lane_weights);
    tl_eta_set_rule(&queue->eta, &rule, now_ms);
    tl_eta_set_open(&queue->eta, tl_queue_weather(queue, now_ms)->open, now_ms);
}

/* Feeds an entry to the estimate. */
static void observe(struct tl_queue *queue, const struct tl_event_entry *entry, int64_t now_ms)
{
    tl_eta_set_open(&queue->eta, tl_queue_weather(queue, now_ms)->open, now_ms);
    tl_eta_apply(&queue->eta, entry, now_ms);
    tl_promises_apply(&queue->promises, queue->line, entry, now_ms);
}

/* What is known about places of the former generation no longer holds. */
static void forget_places(struct tl_queue *queue)
{
    tl_presence_forget(&queue->presence);
    tl_claims_clear(&queue->claims);
    tl_placemap_clear(&queue->ended);
    tl_promises_drop(&queue->promises);
}

/* The store has lost some ends together with their places: these stay ended. */
static void keep_lost_ends(struct tl_queue *queue, const struct tl_line *former)
{
    const struct tl_placemap_entry *end;
    for (size_t i = 0; (end = tl_placemap_next(&former->ended, &i)) != NULL;)
        if (tl_line_lost(queue->line, end->place))
            tl_queue_remember_end(queue, end->place, tl_line_look(former, end->place).reason);
}

bool tl_queue_set_line(struct tl_queue *queue, struct tl_line *line, int64_t now_ms)
{
    bool again = queue->line != NULL;
    bool recreated = again && queue->line->generation != line->generation;
    if (recreated) {
        tl_lost_keep(&queue->lost, queue->line, queue->settings.recovery_window_ms > 0);
        queue->line = NULL;
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue->name},
               tl_lost_recovering(&queue->lost)
                   ? "the store has lost the queue; its visitors come back to their places"
                   : "the queue was recreated; tickets of its former generation are void");
        forget_places(queue);
    }
    struct tl_line *former = queue->line;
    queue->line = line;
    queue->weather.known = false;
    tl_line_weigh(line, &queue->settings.lane_weights);
    if (former != NULL)
        keep_lost_ends(queue, former);
    tl_lost_keep_sessions(&queue->lost, former, line);
    tl_line_free(&former);
    queue->outbox->generation = line->generation;
    queue->rebuilding = false;
    tl_claims_keep(&queue->claims, line); /* the event of an end may be missed */
    tl_metrics_add(queue->env->metrics, TL_WORKER_SNAPSHOTS, 1);
    tl_eta_set_line(&queue->eta, line, now_ms);
    tl_promises_drop(&queue->promises); /* some may have been admitted at a time not known */
    if (again)
        tl_outbox_missed(queue->outbox);
    if (recreated || !again)
        tl_lost_tell(&queue->lost, queue->outbox); /* before the first who comes back */
    if (recreated)
        tl_outbox_forget_places(queue->outbox);
    return recreated;
}

void tl_queue_set_recovery(struct tl_queue *queue, const struct tl_recovery *recovery)
{
    bool before = tl_lost_recovering(&queue->lost);
    tl_lost_set(&queue->lost, recovery);
    queue->weather.known = false;
    if (before && !tl_lost_recovering(&queue->lost))
        tl_log(TL_LOG_INFO, &(struct tl_log_fields){.queue = queue->name},
               "the recovery is over: %llu places came back",
               (unsigned long long)recovery->restored);
}

void tl_queue_set_notice(struct tl_queue *queue, const char *text, size_t length)
{
    if (!tl_notice_set(&queue->notice, text, length))
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = queue->name},
               "no memory for the notice");
    queue->weather.version++;
}

/* ---- events ---- */

/* Acts on the events of an entry after the line has taken it. */
static void follow_up(struct tl_queue *queue, const struct tl_event_entry *entry, int64_t now_ms)
{
    const struct tl_queue_env *env = queue->env;
    for (size_t i = 0; i < entry->n_events; i++) {
        const struct tl_event *event = &entry->events[i];
        if (event->kind == TL_EVENT_APPLIED && strcmp(event->worker, env->worker_id) == 0)
            tl_outbox_applied(queue->outbox, event);
        else if (event->kind == TL_EVENT_FREED || event->kind == TL_EVENT_RENEWED)
            tl_claims_event(&queue->claims, queue->line, event, now_ms);
        else if (event->kind == TL_EVENT_CONFIG)
            tl_follower_reload(env->follower, queue->name);
        else if (event->kind == TL_EVENT_NOTICE)
            tl_queue_set_notice(queue, event->text, event->text_length);
    }
}

static void ask_for_rebuild(struct tl_queue *queue, const char *why)
{
    if (queue->rebuilding)
        return;
    queue->rebuilding = true;
    tl_metrics_add(queue->env->metrics, TL_WORKER_GAPS, 1);
    tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue->name}, "%s; rebuilding the line",
           why);
    tl_follower_rebuild(queue->env->follower, queue->name);
}

/* If a rebuild did not help, the store is inconsistent, and more of them would not help either. */
static void note_other_sizes(struct tl_queue *queue, int64_t now_ms)
{
    if (queue->differed_ms != 0 && now_ms < queue->differed_ms + DIFFERS_EVERY_MS)
        return;
    queue->differed_ms = now_ms;
    tl_metrics_add(queue->env->metrics, TL_WORKER_DIFFERED, 1);
    ask_for_rebuild(queue, "the line has other sizes than the store; if this comes back, run "
                           "`tellerline audit`");
}

bool tl_queue_apply(struct tl_queue *queue, const void *payload, size_t length, int64_t now_ms,
                    struct tl_event_entry *entry)
{
    struct tl_error err = {0};
    if (queue->line == NULL)
        return false;
    if (!tl_events_decode(payload, length, entry, &err)) {
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = queue->name, .error = &err},
               "cannot decode an entry of the events stream");
        ask_for_rebuild(queue, "an event could not be read");
        return false;
    }
    enum tl_line_result result = tl_line_apply(queue->line, entry, now_ms);
    queue->weather.known = false;
    switch (result) {
    case TL_LINE_APPLIED:
    case TL_LINE_DIFFERS:
        tl_metrics_add(queue->env->metrics, TL_WORKER_EVENTS, 1);
        observe(queue, entry, now_ms);
        follow_up(queue, entry, now_ms);
        if (result == TL_LINE_DIFFERS)
            note_other_sizes(queue, now_ms);
        return true;
    case TL_LINE_OLD:
        follow_up(queue, entry, now_ms); /* a request may still wait for it */
        return true;
    case TL_LINE_GAP:
        ask_for_rebuild(queue, "events are missing");
        break;
    case TL_LINE_NOMEM:
        ask_for_rebuild(queue, "no memory for an event");
        break;
    }
    tl_events_free(entry);
    return false;
}

/* ---- presence and claims ---- */

/* Sends a RENEW or CLAIM. Does it claim for sure? If overbooked, only the outcome tells. */
static bool send_claim(struct tl_queue *queue, enum tl_command_kind kind, const char *visitor,
                       tl_place place)
{
    return tl_queue_store_up(queue) && !queue->env->full &&
           tl_outbox_command(queue->outbox, kind, visitor, place, NULL) != NULL &&
           queue->settings.overbook == 0;
}

void tl_queue_touch(struct tl_queue *queue, const char *visitor, tl_place place,
                    const struct tl_line_view *view, int64_t now_ms)
{
    if (view->status == TL_LINE_WAITING && !view->called)
        tl_presence_mark(&queue->presence, tl_place_seq(place));
    else if ((view->status == TL_LINE_ACTIVE || view->called) &&
             tl_claims_due(&queue->claims, &queue->settings, place, now_ms) &&
             send_claim(queue, TL_COMMAND_CLAIM, visitor, place))
        tl_claims_note_claim(&queue->claims, place);
}

void tl_queue_use(struct tl_queue *queue, const char *visitor, tl_place place,
                  const struct tl_line_view *view, int64_t now_ms)
{
    if (view->status == TL_LINE_ACTIVE &&
        (tl_claims_due(&queue->claims, &queue->settings, place, now_ms) ||
         tl_claims_extends(&queue->claims, &queue->settings, place, now_ms)) &&
        send_claim(queue, TL_COMMAND_RENEW, visitor, place))
        tl_claims_note(&queue->claims, place, now_ms);
}

void tl_queue_remember_end(struct tl_queue *queue, tl_place place, unsigned reason)
{
    if (queue->ended.count >= ENDED_MAX)
        tl_placemap_clear(&queue->ended);
    (void)tl_placemap_put(&queue->ended, place,
                          reason); /* without memory, we ask the store again */
}

void tl_queue_tick(struct tl_queue *queue, int64_t now_ms)
{
    (void)tl_line_forget(queue->line, now_ms, FORGET_PER_TICK);
    tl_eta_set_open(&queue->eta, tl_queue_weather(queue, now_ms)->open, now_ms);
    tl_promises_tick(&queue->promises, &queue->eta, queue->line, now_ms);
    if (tl_queue_store_up(queue) && queue->env->refuses == TL_OK)
        tl_lost_tell_again(&queue->lost, queue->outbox);
    if (tl_queue_store_up(queue))
        tl_presence_tick(&queue->presence, queue->settings.waiting_ttl_ms,
                         tl_line_waiting(queue->line) > 0, now_ms);
}

/* ---- what all queues share: passthrough ---- */

bool tl_queue_env_read(struct tl_queue_env *env, const struct tl_config *config,
                       struct tl_error *err)
{
    char(*names)[sizeof(*env->passthrough)] = calloc(config->n_queues + 1, sizeof(*names));
    size_t n = 0;
    if (names == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the queues");
    for (size_t i = 0; i < config->n_queues; i++) {
        const struct tl_queue_config *queue = &config->queues[i];
        if (!queue->passthrough)
            continue;
        memcpy(names[n++], queue->name, sizeof(*names));
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue->name},
               "mode: passthrough in the file: this worker lets everyone in, until it is taken out "
               "and the worker gets SIGHUP");
    }
    free(env->passthrough);
    env->passthrough = names;
    env->n_passthrough = n;
    env->changes++;
    return true;
}

bool tl_queue_env_lets_in(const struct tl_queue_env *env, const char *queue)
{
    for (size_t i = 0; i < env->n_passthrough; i++) {
        if (strcmp(env->passthrough[i], queue) == 0)
            return true;
    }
    return false;
}

/* ---- what all queues share: press ---- */

enum {
    SHARE_MOST = 50, /* as many as http.joins_per_minute allows by default */
    SHARE_LEAST = 5,
    MEMORY_SCARCE = 80, /* percent */
    MEMORY_FULL = 95,
};

/* The share of a bound at which no room is left for this purpose. Half of max_pending and a
 * twentieth of max_lag are 1.5 s behind, with the defaults. */
static const double of_pending = 0.5, of_lag = 0.05;

/* What is left of 1. */
static double room(double used, double most)
{
    return used < most ? 1 - used / most : 0;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

uint64_t tl_press_share(const struct tl_press *press)
{
    double left = room((double)press->pending, (double)press->pending_max * of_pending);
    left = least(left, room((double)press->lag_ms, (double)press->lag_max_ms * of_lag));
    if (press->memory_percent > MEMORY_SCARCE)
        left =
            least(left, room(press->memory_percent - MEMORY_SCARCE, MEMORY_FULL - MEMORY_SCARCE));
    if (left > 0.5)
        return 0;
    return SHARE_LEAST + (uint64_t)((SHARE_MOST - SHARE_LEAST) * 2 * left);
}
