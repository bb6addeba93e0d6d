/* SPDX-License-Identifier: Apache-2.0 */
/* A queue with subscribers. What they ask of the rest of the room is recorded: the linker takes the
 * functions here instead of the library's. Included by the one file of a test. */
#ifndef TL_TEST_STAGE_H
#define TL_TEST_STAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/worker/queue/fakes.h"
#include "tests/unit/worker/queue/world.h"
#include "worker/visit/answer.h"
#include "worker/visit/subscribers.h"
#include "worker/visit/view.h"
#include "worker/visit/visit.h"

enum {
    T = 100000, /* the test begins at this local time */
    PER_ADDRESS = 2,
    VISITS = 64, /* that wait at a time */
};

struct stage {
    struct world world;
    struct tl_config config;
    struct tl_worker worker;
    struct tl_visit visits[VISITS]; /* of the requests so far */
    size_t n_visits;
    const struct tl_address *client; /* of the last of them; NULL: unknown */
    int number_questions, place_questions;
    tl_place asked_place;          /* by the last of them */
    struct tl_visit *lookup;       /* likewise; NULL: none is in progress */
    unsigned retry_s;              /* after a full line */
    int answers, refusals, blocks; /* blocks: of the refusals */
    struct tl_request *answered;   /* last */
    bool answered_with_ticket;
    struct tl_ticket answered_ticket;
};

static struct stage stage;

/* "w3", and "w3+ticket" where the view carries the ticket. */
size_t tl_answer_write_view(const struct tl_visit *visit, const char *language, char *text)
{
    (void)language;
    if (tl_place_seq(visit->ticket.place) != 0)
        assert_int_equal(visit->ticket.generation, visit->queue->line->generation);
    return (size_t)snprintf(text, TL_VIEW_MAX, "%c%llu%s", "uwae"[visit->state.status],
                            (unsigned long long)visit -> state.ahead,
                            visit->gives_ticket ? "+ticket" : "");
}

bool tl_answer_anew(struct tl_visit *visit)
{
    assert_true(visit->request->held);
    stage.answered_ticket = visit->ticket;
    stage.answers++;
    stage.answered = visit->request;
    stage.answered_with_ticket = visit->gives_ticket;
    return true;
}

bool tl_answer_pending(struct tl_visit *visit)
{
    visit->gives_ticket = true;
    return tl_answer_anew(visit);
}

void tl_render_refused(struct tl_request *request, enum tl_refusal_kind kind, const char *detail)
{
    (void)detail;
    assert_true(request->held);
    stage.refusals++;
    stage.blocks += kind == TL_REFUSAL_BLOCKED;
}

unsigned tl_problem_retry_after_s(enum tl_refusal_kind kind)
{
    assert_int_equal(kind, TL_REFUSAL_FULL);
    return stage.retry_s;
}

struct tl_visit tl_visit_of(struct tl_worker *worker, struct tl_queue *queue,
                            const struct tl_ticket *ticket, int64_t now_ms)
{
    return (struct tl_visit){.worker = worker, .queue = queue, .ticket = *ticket, .now_ms = now_ms};
}

void tl_visit_take(struct tl_visit *visit, tl_step *step)
{
    assert_true(step(visit));
}

bool tl_visit_may_send(struct tl_visit *visit)
{
    assert_int_equal(visit->ticket.generation, 0);
    return true;
}

bool tl_visit_brought(const struct tl_visit *visit, struct tl_ticket *ticket)
{
    (void)visit;
    (void)ticket;
    return false;
}

const char *tl_request_method(const struct tl_request *request)
{
    (void)request;
    return "GET";
}

bool tl_rejoin_may(struct tl_visit *visit)
{
    (void)visit;
    return true;
}

struct tl_pending_command *tl_rejoin(struct tl_queue *queue, const struct tl_ticket *ticket)
{
    (void)queue;
    (void)ticket;
    stage.number_questions++;
    return NULL;
}

/* The invite is the ticket's time. */
bool tl_rejoin_issued(const struct tl_pending_command *join, uint32_t *issued)
{
    *issued = (uint32_t)strtoul(join->invite, NULL, 10);
    return true;
}

bool tl_wait_lookup(struct tl_visit *visit, tl_step *step)
{
    free(stage.lookup);
    stage.lookup = visit;
    visit->wait.step = step;
    stage.place_questions++;
    stage.asked_place = visit->ticket.place;
    return true;
}

