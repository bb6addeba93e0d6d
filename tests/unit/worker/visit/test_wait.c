/* SPDX-License-Identifier: Apache-2.0 */
/* Held requests and lookups: each ends once, with its outcome or when its time is over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/worker/queue/fakes.h"
#include "tests/unit/worker/queue/world.h"
#include "worker/visit/wait.h"

enum {
    WAIT_MS = 3000,
    ENDS_MAX = 16,
    WAITS_MAX = 32,
    T_US = 1000000
}; /* the test begins at T_US */

/* The outcomes of held requests, in the order of their ends. */
struct end {
    struct tl_request *request;
    bool applied, in_time; /* of a command */
    bool known;            /* of a lookup */
};

struct stage {
    struct world world;
    struct tl_holds *holds;
    uint64_t asked; /* the number of the last question to the store */
    bool cannot_ask;
    size_t n, n_waits;
    struct end ends[ENDS_MAX];
    struct tl_wait waits[WAITS_MAX];
    struct tl_ticket tickets[WAITS_MAX]; /* of lookups */
};

static struct stage the_stage;

/* Instead of the ingest thread, which is the stage itself. */
bool tl_ingest_look(struct tl_ingest *ingest, const char *queue, const struct tl_ticket *ticket,
                    uint64_t number)
{
    struct stage *stage = (void *)ingest;
    assert_string_equal(queue, "q");
    assert_string_equal(ticket->visitor, "v");
    assert_int_equal(number, stage->asked + 1);
    if (stage->cannot_ask)
        return false;
    stage->asked = number;
    return true;
}

static void over(struct tl_wait *wait)
{
    struct stage *stage = &the_stage;
    assert_string_equal(wait->queue->name, "q");
    assert_true(wait->request == NULL || wait->request->held);
    stage->ends[stage->n++] = (struct end){.request = wait->request,
                                           .in_time = wait->result != NULL,
                                           .applied = tl_wait_applied(wait),
                                           .known = wait->known};
}

/* One that is not used yet. */
static struct tl_wait *wait_of(struct stage *stage, struct tl_request *request,
                               const struct tl_ticket *ticket, int64_t since_ms)
{
    assert_true(stage->n_waits < WAITS_MAX);
    struct tl_wait *wait = &stage->waits[stage->n_waits++];
    *wait = (struct tl_wait){.queue = stage->world.queue,
                             .request = request,
                             .ticket = ticket,
                             .since_us = T_US + since_ms * 1000};
    return wait;
}

static int start(void **state)
{
    struct stage *stage = &the_stage;
    *stage = (struct stage){0};
    world_start(&stage->world, 5);
    stage->world.env.ingest = (void *)stage;
    const struct tl_holds_settings settings = {
        .wait_ms = WAIT_MS, .env = &stage->world.env, .over = over};
    stage->holds = tl_holds_new(&settings);
    *state = stage;
    return stage->holds == NULL;
}

static int finish(void **state)
{
    struct stage *stage = *state;
    uint64_t left = tl_holds_count(stage->holds);
    tl_holds_free(&stage->holds);
    world_end(&stage->world);
    return left != 0;
}

static void hold(struct stage *stage, struct tl_request *request,
                 struct tl_pending_command *pending, int64_t since_ms)
{
    tl_holds_command(stage->holds, wait_of(stage, request, NULL, since_ms), pending);
    assert_true(request->held);
}

static void look_up(struct stage *stage, struct tl_request *request, tl_place place,
                    int64_t since_ms)
{
    struct tl_ticket *ticket = &stage->tickets[stage->n_waits];
    *ticket = (struct tl_ticket){.visitor = "v", .place = place};
    assert_true(tl_holds_lookup(stage->holds, wait_of(stage, request, ticket, since_ms)));
}

static void wait_for(struct stage *stage, struct tl_request *request, uint64_t event,
                     int64_t since_ms)
{
    tl_holds_event(stage->holds, wait_of(stage, request, NULL, since_ms), event);
    assert_true(request->held);
}

static void tick(struct stage *stage, int64_t ms)
{
    tl_holds_tick(stage->holds, T_US / 1000 + ms);
}

/* ---- commands ---- */

static const struct tl_pending_result applied = {.end = TL_PENDING_APPLIED};
static const struct tl_pending_result refused = {.end = TL_PENDING_REFUSED};

