#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/line/placemap.h"
#include "common/store/queue.h"
#include "worker/http/json_text.h"
#include "worker/queue/local_queue.h"
#include "worker/queue/presence.h"
#include "worker/report/worker_metrics.h"

enum {
    ENDED_MAX = 100000,     /* ends remembered from the store's answers */
    PRESENCE_RUNS = 500,    /* most runs added to the outbox in one tick */
    SLIDE_MIN_MS = 1000,    /* minimum time between two extensions of a sliding session */
    FORGET_PER_TICK = 1000, /* old ends forgotten in one tick */
};

struct tl_local_queue {
    const struct tl_queue_env *env;
    char name[TL_QUEUE_NAME_MAX + 1];
    struct tl_queue_settings settings;
    struct tl_line *line; /* NULL until the first snapshot */
    bool rebuilding;      /* after a gap: a fresh line was asked for */
    bool deleted;
    struct tl_eta eta;
    struct tl_outbox *outbox;
    struct tl_presence *presence;
    uint64_t presence_batch;     /* the last batch with presence in it */
    struct tl_placemap *claimed; /* active place -> local ms + 1 of the last RENEW known */
    struct tl_placemap *ended;   /* place the line does not know -> its reason; 0: unknown */
    char notice[TL_NOTICE_MAX + 1];
    char *notice_json; /* NULL until the first notice */
    uint64_t notice_version;
    struct tl_subscribers *subscribers;
};

/* The outbox reports the outcome of a command. */
static void on_settled(void *context, struct tl_pending_command *pending,
                       const struct tl_pending_result *result)
{
    struct tl_local_queue *queue = context;
    if (pending->kind == TL_COMMAND_RENEW && result->end != TL_PENDING_APPLIED)
        (void)tl_placemap_remove(queue->claimed, pending->place, NULL); /* the next touch claims */
    queue->env->settled(queue->env->context, queue, pending, result);
}

struct tl_local_queue *tl_local_queue_new(const struct tl_queue_env *env, const char *name)
{
    struct tl_local_queue *queue = calloc(1, sizeof(*queue));
    if (queue == NULL)
        return NULL;
    queue->env = env;
    snprintf(queue->name, sizeof(queue->name), "%s", name);
    queue->outbox = tl_outbox_new(env->worker_id, on_settled, queue);
    queue->presence = tl_presence_new();
    queue->claimed = tl_placemap_new();
    queue->ended = tl_placemap_new();
    if (queue->outbox == NULL || queue->presence == NULL || queue->claimed == NULL ||
        queue->ended == NULL)
        tl_local_queue_free(&queue);
    return queue;
}

void tl_local_queue_free(struct tl_local_queue **queue)
{
    if (*queue == NULL)
        return;
    tl_outbox_free(&(*queue)->outbox);
    tl_presence_free(&(*queue)->presence);
    tl_placemap_free(&(*queue)->claimed);
    tl_placemap_free(&(*queue)->ended);
    tl_line_free(&(*queue)->line);
    free((*queue)->notice_json);
    free(*queue);
    *queue = NULL;
}

/* ---- what is known ---- */

const char *tl_local_queue_name(const struct tl_local_queue *queue)
{
    return queue->name;
}

const struct tl_queue_settings *tl_local_queue_settings(const struct tl_local_queue *queue)
{
    return &queue->settings;
}

bool tl_local_queue_loaded(const struct tl_local_queue *queue)
{
    return queue->line != NULL;
}

bool tl_local_queue_deleted(const struct tl_local_queue *queue)
{
    return queue->deleted;
}

uint64_t tl_local_queue_generation(const struct tl_local_queue *queue)
{
    return tl_line_generation(queue->line);
}

uint64_t tl_local_queue_waiting(const struct tl_local_queue *queue)
{
    return tl_line_waiting(queue->line);
}

uint64_t tl_local_queue_active(const struct tl_local_queue *queue)
{
    return tl_line_active(queue->line);
}

