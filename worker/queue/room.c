#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "worker/http/json_text.h"
#include "worker/process/edge.h"
#include "worker/queue/hold.h"
#include "worker/report/worker_metrics.h"

enum {
    ENDED_MAX = 100000,  /* answers remembered */
    PRESENCE_RUNS = 500, /* added to the outbox in one tick */
    SLIDE_MIN_MS = 1000,
};

struct tl_room *tl_room_new(struct tl_edge *edge, const char *name)
{
    struct tl_room *room = calloc(1, sizeof(*room));
    if (room == NULL)
        return NULL;
    room->edge = edge;
    snprintf(room->name, sizeof(room->name), "%s", name);
    room->outbox = tl_outbox_new(edge->id, tl_hold_settle, room);
    room->presence = tl_presence_new();
    room->claimed = tl_placemap_new();
    room->ended = tl_placemap_new();
    room->push = tl_push_new(room);
    if (room->push == NULL || room->outbox == NULL || room->presence == NULL ||
        room->claimed == NULL || room->ended == NULL)
        tl_room_free(&room);
    return room;
}

void tl_room_free(struct tl_room **room)
{
    if (*room == NULL)
        return;
    tl_push_free(&(*room)->push);
    free((*room)->notice);
    tl_outbox_free(&(*room)->outbox);
    tl_presence_free(&(*room)->presence);
    tl_placemap_free(&(*room)->claimed);
    tl_placemap_free(&(*room)->ended);
    tl_line_free(&(*room)->line);
    free(*room);
    *room = NULL;
}

/* ---- settings and lines ---- */

void tl_room_set_settings(struct tl_room *room, const struct tl_queue_settings *settings,
                          int64_t now_ms)
{
    room->settings = *settings;
    tl_eta_limit(&room->eta, settings->capacity);
    if (settings->paused)
        tl_eta_stop(&room->eta, now_ms);
}

/* A step of the line for the estimate; before the queue opens there is nothing to estimate. */
static void observe(struct tl_room *room, uint64_t admitted, int64_t now_ms)
{
    bool counted = room->settings.policy != TL_POLICY_RATE;
    if (!tl_room_open(room, tl_edge_now_ms(room->edge)))
        return;
    tl_eta_step(&room->eta, now_ms,
                &(struct tl_eta_step){.admitted = admitted,
                                      .waiting = tl_line_waiting(room->line),
                                      .active = counted ? tl_line_active(room->line) : 0});
}

/* What was known about places of another generation is void: their numbers are given out anew. */
static void forget_places(struct tl_room *room)
{
    struct tl_presence *presence = tl_presence_new();
    if (presence != NULL) {
        tl_presence_free(&room->presence);
        room->presence = presence;
    }
    tl_placemap_clear(room->claimed);
    tl_placemap_clear(room->ended);
    room->eta = (struct tl_eta){0};
}

void tl_room_set_line(struct tl_room *room, struct tl_line *line, int64_t now_ms)
{
    bool made_anew =
        room->line != NULL && tl_line_generation(room->line) != tl_line_generation(line);
    if (made_anew) {
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = room->name},
               "the queue was made anew; tickets of its former generation are void");
        forget_places(room);
    }
    if (room->line != NULL)
        tl_outbox_missed(room->outbox);
    tl_line_free(&room->line);
    room->line = line;
    room->rebuilding = false;
    tl_metrics_add(room->edge->metrics, TL_WORKER_SNAPSHOTS, 1);
    observe(room, 0, now_ms);
}

void tl_room_set_notice(struct tl_room *room, const char *text, size_t length)
{
    if (length > TL_NOTICE_MAX)
        length = TL_NOTICE_MAX; /* of a newer version */
    if (strlen(room->notice_text) == length && memcmp(room->notice_text, text, length) == 0)
        return;
    size_t size = TL_JSON_ESCAPED_MAX(length) + 16;
    char *json_text = malloc(size);
    if (json_text == NULL) {
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = room->name},
               "no memory for the notice");
        return;
    }
    memcpy(room->notice_text, text, length);
    room->notice_text[length] = '\0';
    struct tl_json json;
    tl_json_begin(&json, json_text, size);
    tl_json_string(&json, "text", room->notice_text);
    json_text[tl_json_end(&json)] = '\0';
    free(room->notice);
    room->notice = json_text;
    room->notice_version++;
}

bool tl_room_open(const struct tl_room *room, int64_t redis_ms)
{
    return !room->settings.paused && redis_ms >= room->settings.opens_at_ms;
}

bool tl_room_about_to_admit(const struct tl_room *room, tl_place place)
{
    struct tl_line_view view = tl_line_look(room->line, place);
    return view.status == TL_LINE_WAITING && tl_room_open(room, tl_edge_now_ms(room->edge)) &&
           view.ahead + tl_line_active(room->line) < room->settings.capacity;
}

/* ---- events ---- */

static uint64_t count_of(const struct tl_runs *runs)
{
    uint64_t count = 0;
    for (size_t i = 0; i < runs->n; i++)
        count += runs->runs[i].count;
    return count;
}

static void forget_claims(struct tl_room *room, const struct tl_runs *runs)
{
    for (size_t i = 0; i < runs->n && tl_placemap_count(room->claimed) > 0; i++) {
        for (uint64_t k = 0; k < runs->runs[i].count; k++)
            (void)tl_placemap_remove(room->claimed, runs->runs[i].first + k, NULL);
    }
}

static void note_claim(struct tl_room *room, tl_place place, int64_t now_ms)
{
    /* Without memory it is not noted: the next poll claims again, which does no harm. */
    (void)tl_placemap_put(room->claimed, place, (uint64_t)now_ms + 1);
}