static void an_outcome_ends_all_that_wait_for_it(void **state)
{
    struct stage *stage = *state;
    struct tl_request a = {0}, b = {0}, c = {0};
    struct tl_pending_command one = {0}, other = {0};
    hold(stage, &a, &one, 0);
    hold(stage, &b, &other, 0);
    hold(stage, &c, &one, 0);
    assert_int_equal(tl_holds_count(stage->holds), 3);
    tl_holds_settle(stage->holds, &one, &applied);
    assert_int_equal(stage->n, 2);
    for (size_t i = 0; i < 2; i++)
        assert_true(stage->ends[i].request != &b && stage->ends[i].applied);
    assert_ptr_not_equal(stage->ends[0].request, stage->ends[1].request);
    assert_null(one.waiters);
    tl_holds_settle(stage->holds, &other, &refused);
    assert_int_equal(stage->n, 3);
    assert_ptr_equal(stage->ends[2].request, &b);
    assert_true(stage->ends[2].in_time && !stage->ends[2].applied);
    tick(stage, 60000);
    assert_int_equal(stage->n, 3);
}

static void the_earliest_deadline_ends_first(void **state)
{
    struct stage *stage = *state;
    struct tl_request requests[4] = {0};
    struct tl_pending_command one = {0}, other = {0};
    for (size_t i = 0; i < 4; i++)
        hold(stage, &requests[i], i == 2 ? &other : &one, (int64_t)i * 100);
    tick(stage, WAIT_MS - 1);
    assert_int_equal(stage->n, 0);
    tick(stage, WAIT_MS);
    assert_int_equal(stage->n, 1);
    tick(stage, WAIT_MS + 200);
    assert_int_equal(stage->n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_ptr_equal(stage->ends[i].request, &requests[i]);
        assert_false(stage->ends[i].in_time);
    }
    assert_null(other.waiters);
    tl_holds_settle(stage->holds, &one, &applied); /* one still waits for it */
    assert_int_equal(stage->n, 4);
    assert_ptr_equal(stage->ends[3].request, &requests[3]);
    assert_true(stage->ends[3].applied);
}

/* ---- lookups ---- */

static void the_stores_answer_ends_a_lookup(void **state)
{
    static const struct {
        enum tl_lookup_found found;
        bool known;
        enum tl_line_status status; /* of the place afterwards */
    } cases[] = {{TL_LOOKUP_ENDED, true, TL_LINE_ENDED},
                 {TL_LOOKUP_NOWHERE, true, TL_LINE_UNKNOWN},
                 {TL_LOOKUP_FAILED, false, TL_LINE_UNKNOWN}};
    struct stage *stage = *state;
    for (size_t i = 0; i < 3; i++) {
        struct tl_request request = {0};
        bool known;
        look_up(stage, &request, 900 + i, 0);
        assert_true(request.held);
        tl_holds_found(stage->holds, stage->asked, cases[i].found, TL_REASON_LEFT);
        tl_holds_found(stage->holds, stage->asked, cases[i].found, TL_REASON_LEFT);
        assert_int_equal(stage->n, i + 1);
        assert_ptr_equal(stage->ends[i].request, &request);
        assert_int_equal(stage->ends[i].known, cases[i].known);
        const struct tl_line_view view = tl_queue_look(stage->world.queue, 900 + i, &known);
        assert_int_equal(known, cases[i].known);
        assert_int_equal(view.status, cases[i].status);
        if (cases[i].status == TL_LINE_ENDED)
            assert_int_equal(view.reason, TL_REASON_LEFT);
    }
    assert_int_equal(world_metric(&stage->world, TL_WORKER_LOOKUPS), 3);
}

static void answers_find_their_lookups(void **state)
{
    struct stage *stage = *state;
    struct tl_request first = {0}, second = {0};
    look_up(stage, &first, 900, 0);
    look_up(stage, NULL, 901, 0); /* for a stream: without a request */
    look_up(stage, &second, 902, 0);
    tl_holds_found(stage->holds, 2, TL_LOOKUP_ENDED, TL_REASON_LEFT);
    assert_int_equal(stage->n, 1);
    assert_null(stage->ends[0].request);
    tl_holds_found(stage->holds, 3, TL_LOOKUP_ENDED, TL_REASON_LEFT);
    assert_ptr_equal(stage->ends[1].request, &second);
    tl_holds_found(stage->holds, 1, TL_LOOKUP_ENDED, TL_REASON_LEFT);
    assert_ptr_equal(stage->ends[2].request, &first);
}

static void a_lookup_waits_for_a_line_that_is_behind(void **state)
{
    struct stage *stage = *state;
    struct tl_request request = {0};
    look_up(stage, &request, 9, 0);
    tl_holds_found(stage->holds, 1, TL_LOOKUP_ALIVE, 0);
    tick(stage, 100);
    assert_int_equal(stage->n, 0);
    world_apply(&stage->world, 6, 3, "[2,[9,1]]", 0);
    tick(stage, 200);
    assert_int_equal(stage->n, 1);
    assert_true(stage->ends[0].known);
}