size_t tl_local_queue_bytes(const struct tl_local_queue *queue)
{
    return queue->line != NULL ? tl_line_bytes(queue->line) : 0;
}

bool tl_local_queue_open(const struct tl_local_queue *queue, int64_t now_ms)
{
    return !queue->settings.paused &&
           tl_queue_env_store_ms(queue->env, now_ms) >= queue->settings.opens_at_ms;
}

const char *tl_local_queue_notice(const struct tl_local_queue *queue)
{
    return queue->notice;
}

const char *tl_local_queue_notice_json(const struct tl_local_queue *queue, uint64_t *version)
{
    *version = queue->notice_version;
    return queue->notice_json;
}

struct tl_line_view tl_local_queue_look(const struct tl_local_queue *queue, tl_place place,
                                        bool *known)
{
    struct tl_line_view view = tl_line_look(queue->line, place);
    uint64_t reason = 0;
    *known = view.status != TL_LINE_UNKNOWN;
    if (!*known && tl_placemap_get(queue->ended, place, &reason)) {
        *known = true;
        view.status = reason != 0 ? TL_LINE_ENDED : TL_LINE_UNKNOWN;
        view.reason = (enum tl_reason)reason;
    }
    return view;
}

bool tl_local_queue_about_to_admit(const struct tl_local_queue *queue, tl_place place,
                                   int64_t now_ms)
{
    struct tl_line_view view = tl_line_look(queue->line, place);
    return view.status == TL_LINE_WAITING && tl_local_queue_open(queue, now_ms) &&
           view.ahead + tl_line_active(queue->line) < queue->settings.capacity;
}

bool tl_local_queue_claimed(const struct tl_local_queue *queue, tl_place place)
{
    uint64_t since;
    return tl_placemap_get(queue->claimed, place, &since);
}

bool tl_local_queue_estimate(const struct tl_local_queue *queue, uint64_t position, int64_t now_ms,
                             struct tl_eta_range *range)
{
    return tl_local_queue_open(queue, now_ms) &&
           tl_eta_estimate(&queue->eta, now_ms, position, range);
}

size_t tl_local_queue_front(const struct tl_local_queue *queue, tl_place *places, size_t most)
{
    size_t n = 0;
    for (unsigned lane = 0; lane < TL_LANES_MAX && n < most; lane++) {
        const struct tl_order *order = tl_line_order(queue->line, lane);
        uint64_t seq = 0;
        while (order != NULL && n < most && tl_order_next(order, seq + 1, &seq))
            places[n++] = tl_place_make(lane, seq);
    }
    return n;
}

/* ---- settings, lines, notices ---- */

void tl_local_queue_set_settings(struct tl_local_queue *queue,
                                 const struct tl_queue_settings *settings, int64_t now_ms)
{
    queue->settings = *settings;
    tl_eta_limit(&queue->eta, settings->capacity);
    if (settings->paused)
        tl_eta_stop(&queue->eta, now_ms);
}

/* Feeds a step of the line to the estimate. Before the queue opens there is nothing to estimate. */
static void observe(struct tl_local_queue *queue, uint64_t admitted, int64_t now_ms)
{
    bool counted = queue->settings.policy != TL_POLICY_RATE;
    if (!tl_local_queue_open(queue, now_ms))
        return;
    tl_eta_step(&queue->eta, now_ms,
                &(struct tl_eta_step){.admitted = admitted,
                                      .waiting = tl_line_waiting(queue->line),
                                      .active = counted ? tl_line_active(queue->line) : 0});
}

void tl_local_queue_set_line(struct tl_local_queue *queue, struct tl_line *line, int64_t now_ms)
{
    if (queue->line != NULL && tl_line_generation(queue->line) != tl_line_generation(line)) {
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue->name},
               "the queue was recreated; tickets of its former generation are void");
        /* The new generation reuses the numbers of places: what we know about them no longer holds.
         */
        struct tl_presence *presence = tl_presence_new();
        if (presence != NULL) {
            tl_presence_free(&queue->presence);
            queue->presence = presence;
        }
        tl_placemap_clear(queue->claimed);
        tl_placemap_clear(queue->ended);
        queue->eta = (struct tl_eta){0};
    }
    if (queue->line != NULL)
        tl_outbox_missed(queue->outbox);
    tl_line_free(&queue->line);
    queue->line = line;
    queue->rebuilding = false;
    tl_metrics_add(queue->env->metrics, TL_WORKER_SNAPSHOTS, 1);
    observe(queue, 0, now_ms);
}