/* After the line has taken the entry. */
static void follow_up(struct tl_room *room, const struct tl_event_entry *entry, int64_t now_ms)
{
    for (size_t i = 0; i < entry->n_events; i++) {
        const struct tl_event *event = &entry->events[i];
        if (event->kind == TL_EVENT_APPLIED && strcmp(event->worker, room->edge->id) == 0)
            tl_outbox_applied(room->outbox, event);
        else if (event->kind == TL_EVENT_FREED)
            forget_claims(room, &event->places);
        else if (event->kind == TL_EVENT_RENEWED && event->places.n > 0)
            note_claim(room, event->places.runs[0].first, now_ms);
        else if (event->kind == TL_EVENT_CONFIG)
            tl_follower_reload(room->edge->follower, room->name);
        else if (event->kind == TL_EVENT_NOTICE)
            tl_room_set_notice(room, event->text, event->text_length);
    }
    tl_push_entry(room->push, entry, now_ms);
}

static uint64_t admitted_in(const struct tl_event_entry *entry)
{
    uint64_t admitted = 0;
    for (size_t i = 0; i < entry->n_events; i++) {
        if (entry->events[i].kind == TL_EVENT_ADMITTED)
            admitted += count_of(&entry->events[i].places);
    }
    return admitted;
}

static void ask_for_rebuild(struct tl_room *room, const char *why)
{
    if (room->rebuilding)
        return;
    room->rebuilding = true;
    tl_metrics_add(room->edge->metrics, TL_WORKER_GAPS, 1);
    tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = room->name}, "%s; building the line anew",
           why);
    tl_follower_rebuild(room->edge->follower, room->name);
}

static void apply_entry(struct tl_room *room, const struct tl_event_entry *entry, int64_t now_ms)
{
    switch (tl_line_apply(room->line, entry, now_ms)) {
    case TL_LINE_APPLIED:
        tl_metrics_add(room->edge->metrics, TL_WORKER_EVENTS, 1);
        observe(room, admitted_in(entry), now_ms);
        follow_up(room, entry, now_ms);
        break;
    case TL_LINE_OLD:
        follow_up(room, entry,
                  now_ms); /* the line holds it already; a request may still wait for it */
        break;
    case TL_LINE_GAP:
        ask_for_rebuild(room, "events are missing");
        break;
    case TL_LINE_NOMEM:
        ask_for_rebuild(room, "no memory for an event");
        break;
    }
}

void tl_room_apply(struct tl_room *room, const void *payload, size_t length, int64_t now_ms)
{
    struct tl_event_entry entry;
    struct tl_error err = {0};
    if (room->line == NULL)
        return;
    if (!tl_events_decode(payload, length, &entry, &err)) {
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = room->name, .error = &err},
               "an event makes no sense");
        ask_for_rebuild(room, "an event could not be read");
        return;
    }
    apply_entry(room, &entry, now_ms);
    tl_events_free(&entry);
}

/* ---- places ---- */

struct tl_line_view tl_room_look(const struct tl_room *room, tl_place place, bool *known)
{
    struct tl_line_view view = tl_line_look(room->line, place);
    uint64_t reason = 0;
    *known = view.status != TL_LINE_UNKNOWN;
    if (!*known && tl_placemap_get(room->ended, place, &reason)) {
        *known = true;
        view.status = reason != 0 ? TL_LINE_ENDED : TL_LINE_UNKNOWN;
        view.reason = (enum tl_reason)reason;
    }
    return view;
}

void tl_room_remember_end(struct tl_room *room, tl_place place, unsigned reason)
{
    if (tl_placemap_count(room->ended) >= ENDED_MAX)
        tl_placemap_clear(room->ended);
    (void)tl_placemap_put(room->ended, place, reason); /* not remembered is asked again */
}

/* Must the session of this place be claimed, or slid on, now? */
static bool renew_due(const struct tl_room *room, tl_place place, int64_t now_ms)
{
    uint64_t last = 0;
    if (!tl_placemap_get(room->claimed, place, &last))
        return true;
    if (!room->settings.session_sliding)
        return false;
    int64_t pause = room->settings.session_ttl_ms / 10;
    return now_ms + 1 - (int64_t)last >= (pause > SLIDE_MIN_MS ? pause : SLIDE_MIN_MS);
}

void tl_room_greet(struct tl_room *room, const char *visitor, tl_place place,
                   const struct tl_line_view *view, int64_t now_ms)
{
    if (view->status == TL_LINE_WAITING) {
        tl_presence_mark(room->presence, tl_place_seq(place));
        return;
    }
    if (view->status != TL_LINE_ACTIVE || !renew_due(room, place, now_ms) ||
        tl_edge_in_flight(room->edge) >= room->edge->config->worker.max_pending ||
        !tl_edge_store_up(room->edge))
        return;
    if (tl_outbox_command(room->outbox, TL_COMMAND_RENEW, visitor, place) != NULL)
        note_claim(room, place, now_ms);
}

/* The next flush waits until the last one was applied, so that a slow dispatcher is not buried
 * under presence. */
void tl_room_flush_presence(struct tl_room *room, int64_t now_ms)
{
    int64_t interval = tl_presence_interval(room->settings.waiting_ttl_ms);
    if (room->line == NULL || !tl_edge_store_up(room->edge) ||
        !tl_outbox_settled(room->outbox, room->presence_batch) ||
        !tl_presence_due(room->presence, now_ms, interval, tl_line_waiting(room->line) > 0))
        return;
    struct tl_run run;
    for (int i = 0; i < PRESENCE_RUNS && tl_presence_take(room->presence, &run); i++) {
        if (!tl_outbox_seen(room->outbox, run.first, run.count))
            break;
        room->presence_batch = tl_outbox_gathering(room->outbox);
    }
}
