/* The rooms of a worker process, and what the follower brings for them. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "worker/queue/hold.h"
#include "worker/report/worker_metrics.h"

enum { FORGET_A_TICK = 1000 };

/* Where the name is, or would have to be put in. */
static size_t place_of(const struct tl_edge *edge, const char *name)
{
    size_t low = 0;
    size_t high = edge->n_rooms;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(edge->rooms[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct tl_room *tl_edge_room(const struct tl_edge *edge, const char *name)
{
    size_t i = place_of(edge, name);
    return i < edge->n_rooms && strcmp(edge->rooms[i]->name, name) == 0 ? edge->rooms[i] : NULL;
}

struct tl_room *tl_edge_make_room(struct tl_edge *edge, const char *name)
{
    struct tl_room *room = tl_edge_room(edge, name);
    if (room != NULL)
        return room;
    struct tl_room **rooms = reallocarray(edge->rooms, edge->n_rooms + 1, sizeof(struct tl_room *));
    if (rooms == NULL)
        return NULL;
    edge->rooms = rooms;
    room = tl_room_new(edge, name);
    if (room == NULL)
        return NULL;
    size_t i = place_of(edge, name);
    memmove(&rooms[i + 1], &rooms[i], (edge->n_rooms - i) * sizeof(struct tl_room *));
    rooms[i] = room;
    edge->n_rooms++;
    return room;
}

void tl_edge_drop_room(struct tl_edge *edge, struct tl_room *room)
{
    size_t i = place_of(edge, room->name);
    memmove(&edge->rooms[i], &edge->rooms[i + 1],
            (edge->n_rooms - i - 1) * sizeof(struct tl_room *));
    edge->n_rooms--;
    tl_hold_drop_lookups(edge, room);
    tl_room_free(&room);
}

size_t tl_edge_in_flight(const struct tl_edge *edge)
{
    size_t count = 0;
    for (size_t i = 0; i < edge->n_rooms; i++)
        count += tl_outbox_count(edge->rooms[i]->outbox);
    return count;
}

/* ---- from the follower ---- */

static void on_line(void *context, const char *queue, const struct tl_queue_settings *settings,
                    struct tl_line *line)
{
    struct tl_edge *edge = context;
    struct tl_room *room = tl_edge_make_room(edge, queue);
    if (room == NULL) {
        tl_log(TL_LOG_ERROR, &(struct tl_log_fields){.queue = queue}, "no memory for a queue");
        tl_line_free(&line);
        tl_follower_rebuild(edge->follower, queue); /* tries again */
        return;
    }
    int64_t now_ms = tl_clock_ms();
    bool new = room->line == NULL;
    tl_room_set_settings(room, settings, now_ms);
    tl_room_set_line(room, line, now_ms);
    if (new)
        tl_log(TL_LOG_INFO, &(struct tl_log_fields){.queue = queue},
               "serving the queue: %llu waiting, %llu active",
               (unsigned long long)tl_line_waiting(line), (unsigned long long)tl_line_active(line));
}

static void on_entry(void *context, const char *queue, const void *payload, size_t length)
{
    struct tl_room *room = tl_edge_room(context, queue);
    if (room != NULL)
        tl_room_apply(room, payload, length, tl_clock_ms());
}

static void on_settings(void *context, const char *queue, const struct tl_queue_settings *settings)
{
    struct tl_room *room = tl_edge_room(context, queue);
    if (room == NULL)
        return;
    tl_room_set_settings(room, settings, tl_clock_ms());
    tl_log(TL_LOG_INFO, &(struct tl_log_fields){.queue = queue}, "settings changed");
}

static void on_notice(void *context, const char *queue, const char *text, size_t length)
{
    struct tl_room *room = tl_edge_room(context, queue);
    if (room != NULL)
        tl_room_set_notice(room, text, length);
}

static void on_gone(void *context, const char *queue)
{
    struct tl_room *room = tl_edge_room(context, queue);
    if (room == NULL)
        return;
    tl_log(TL_LOG_INFO, &(struct tl_log_fields){.queue = queue}, "the queue was deleted");
    room->gone = true;
    tl_edge_drop_room(context, room);
}

static void on_listed(void *context)
{
    ((struct tl_edge *)context)->listed = true;
}

static void on_clock(void *context, int64_t offset_ms)
{
    struct tl_edge *edge = context;
    edge->clock_offset_ms = offset_ms;
    edge->clock_known = true;
}

static void on_store(void *context, bool up)
{
    ((struct tl_edge *)context)->follower_up = up;
}

void tl_edge_follow(struct tl_edge *edge, struct tl_follower_settings *settings)
{
    settings->context = edge;
    settings->line = on_line;
    settings->entry = on_entry;
    settings->settings = on_settings;
    settings->notice = on_notice;
    settings->gone = on_gone;
    settings->listed = on_listed;
    settings->clock = on_clock;
    settings->store = on_store;
}

/* ---- at the end of each turn, and each tick ---- */

void tl_edge_flush(struct tl_edge *edge)
{
    for (size_t i = 0; i < edge->n_rooms; i++) {
        struct tl_room *room = edge->rooms[i];
        struct tl_outbox_payload payload;
        if (!tl_outbox_next(room->outbox, &payload))
            continue;
        size_t n = payload.n_commands;
        if (tl_ingest_send(edge->ingest, room->name, payload.number, payload.bytes,
                           payload.length)) {
            tl_metrics_add(edge->metrics, TL_WORKER_BATCHES, 1);
            tl_metrics_add(edge->metrics, TL_WORKER_COMMANDS, (int64_t)n);
        } else {
            free(payload.bytes);
            tl_outbox_sent(room->outbox, payload.number, false);
        }
    }
}

void tl_edge_tend_rooms(struct tl_edge *edge, int64_t now_ms)
{
    size_t bytes = 0;
    for (size_t i = 0; i < edge->n_rooms; i++) {
        struct tl_room *room = edge->rooms[i];
        if (room->line == NULL)
            continue;
        tl_room_flush_presence(room, now_ms);
        (void)tl_line_forget(room->line, now_ms, FORGET_A_TICK);
        bytes += tl_line_bytes(room->line);
    }
    tl_metrics_set(edge->metrics, TL_WORKER_LINE_BYTES, (int64_t)bytes);
}