static void a_lookup_gives_up_in_time(void **state)
{
    struct stage *stage = *state;
    struct tl_request silent = {0}, behind = {0}, late = {0};
    look_up(stage, &silent, 900, 0);
    look_up(stage, &behind, 901, 0);
    look_up(stage, &late, 902, 1);
    tl_holds_found(stage->holds, 2, TL_LOOKUP_ALIVE, 0);
    tick(stage, WAIT_MS - 1);
    assert_int_equal(stage->n, 0);
    tick(stage, WAIT_MS);
    assert_int_equal(stage->n, 2);
    assert_false(stage->ends[0].known);
    assert_false(stage->ends[1].known);
    tl_holds_found(stage->holds, 1, TL_LOOKUP_ENDED, TL_REASON_LEFT); /* too late */
    assert_int_equal(stage->n, 2);
    tick(stage, WAIT_MS + 1);
    assert_int_equal(stage->n, 3);
}

static void a_question_that_cannot_be_asked_holds_nothing(void **state)
{
    struct stage *stage = *state;
    struct tl_request request = {0};
    const struct tl_ticket ticket = {.visitor = "v", .place = 900};
    stage->cannot_ask = true;
    assert_false(tl_holds_lookup(stage->holds, wait_of(stage, &request, &ticket, 0)));
    assert_false(request.held);
    assert_int_equal(tl_holds_count(stage->holds), 0);
}

static void the_lookups_of_a_queue_are_dropped(void **state)
{
    struct stage *stage = *state;
    struct tl_request waits = {0}, lookup = {0}, another = {0};
    struct tl_pending_command pending = {0};
    struct tl_queue *other = tl_queue_new(&stage->world.env, "r");
    hold(stage, &waits, &pending, 0);
    look_up(stage, &lookup, 900, 0);
    tl_holds_drop(stage->holds, other);
    assert_int_equal(stage->n, 0);
    tl_holds_drop(stage->holds, stage->world.queue);
    assert_int_equal(stage->n, 1);
    assert_ptr_equal(stage->ends[0].request, &lookup);
    assert_false(stage->ends[0].known);
    look_up(stage, &another, 900, 0);
    tl_holds_drop(stage->holds, NULL); /* of all queues */
    assert_int_equal(stage->n, 2);
    assert_int_equal(tl_holds_count(stage->holds), 1); /* commands go on */
    tl_holds_settle(stage->holds, &pending, &applied);
    tl_queue_free(&other);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, start, finish)

/* ---- events ---- */

static void an_event_ends_all_that_wait_for_it(void **state)
{
    struct stage *stage = *state;
    struct tl_request a = {0}, b = {0}, c = {0};
    wait_for(stage, &a, 11, 0);
    wait_for(stage, &b, 12, 0);
    wait_for(stage, &c, 11, 0);
    tick(stage, 1);
    assert_int_equal(stage->n, 0);
    assert_int_equal(tl_holds_count(stage->holds), 3);
    world_apply(&stage->world, 5, 3, "", 0); /* event 11 */
    tick(stage, 2);
    assert_int_equal(stage->n, 2);
    assert_ptr_equal(stage->ends[0].request, &a);
    assert_ptr_equal(stage->ends[1].request, &c);
    tl_holds_drop(stage->holds, stage->world.queue);
    assert_ptr_equal(stage->ends[2].request, &b);
}

static void an_event_is_not_waited_for_long(void **state)
{
    struct stage *stage = *state;
    struct tl_request a = {0}, b = {0};
    wait_for(stage, &a, 11, 0);
    wait_for(stage, &b, 11, 100);
    tick(stage, 249);
    assert_int_equal(stage->n, 0);
    tick(stage, 250);
    assert_int_equal(stage->n, 1);
    tick(stage, 350);
    assert_int_equal(stage->n, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_outcome_ends_all_that_wait_for_it),
        TEST(the_earliest_deadline_ends_first),
        TEST(the_stores_answer_ends_a_lookup),
        TEST(answers_find_their_lookups),
        TEST(a_lookup_waits_for_a_line_that_is_behind),
        TEST(a_lookup_gives_up_in_time),
        TEST(a_question_that_cannot_be_asked_holds_nothing),
        TEST(the_lookups_of_a_queue_are_dropped),
        TEST(an_event_ends_all_that_wait_for_it),
        TEST(an_event_is_not_waited_for_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