void tl_local_queue_set_notice(struct tl_local_queue *queue, const char *text, size_t length)
{
    if (length > TL_NOTICE_MAX)
        length = TL_NOTICE_MAX; /* written by a newer version */
    if (strlen(queue->notice) == length && memcmp(queue->notice, text, length) == 0)
        return;
    size_t size = TL_JSON_ESCAPED_MAX(length) + 16;
    char *json_text = malloc(size);
    if (json_text == NULL) {
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = queue->name},
               "no memory for the notice");
        return;
    }
    memcpy(queue->notice, text, length);
    queue->notice[length] = '\0';
    struct tl_json json;
    tl_json_begin(&json, json_text, size);
    tl_json_string(&json, "text", queue->notice);
    json_text[tl_json_end(&json)] = '\0';
    free(queue->notice_json);
    queue->notice_json = json_text;
    queue->notice_version++;
}

void tl_local_queue_set_deleted(struct tl_local_queue *queue)
{
    queue->deleted = true;
}

/* ---- events ---- */

static void note_claim(struct tl_local_queue *queue, tl_place place, int64_t now_ms)
{
    /* Without memory it is not noted, and the next touch claims again, which is harmless. */
    (void)tl_placemap_put(queue->claimed, place, (uint64_t)now_ms + 1);
}

static void forget_claims(struct tl_local_queue *queue, const struct tl_runs *runs)
{
    for (size_t i = 0; i < runs->n && tl_placemap_count(queue->claimed) > 0; i++) {
        for (uint64_t k = 0; k < runs->runs[i].count; k++)
            (void)tl_placemap_remove(queue->claimed, runs->runs[i].first + k, NULL);
    }
}

/* Acts on the events of an entry after the line has taken it. */
static void follow_up(struct tl_local_queue *queue, const struct tl_event_entry *entry,
                      int64_t now_ms)
{
    const struct tl_queue_env *env = queue->env;
    for (size_t i = 0; i < entry->n_events; i++) {
        const struct tl_event *event = &entry->events[i];
        if (event->kind == TL_EVENT_APPLIED && strcmp(event->worker, env->worker_id) == 0)
            tl_outbox_applied(queue->outbox, event);
        else if (event->kind == TL_EVENT_FREED)
            forget_claims(queue, &event->places);
        else if (event->kind == TL_EVENT_RENEWED && event->places.n > 0)
            note_claim(queue, event->places.runs[0].first, now_ms);
        else if (event->kind == TL_EVENT_CONFIG)
            env->reload(env->context, queue->name);
        else if (event->kind == TL_EVENT_NOTICE)
            tl_local_queue_set_notice(queue, event->text, event->text_length);
    }
    env->changed(env->context, queue, entry, now_ms);
}

static uint64_t admitted_in(const struct tl_event_entry *entry)
{
    uint64_t admitted = 0;
    for (size_t i = 0; i < entry->n_events; i++) {
        const struct tl_runs *places = &entry->events[i].places;
        if (entry->events[i].kind != TL_EVENT_ADMITTED)
            continue;
        for (size_t r = 0; r < places->n; r++)
            admitted += places->runs[r].count;
    }
    return admitted;
}

static void ask_for_rebuild(struct tl_local_queue *queue, const char *why)
{
    if (queue->rebuilding)
        return;
    queue->rebuilding = true;
    tl_metrics_add(queue->env->metrics, TL_WORKER_GAPS, 1);
    tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue->name}, "%s; rebuilding the line",
           why);
    queue->env->rebuild(queue->env->context, queue->name);
}

