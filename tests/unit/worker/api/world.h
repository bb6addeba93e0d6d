/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker's API without a process around it: real queues with lines, real keys, requests without
 * connections, and the test in the place of the store. Visitors of the queue "concert": lane 0 has
 * seq 1 active and 2 to 9 waiting, lane 1 has seq 1 to 3 waiting. All other places are unknown.
 */
#ifndef TEST_API_WORLD_H
#define TEST_API_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/auth/ticket.h"
#include "common/config/config.h"
#include "common/wire/batch.h"
#include "tests/unit/fake_request.h"
#include "worker/api/worker.h"
#include "worker/feed/change.h"
#include "worker/feed/followed_queues.h"
#include "worker/verify/verifier.h"
#include "worker/visit/visit.h"

#define WORLD_STORE_MS   INT64_C(1795000000000) /* the store's clock when the test begins */
#define WORLD_GENERATION 7
#define WORLD_SECRET     "of-the-service" /* whose site key is "site-1" */
#define WORLD_API_KEY    "k0123456789012345678901234567890123456789"

struct tl_fetch { /* a question to the challenge service */
    struct world *world;
    struct tl_verdict verdict;
    bool judged;
};

struct world {
    char folder[32];
    const struct tl_config *config;
    struct tl_queue_env env;
    uv_loop_t loop;
    struct tl_limiter *limiter;
    struct tl_languages *languages; /* of the pages, as brand and events */
    struct tl_brand *brand;
    struct tl_event_looks events;
    struct tl_sharing *sharing;
    struct tl_worker the_worker, *worker;        /* is at the_worker */
    struct tl_queue_settings settings;           /* of the queue */
    bool deaf;                                   /* lookups cannot be asked */
    unsigned asked;                              /* lookups and pages of draws so far */
    unsigned noted;                              /* notes so far */
    uint64_t number;                             /* of the last one */
    enum tl_command_kind kind;                   /* of the last batch's first command */
    uint64_t from, n;                            /* the ranks of the last page */
    struct {                                     /* what the challenge service was asked last */
        unsigned asked, cancelled;               /* how often so far */
        struct tl_fetch *fetch;                  /* NULL: it has ended */
        char secret[32], token[64], address[64]; /* address "": none */
        int64_t until_ms;
    } service;
};

/* cmocka's setup and teardown: *state is a world that serves. */
int world_setup(void **state);
int world_teardown(void **state);
/* The follower tells of a change of the queue. */
void world_take(struct world *world, struct tl_change change);
/* Gives the queue its line again, with world->settings. */
void world_load(struct world *world);
/* The store has lost the queue: the same line, in the next generation. */
void world_recreate(struct world *world);
/* The next entry, with these events as in pack.h. / This seq of lane 0 is admitted. */
void world_event(struct world *world, const char *events);
void world_admit(struct world *world, uint64_t seq);
struct tl_queue *world_queue(struct world *world);

/* The text of a genuine ticket: of alice, unless said otherwise. */
struct world_ticket {
    char text[TL_TICKET_MAX + 16]; /* behind "Bearer " */
};
struct world_ticket world_ticket(struct world *world, uint64_t generation, tl_place place);
struct world_ticket world_signed(struct world *world, const struct tl_ticket *ticket);

/* Handles a request. Afterwards it is answered once, or held. */
void world_handle(struct world *world, struct tl_request *request);
/* A request with this ticket (NULL: none). */
struct tl_request world_send(struct world *world, const char *method, const char *path,
                             const char *bearer);

/* The store takes the batch gathered so far, or refuses it. Returns its number; world->kind is that
 * of its first command. */
uint64_t world_batch(struct world *world, bool taken);
/* The store takes what is gathered, and loses it without an outcome, until nothing is sent again.
 */
void world_lose(struct world *world);
/* A batch was applied: its join has this seq; or else its first command has this exception. */
void world_applied(struct world *world, uint64_t batch, uint64_t seq);
void world_excepted(struct world *world, uint64_t batch, enum tl_outcome outcome, tl_place place);
/* The ticket in an answer's view. */
struct tl_ticket world_given(struct world *world, const struct tl_request *request);
/* What arrived at the client of a stream, up to now. */
void world_read(const struct tl_request *request, char *text, size_t size);

/* Answered once, with this status and a body that holds the text ("": any). */
#define assert_answer(request, code, part)                                                         \
    do {                                                                                           \
        assert_false((request)->held);                                                             \
        assert_int_equal((request)->answers, 1);                                                   \
        assert_int_equal((request)->status, code);                                                 \
        if (strstr((request)->text, part) == NULL)                                                 \
            fail_msg("no %s in %s", part, (request)->text);                                        \
    } while (0)
#define assert_problem(request, code, type) assert_answer(request, code, "\"/problems/" type "\"")
/* Not answered yet. */
#define assert_waits(request) assert_int_equal((request)->answers, 0)

#endif
