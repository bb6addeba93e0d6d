/* SPDX-License-Identifier: Apache-2.0 */
/* A queue with subscribers, whose callbacks are recorded. Included by the one file of a test. */
#ifndef TL_TEST_STAGE_H
#define TL_TEST_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/worker/queue/fakes.h"
#include "tests/unit/worker/queue/world.h"
#include "worker/queue/subscribers.h"

enum {
    T = 100000, /* the test begins at this local time */
    PER_ADDRESS = 2,
};

struct stage {
    struct world world;
    struct tl_queues queues; /* its blocks */
    struct tl_clients *clients;
    struct tl_subscribers_settings settings;
    struct tl_subscribers *subscribers;
    int number_questions, place_questions;
    tl_place asked_place;          /* by the last of them */
    int answers, refusals, blocks; /* blocks: of the refusals */
    struct tl_request *answered;   /* last */
    bool answered_with_ticket;
    struct tl_ticket answered_ticket;
};

/* "w3", and "w3+ticket" where the view carries the ticket. */
static inline size_t write_view(void *context, const struct tl_told *told, int64_t now_ms,
                                char *text)
{
    (void)context;
    (void)now_ms;
    if (tl_place_seq(told->ticket->place) != 0)
        assert_int_equal(told->ticket->generation, tl_line_generation(told->queue->line));
    return (size_t)snprintf(text, TL_VIEW_MAX, "%c%llu%s", "uwae"[told->state->status],
                            (unsigned long long)told -> state -> ahead,
                            told -> give_ticket ? "+ticket" : "");
}

static inline void answer(void *context, struct tl_queue *queue, struct tl_request *request,
                          const struct tl_ticket *ticket, bool give_ticket)
{
    struct stage *stage = context;
    (void)queue;
    assert_true(request->held);
    stage->answered_ticket = *ticket;
    stage->answers++;
    stage->answered = request;
    stage->answered_with_ticket = give_ticket;
}

static inline void refuse(void *context, struct tl_queue *queue, struct tl_request *request,
                          bool blocked)
{
    (void)queue;
    assert_true(request->held);
    ((struct stage *)context)->refusals++;
    ((struct stage *)context)->blocks += blocked;
}

static inline void ask_number(void *context, struct tl_queue *queue, const struct tl_ticket *ticket)
{
    (void)queue;
    assert_int_equal(ticket->generation, 0);
    ((struct stage *)context)->number_questions++;
}

static inline void ask_place(void *context, struct tl_queue *queue, const struct tl_ticket *ticket)
{
    (void)queue;
    ((struct stage *)context)->place_questions++;
    ((struct stage *)context)->asked_place = ticket->place;
}

static inline void taken(struct world *world, const struct tl_event_entry *entry, int64_t now_ms)
{
    struct stage *stage = (void *)world; /* its first member */
    tl_subscribers_entry(stage->subscribers, world->queue, entry, now_ms);
}

/* 1 to 3 are active, 4 to 20003 wait. */
static inline int start(void **state)
{
    static struct stage stage;
    stage = (struct stage){0};
    fakes_reset();
    stage.queues.blocks_version = 1;
    stage.clients = tl_clients_new(PER_ADDRESS);
    world_start(&stage.world, 20000);
    stage.settings = (struct tl_subscribers_settings){
        .queues = &stage.queues,
        .metrics = stage.world.env.metrics,
        .clients = stage.clients,
        .context = &stage,
        .telling = {.metrics = stage.world.env.metrics,
                    .context = &stage,
                    .write_view = write_view},
        .answer = answer,
        .refuse = refuse,
        .ask_number = ask_number,
        .ask_place = ask_place,
    };
    stage.subscribers = tl_subscribers_new(&stage.settings);
    if (stage.subscribers == NULL)
        return -1;
    stage.world.taken = taken;
    *state = &stage;
    return 0;
}

static inline int finish(void **state)
{
    struct stage *stage = *state;
    tl_subscribers_free(&stage->subscribers);
    tl_clients_free(&stage->clients);
    int64_t left = world_metric(&stage->world, TL_WORKER_SUBSCRIBERS) +
                   world_metric(&stage->world, TL_WORKER_EVENT_STREAMS);
    world_end(&stage->world);
    return left != 0;
}

static inline struct tl_ticket ticket_of(const char *visitor, tl_place place)
{
    struct tl_ticket ticket = {.place = place, .generation = tl_place_seq(place) != 0 ? 7 : 0};
    snprintf(ticket.visitor, sizeof(ticket.visitor), "%s", visitor);
    return ticket;
}

/* Reads what the stream was sent: exactly this. */
static inline void expect(struct tl_stream *stream, const char *text)
{
    if (stream->length == 0)
        stream->text[0] = '\0';
    assert_string_equal(stream->text, text);
    stream->length = 0;
}

#define POSITION(view) "event: position\ndata: " view "\n\n"
#define ADMITTED       "event: admitted\ndata: a0\n\n"

/* Opens a stream at T, and reads the head of its answer. */
static inline struct tl_stream *open_stream(struct stage *stage, const char *visitor,
                                            tl_place place)
{
    struct tl_request request = {0};
    struct tl_ticket ticket = ticket_of(visitor, place);
    assert_true(tl_subscribers_stream(stage->subscribers, stage->world.queue, &request, &ticket,
                                      NULL, "ko", T));
    assert_true(request.taken_over);
    struct tl_stream *stream = &fake_streams[fake_streams_n - 1];
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
    assert_memory_equal(stream->text, head, sizeof(head) - 1);
    assert_non_null(strstr(stream->text,
                           "\r\nX-Request-Id: request-1\r\nAccess-Control-Allow-Origin: "
                           "https://shop.example\r\n\r\nretry: "));
    const char *past = strstr(stream->text, "\n\n") + 2;
    stream->length -= (size_t)(past - stream->text);
    memmove(stream->text, past, stream->length + 1);
    return stream;
}

/* Admits the first in the line and ends a session: `admitted` so many are so far. */
static inline void admit_next(struct stage *stage, int admitted, int64_t now_ms)
{
    char events[96];
    snprintf(events, sizeof(events), "[5,[%d,1],1],[3,[%d,1],1700000200000]", admitted + 1,
             admitted + 4);
    world_apply(&stage->world, 20000 - (uint64_t)admitted - 1, 3, events, now_ms);
    assert_int_equal(stage->world.rebuilds, 0);
}

static inline void sweep(struct stage *stage, int64_t now_ms)
{
    tl_subscribers_sweep(stage->subscribers, now_ms);
}

#endif
