#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/line/placemap.h"
#include "worker/api/answer.h"
#include "worker/api/view.h"
#include "worker/http/problem.h"
#include "worker/http/stream.h"
#include "worker/process/edge.h"
#include "worker/queue/push.h"
#include "worker/report/worker_metrics.h"

enum {
    ROUND_MS = 500,       /* the whole crowd is looked at once in this time */
    FRONT = 20,           /* so many in front hear of every step at once */
    STEP_MS = 100,        /* but of no two steps within less */
    HEARTBEAT_MS = 15000, /* proxies drop what is silent for longer */
    REFRESH_MS = 30000,   /* a position that did not change is told again: its wait estimate has */
    ADMISSION_WAIT_MS = 250, /* an admitter that runs takes a hundredth of it */
    STUCK_MS = 30000,        /* a reader that takes nothing for so long is dropped */
    RETRY_MIN_MS = 1000,     /* what clients wait before they come back, spread evenly */
    RETRY_SPREAD_MS = 3000,
    EVENT_MAX = TL_VIEW_MAX + 64,
};

/* Somebody who wants to hear: a stream, or a request that waits. */
struct subscriber {
    struct subscriber *prev, *next; /* the crowd, a ring */
    struct subscriber *chain;       /* others of the same place (tabs, devices) */
    struct tl_push *push;
    struct tl_stream *stream;   /* or: */
    struct tl_request *request; /* held */
    tl_place place;
    bool joining;        /* a join that waits for its admission: gets its ticket with the answer */
    int64_t told_ms;     /* the last view; 0: none yet */
    int64_t moved_ms;    /* the last view with another place than the one before; 0: none yet */
    int64_t wrote_ms;    /* the last byte */
    int64_t deadline_ms; /* of a request */
    uint64_t ahead;      /* as told */
    uint64_t notice;     /* version of the notice told */
    enum tl_line_status status; /* as told */
    char visitor[TL_VISITOR_MAX + 1];
};

struct tl_push {
    struct tl_room *room;
    struct tl_placemap *by_place; /* place -> struct subscriber *, the first of its chain */
    struct subscriber *turn;      /* whose turn it is in the ring; NULL: nobody is here */
    size_t n;
    int64_t swept_ms;
    uint64_t owed; /* looks the crowd is owed, in subscribers * ms: what was too little for a whole
                      one is carried on */
    int64_t drain_until_ms; /* 0: not draining */
};

struct tl_push *tl_push_new(struct tl_room *room)
{
    struct tl_push *push = calloc(1, sizeof(*push));
    if (push == NULL)
        return NULL;
    push->room = room;
    push->by_place = tl_placemap_new();
    if (push->by_place == NULL) {
        free(push);
        return NULL;
    }
    return push;
}

size_t tl_push_count(const struct tl_push *push)
{
    return push->n;
}

/* ---- coming and going ---- */

static struct subscriber *at_place(const struct tl_push *push, tl_place place)
{
    uint64_t value;
    if (!tl_placemap_get(push->by_place, place, &value))
        return NULL;
    return (struct subscriber *)(uintptr_t)value;
}

static struct subscriber *add(struct tl_push *push, const struct tl_ticket *ticket)
{
    struct subscriber *subscriber = calloc(1, sizeof(*subscriber));
    if (subscriber == NULL)
        return NULL;
    subscriber->push = push;
    subscriber->place = ticket->place;
    snprintf(subscriber->visitor, sizeof(subscriber->visitor), "%s", ticket->visitor);
    subscriber->chain = at_place(push, ticket->place);
    if (!tl_placemap_put(push->by_place, ticket->place, (uint64_t)(uintptr_t)subscriber)) {
        free(subscriber);
        return NULL;
    }
    if (push->turn == NULL) {
        subscriber->prev = subscriber->next = push->turn = subscriber;
    } else { /* behind everybody: its turn comes last */
        subscriber->next = push->turn;
        subscriber->prev = push->turn->prev;
        subscriber->prev->next = subscriber->next->prev = subscriber;
    }
    push->n++;
    tl_metrics_add(push->room->edge->metrics, TL_WORKER_SUBSCRIBERS, 1);
    return subscriber;
}

static void unchain(struct tl_push *push, struct subscriber *subscriber)
{
    struct subscriber *first = at_place(push, subscriber->place);
    if (first != subscriber) {
        while (first->chain != subscriber)
            first = first->chain;
        first->chain = subscriber->chain;
    } else if (subscriber->chain == NULL) {
        tl_placemap_remove(push->by_place, subscriber->place, NULL);
    } else { /* overwriting needs no memory */
        (void)tl_placemap_put(push->by_place, subscriber->place,
                              (uint64_t)(uintptr_t)subscriber->chain);
    }
}