void tl_local_queue_apply(struct tl_local_queue *queue, const void *payload, size_t length,
                          int64_t now_ms)
{
    struct tl_event_entry entry;
    struct tl_error err = {0};
    if (queue->line == NULL)
        return;
    if (!tl_events_decode(payload, length, &entry, &err)) {
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = queue->name, .error = &err},
               "cannot decode an entry of the events stream");
        ask_for_rebuild(queue, "an event could not be read");
        return;
    }
    switch (tl_line_apply(queue->line, &entry, now_ms)) {
    case TL_LINE_APPLIED:
        tl_metrics_add(queue->env->metrics, TL_WORKER_EVENTS, 1);
        observe(queue, admitted_in(&entry), now_ms);
        follow_up(queue, &entry, now_ms);
        break;
    case TL_LINE_OLD:
        follow_up(queue, &entry, now_ms); /* a request may still wait for it */
        break;
    case TL_LINE_GAP:
        ask_for_rebuild(queue, "events are missing");
        break;
    case TL_LINE_NOMEM:
        ask_for_rebuild(queue, "no memory for an event");
        break;
    }
    tl_events_free(&entry);
}

/* ---- presence and claims ---- */

/* Must the session at this place be claimed or extended now? */
static bool renew_due(const struct tl_local_queue *queue, tl_place place, int64_t now_ms)
{
    uint64_t last = 0;
    if (!tl_placemap_get(queue->claimed, place, &last))
        return true;
    if (!queue->settings.session_sliding)
        return false;
    int64_t pause = queue->settings.session_ttl_ms / 10;
    return now_ms + 1 - (int64_t)last >= (pause > SLIDE_MIN_MS ? pause : SLIDE_MIN_MS);
}

void tl_local_queue_touch(struct tl_local_queue *queue, const char *visitor, tl_place place,
                          const struct tl_line_view *view, int64_t now_ms)
{
    if (view->status == TL_LINE_WAITING)
        tl_presence_mark(queue->presence, tl_place_seq(place));
    else if (view->status == TL_LINE_ACTIVE && renew_due(queue, place, now_ms) &&
             queue->env->can_send(queue->env->context) &&
             tl_outbox_command(queue->outbox, TL_COMMAND_RENEW, visitor, place) != NULL)
        note_claim(queue, place, now_ms);
}

void tl_local_queue_remember_end(struct tl_local_queue *queue, tl_place place, unsigned reason)
{
    if (tl_placemap_count(queue->ended) >= ENDED_MAX)
        tl_placemap_clear(queue->ended);
    (void)tl_placemap_put(queue->ended, place, reason); /* without memory, we ask the store again */
}

void tl_local_queue_tick(struct tl_local_queue *queue, int64_t now_ms)
{
    int64_t interval = tl_presence_interval(queue->settings.waiting_ttl_ms);
    struct tl_run run;
    if (queue->line == NULL)
        return;
    (void)tl_line_forget(queue->line, now_ms, FORGET_PER_TICK);
    /* The next flush waits until the last one was applied, so that presence does not flood a slow
     * dispatcher. */
    if (!tl_queue_env_store_up(queue->env) ||
        !tl_outbox_settled(queue->outbox, queue->presence_batch) ||
        !tl_presence_due(queue->presence, now_ms, interval, tl_line_waiting(queue->line) > 0))
        return;
    for (int i = 0; i < PRESENCE_RUNS && tl_presence_take(queue->presence, &run); i++) {
        if (!tl_outbox_seen(queue->outbox, run.first, run.count))
            break;
        queue->presence_batch = tl_outbox_gathering(queue->outbox);
    }
}

struct tl_outbox *tl_local_queue_outbox(struct tl_local_queue *queue)
{
    return queue->outbox;
}

void tl_local_queue_attach(struct tl_local_queue *queue, struct tl_subscribers *subscribers)
{
    queue->subscribers = subscribers;
}

struct tl_subscribers *tl_local_queue_subscribers(const struct tl_local_queue *queue)
{
    return queue->subscribers;
}