static inline void taken(struct world *world, const struct tl_event_entry *entry, int64_t now_ms)
{
    tl_subscribers_entry(&stage.worker, world->queue, entry, now_ms);
}

/* 1 to 3 are active, 4 to 20003 wait. */
static inline int start(void **state)
{
    stage = (struct stage){0};
    fakes_reset();
    world_start(&stage.world, 20000);
    stage.world.taken = taken;
    stage.worker = (struct tl_worker){.config = &stage.config,
                                      .env = &stage.world.env,
                                      .queues = {.env = &stage.world.env, .blocks_version = 1},
                                      .clients = tl_clients_new(PER_ADDRESS)};
    tl_subscriber_table_init(&stage.worker.subscribers.table);
    *state = &stage;
    return stage.worker.clients == NULL;
}

static inline int finish(void **state)
{
    (void)state;
    tl_subscribers_end(&stage.worker, NULL);
    tl_subscriber_table_clear(&stage.worker.subscribers.table);
    tl_clients_free(&stage.worker.clients);
    free(stage.lookup);
    int64_t left = world_metric(&stage.world, TL_WORKER_SUBSCRIBERS) +
                   world_metric(&stage.world, TL_WORKER_EVENT_STREAMS);
    world_end(&stage.world);
    return left != 0;
}

static inline struct tl_ticket ticket_of(const char *visitor, tl_place place)
{
    struct tl_ticket ticket = {.place = place, .generation = tl_place_seq(place) != 0 ? 7 : 0};
    snprintf(ticket.visitor, sizeof(ticket.visitor), "%s", visitor);
    return ticket;
}

/* The visit of a request about the place of this ticket. */
static inline struct tl_visit *visit_of(struct tl_request *request, const struct tl_ticket *ticket,
                                        int64_t now_ms)
{
    struct tl_visit *visit = &stage.visits[stage.n_visits++ % VISITS];
    *visit = tl_visit_of(&stage.worker, stage.world.queue, ticket, now_ms);
    visit->request = request;
    visit->has_address = stage.client != NULL;
    if (visit->has_address)
        visit->address = *stage.client;
    return visit;
}

static inline bool stream(struct tl_request *request, const struct tl_ticket *ticket,
                          const struct tl_address *client, const char *language, int64_t now_ms)
{
    stage.client = client;
    return tl_subscribers_stream(visit_of(request, ticket, now_ms), language);
}

static inline bool wait_for(struct tl_request *request, const struct tl_ticket *ticket,
                            const struct tl_address *client, int64_t now_ms, int64_t deadline_ms)
{
    stage.client = client;
    return tl_subscribers_wait(visit_of(request, ticket, now_ms), deadline_ms, false);
}

/* The JOIN of a visitor was applied with this outcome; issued: of the ticket that it repeats. */
static inline void joined(const char *visitor, uint32_t issued,
                          const struct tl_pending_result *result, int64_t now_ms)
{
    char invite[16];
    struct tl_pending_command join = {.kind = TL_COMMAND_JOIN, .invite = invite};
    snprintf(invite, sizeof(invite), "%lu", (unsigned long)issued);
    snprintf(join.visitor, sizeof(join.visitor), "%s", visitor);
    tl_subscribers_joined(&stage.worker, stage.world.queue, &join, result, now_ms);
}

static inline void numbered(const char *visitor, tl_place place, int64_t now_ms)
{
    joined(visitor, 0, &(struct tl_pending_result){.place = place}, now_ms);
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
static inline struct tl_stream *open_stream(const char *visitor, tl_place place)
{
    struct tl_request request = {0};
    struct tl_ticket ticket = ticket_of(visitor, place);
    assert_true(stream(&request, &ticket, NULL, "ko", T));
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
static inline void admit_next(int admitted, int64_t now_ms)
{
    char events[96];
    snprintf(events, sizeof(events), "[5,[%d,1],1],[3,[%d,1],1700000200000]", admitted + 1,
             admitted + 4);
    world_apply(&stage.world, 20000 - (uint64_t)admitted - 1, 3, events, now_ms);
    assert_int_equal(stage.world.rebuilds, 0);
}

static inline void sweep(int64_t now_ms)
{
    tl_subscribers_sweep(&stage.worker, now_ms);
}

#endif