/* Takes the subscriber out of everything. Its request, if it is one, is the caller's to answer. */
static struct tl_request *drop(struct subscriber *subscriber)
{
    struct tl_push *push = subscriber->push;
    struct tl_request *request = subscriber->request;
    unchain(push, subscriber);
    subscriber->prev->next = subscriber->next;
    subscriber->next->prev = subscriber->prev;
    if (push->turn == subscriber)
        push->turn = subscriber->next != subscriber ? subscriber->next : NULL;
    push->n--;
    tl_metrics_add(push->room->edge->metrics, TL_WORKER_SUBSCRIBERS, -1);
    if (subscriber->stream != NULL)
        tl_metrics_add(push->room->edge->metrics, TL_WORKER_EVENT_STREAMS, -1);
    tl_stream_close(&subscriber->stream);
    free(subscriber);
    return request;
}

static void on_broken(void *context)
{
    (void)drop(context);
}

void tl_push_free(struct tl_push **push)
{
    if (*push == NULL)
        return;
    while ((*push)->turn != NULL) {
        struct tl_request *request =
            drop((*push)->turn); /* NOLINT(clang-analyzer-unix.Malloc): turn moves on */
        if (request != NULL)
            tl_problem_answer(
                request, (*push)->room->gone ? TL_PROBLEM_NO_QUEUE : TL_PROBLEM_STOPPING, "%s", "");
    }
    tl_placemap_free(&(*push)->by_place);
    free(*push);
    *push = NULL;
}

/* ---- telling ---- */

static struct tl_ticket ticket_of(const struct subscriber *subscriber)
{
    struct tl_ticket ticket = {.place = subscriber->place,
                               .generation = tl_line_generation(subscriber->push->room->line)};
    memcpy(ticket.visitor, subscriber->visitor, sizeof(ticket.visitor));
    return ticket;
}

static const char *event_name(enum tl_line_status status)
{
    if (status == TL_LINE_WAITING)
        return "position";
    return status == TL_LINE_ACTIVE ? "admitted" : "ended";
}

/* data is JSON, with or without a newline at the end. False when the stream is to be dropped. */
static bool write_event(struct subscriber *subscriber, const char *event, const char *data,
                        size_t length, int64_t now_ms)
{
    char text[EVENT_MAX];
    if (length > 0 && data[length - 1] == '\n')
        length--;
    int n = snprintf(text, sizeof(text), "event: %s\ndata: %.*s\n\n", event, (int)length, data);
    if (n < 0 || (size_t)n >= sizeof(text))
        return false;
    subscriber->wrote_ms = now_ms;
    tl_metrics_add(subscriber->push->room->edge->metrics, TL_WORKER_PUSHED, 1);
    return tl_stream_send(subscriber->stream, text, (size_t)n);
}

static void note_told(struct subscriber *subscriber, const struct tl_line_view *state,
                      int64_t now_ms)
{
    if (subscriber->told_ms != 0 && state->ahead != subscriber->ahead)
        subscriber->moved_ms = now_ms;
    subscriber->told_ms = now_ms;
    subscriber->status = state->status;
    subscriber->ahead = state->ahead;
}

/* Tells how the place stands now; a stream that has not taken the last event yet is told later, in
 * its turn. The subscriber may be gone afterwards. */
static void tell(struct subscriber *subscriber, int64_t now_ms)
{
    struct tl_room *room = subscriber->push->room;
    struct tl_ticket ticket = ticket_of(subscriber);
    if (subscriber->request != NULL) {
        bool joining = subscriber->joining;
        struct tl_request *request = drop(subscriber);
        tl_answer_view(room, request, &ticket, joining);
        return;
    }
    if (!tl_stream_ready(subscriber->stream))
        return;
    char text[TL_VIEW_MAX];
    struct tl_line_view state;
    size_t length = tl_answer_write(room, &ticket, now_ms, &state, text);
    note_told(subscriber, &state, now_ms);
    if (!write_event(subscriber, event_name(state.status), text, length, now_ms))
        (void)drop(subscriber);
}

/* How long after one move the next may be told. A view that only says again what is known delays no
 * move. */
static int64_t pause_ms(uint64_t ahead)
{
    if (ahead < FRONT)
        return STEP_MS;
    if (ahead < 100)
        return 500;
    if (ahead < 1000)
        return 1000;
    return ahead < 10000 ? 2000 : 4000;
}

static bool has_news(const struct subscriber *subscriber, const struct tl_line_view *state,
                     int64_t now_ms)
{
    if (state->status != subscriber->status)
        return true;
    if (state->status != TL_LINE_WAITING || subscriber->joining)
        return false;
    if (state->ahead != subscriber->ahead)
        return now_ms - subscriber->moved_ms >= pause_ms(state->ahead);
    return now_ms - subscriber->told_ms >= REFRESH_MS && subscriber->stream != NULL;
}

static void look(struct subscriber *subscriber, int64_t now_ms)
{
    bool known;
    struct tl_line_view state = tl_room_look(subscriber->push->room, subscriber->place, &known);
    if (has_news(subscriber, &state, now_ms))
        tell(subscriber, now_ms);
}

static void look_at_place(struct tl_push *push, tl_place place, int64_t now_ms)
{
    struct subscriber *next;
    for (struct subscriber *subscriber = at_place(push, place); subscriber != NULL;
         subscriber = next) {
        next = subscriber->chain;
        look(subscriber, now_ms);
    }
}

/* ---- from events ---- */

static void look_at_front(struct tl_push *push, int64_t now_ms)
{
    int left = FRONT;
    for (unsigned lane = 0; lane < TL_LANES_MAX && left > 0; lane++) {
        const struct tl_order *order = tl_line_order(push->room->line, lane);
        uint64_t seq = 0;
        while (order != NULL && left > 0 && tl_order_next(order, seq + 1, &seq)) {
            look_at_place(push, tl_place_make(lane, seq), now_ms);
            left--;
        }
    }
}

void tl_push_entry(struct tl_push *push, const struct tl_event_entry *entry, int64_t now_ms)
{
    bool moved = false;
    for (size_t i = 0; push->n > 0 && i < entry->n_events; i++) {
        const struct tl_event *event = &entry->events[i];
        if (event->kind != TL_EVENT_ADMITTED && event->kind != TL_EVENT_REMOVED &&
            event->kind != TL_EVENT_FREED)
            continue;
        moved = true;
        for (size_t r = 0; r < event->places.n; r++)
            for (uint64_t k = 0; k < event->places.runs[r].count; k++)
                look_at_place(push, event->places.runs[r].first + k, now_ms);
    }
    if (moved && push->n > 0)
        look_at_front(push, now_ms);
}

/* ---- in turn ---- */

static bool tell_notice(struct subscriber *subscriber, int64_t now_ms)
{
    const struct tl_room *room = subscriber->push->room;
    subscriber->notice = room->notice_version;
    return write_event(subscriber, "notice", room->notice, strlen(room->notice), now_ms);
}

/* What a stream needs beside news of its place. False when it is to be dropped. */
static bool tend_stream(struct subscriber *subscriber, int64_t now_ms)
{
    if (!tl_stream_ready(subscriber->stream))
        return now_ms - subscriber->wrote_ms < STUCK_MS;
    if (subscriber->notice != subscriber->push->room->notice_version)
        return tell_notice(subscriber, now_ms); /* at the start there was none: version 0 */
    if (now_ms - subscriber->wrote_ms < HEARTBEAT_MS)
        return true;
    subscriber->wrote_ms = now_ms;
    return tl_stream_send(subscriber->stream, ":\n\n", 3);
}

/* Asks to come back after a while of its own, and ends the stream, or the waiting request. */
static void send_away(struct subscriber *subscriber, int64_t now_ms)
{
    char text[48];
    if (subscriber->request != NULL) {
        tell(subscriber, now_ms);
        return;
    }
    int length =
        snprintf(text, sizeof(text), "retry: %u\n\n", 100 + randombytes_uniform(RETRY_SPREAD_MS));
    if (tl_stream_ready(subscriber->stream))
        (void)tl_stream_send(subscriber->stream, text,
                             (size_t)length); /* best effort: it ends anyway */
    (void)drop(subscriber);
}

/* Who listens is there. One who was admitted has said so at once; but the store may not have taken
 * the claim. Listening does not slide a session on. */
static bool gives_sign_of_life(const struct subscriber *subscriber,
                               const struct tl_line_view *state)
{
    uint64_t since;
    return state->status == TL_LINE_WAITING ||
           !tl_placemap_get(subscriber->push->room->claimed, subscriber->place, &since);
}

static void tend(struct subscriber *subscriber, int64_t now_ms)
{
    struct tl_push *push = subscriber->push;
    struct tl_room *room = push->room;
    bool known;
    if (push->drain_until_ms != 0) {
        send_away(subscriber, now_ms);
        return;
    }
    if (subscriber->request != NULL && now_ms >= subscriber->deadline_ms) {
        tell(subscriber, now_ms);
        return;
    }
    if (subscriber->stream != NULL && !tend_stream(subscriber, now_ms)) {
        (void)drop(subscriber);
        return;
    }
    struct tl_line_view state = tl_room_look(room, subscriber->place, &known);
    if (gives_sign_of_life(subscriber, &state))
        tl_room_greet(room, subscriber->visitor, subscriber->place, &state, now_ms);
    if (has_news(subscriber, &state, now_ms))
        tell(subscriber, now_ms);
}

void tl_push_sweep(struct tl_push *push, int64_t now_ms)
{
    int64_t passed = now_ms - push->swept_ms;
    push->swept_ms = now_ms;
    if (passed > ROUND_MS || passed < 1)
        passed = ROUND_MS;
    int64_t round = ROUND_MS;
    if (push->drain_until_ms > now_ms)
        round = push->drain_until_ms - now_ms;
    push->owed += push->n * (uint64_t)passed;
    size_t share = (size_t)(push->owed / (uint64_t)round);
    push->owed %= (uint64_t)round;
    if (share == 0 && push->drain_until_ms == 0)
        share = 1; /* a small crowd hears sooner; only farewells must not come early */
    for (; share > 0 && push->turn != NULL; share--) {
        struct subscriber *subscriber = push->turn;
        push->turn = subscriber->next;
        tend(subscriber, now_ms);
    }
}

void tl_push_drain(struct tl_push *push, int64_t now_ms, int64_t until_ms)
{
    push->drain_until_ms = until_ms > now_ms ? until_ms : now_ms + 1;
}

/* ---- new ones ---- */

static const char stream_head[] = "HTTP/1.1 200 OK\r\n"
                                  "Content-Type: text/event-stream\r\n"
                                  "Cache-Control: no-store\r\n"
                                  "X-Accel-Buffering: no\r\n"
                                  "X-Content-Type-Options: nosniff\r\n"
                                  "Connection: close\r\n";

bool tl_push_stream(struct tl_push *push, struct tl_request *request,
                    const struct tl_ticket *ticket, int64_t now_ms)
{
    char head[sizeof(stream_head) + 128];
    int length =
        snprintf(head, sizeof(head), "%sX-Request-Id: %s\r\n\r\nretry: %u\n\n", stream_head,
                 tl_request_id(request), RETRY_MIN_MS + randombytes_uniform(RETRY_SPREAD_MS));
    struct subscriber *subscriber = add(push, ticket);
    if (subscriber == NULL)
        return false;
    int fd = tl_request_take_over(request);
    subscriber->wrote_ms = now_ms;
    if (fd >= 0)
        subscriber->stream = tl_stream_open(&push->room->edge->loop, fd, on_broken, subscriber);
    if (subscriber->stream != NULL)
        tl_metrics_add(push->room->edge->metrics, TL_WORKER_EVENT_STREAMS, 1);
    if (subscriber->stream == NULL || !tl_stream_send(subscriber->stream, head, (size_t)length)) {
        (void)drop(subscriber);
        return true; /* the connection is gone: nobody is there to be answered */
    }
    tell(subscriber, now_ms);
    return true;
}

static bool wait_for_change(struct tl_push *push, struct tl_request *request,
                            const struct tl_ticket *ticket, int64_t now_ms, int64_t deadline_ms,
                            bool joining)
{
    struct subscriber *subscriber = add(push, ticket);
    if (subscriber == NULL)
        return false;
    bool known;
    struct tl_line_view state = tl_room_look(push->room, ticket->place, &known);
    tl_room_greet(push->room, ticket->visitor, ticket->place, &state, now_ms);
    note_told(subscriber, &state, now_ms);
    subscriber->request = request;
    subscriber->deadline_ms = deadline_ms;
    subscriber->joining = joining;
    tl_request_hold(request);
    return true;
}

bool tl_push_wait(struct tl_push *push, struct tl_request *request, const struct tl_ticket *ticket,
                  int64_t now_ms, int64_t deadline_ms)
{
    return wait_for_change(push, request, ticket, now_ms, deadline_ms, false);
}

bool tl_push_wait_for_admission(struct tl_push *push, struct tl_request *request,
                                const struct tl_ticket *ticket, int64_t now_ms)
{
    return wait_for_change(push, request, ticket, now_ms, now_ms + ADMISSION_WAIT_MS, true);
}
