/* SPDX-License-Identifier: Apache-2.0 */
/* What visits wait for: each takes its next step once, with what has come, or when its time is
 * over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/unit/worker/api/world.h"
#include "worker/api/handlers.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/answer.h"
#include "worker/visit/visit.h"

enum { VISITS_MAX = 8, ENDS_MAX = 16 };

/* The steps taken, in their order. */
static struct end {
    const struct tl_visit *visit;
    bool applied, in_time; /* of a command */
    bool known;            /* of a lookup */
    bool told;             /* a page, or a verdict */
} ends[ENDS_MAX];
static size_t n;

static struct tl_request requests[VISITS_MAX];
static size_t n_requests;

static int start(void **state)
{
    n = n_requests = 0;
    return world_setup(state);
}

/* Whatever still waits ends here. */
static int finish(void **state)
{
    struct world *world = *state;
    tl_waits_drop(world->worker, NULL);
    uint64_t left = tl_waits_count(&world->worker->waits);
    return world_teardown(state) != 0 || left != 0;
}

static bool step(struct tl_visit *visit)
{
    const struct tl_wait *wait = &visit->wait;
    ends[n++] =
        (struct end){.visit = visit,
                     .in_time = wait->result != NULL,
                     .applied = tl_wait_applied(wait),
                     .known = wait->known,
                     .told = wait->ids != NULL || (wait->fetch != NULL && wait->fetch->judged)};
    return true;
}

/* A visit about this place. */
static struct tl_visit *visit_of(struct world *world, tl_place place)
{
    struct tl_request *request = &requests[n_requests++];
    *request = (struct tl_request){.context = world->worker, .renderer = &tl_json_renderer};
    struct tl_visit *visit = tl_visit_begin(world->worker, request, "concert");
    visit->queue = world_queue(world);
    visit->ticket = (struct tl_ticket){.visitor = "v", .place = place};
    return visit;
}

static struct tl_visit *hold(struct world *world, struct tl_pending_command *pending)
{
    struct tl_visit *visit = visit_of(world, 0);
    assert_true(tl_wait_command(visit, pending, step));
    assert_true(visit->request->held);
    return visit;
}

static struct tl_visit *look_up(struct world *world, tl_place place)
{
    struct tl_visit *visit = visit_of(world, place);
    assert_true(tl_wait_lookup(visit, step));
    assert_int_equal(visit->wait.number, world->number);
    return visit;
}

static struct tl_visit *wait_for(struct world *world, uint64_t event)
{
    struct tl_visit *visit = visit_of(world, 0);
    tl_wait_event(visit, event, step);
    assert_true(visit->request->held);
    return visit;
}

static struct tl_visit *ask(struct world *world, enum tl_wait_kind kind, int64_t ms)
{
    struct tl_visit *visit = visit_of(world, 0);
    visit->wait.number = ++visit->worker->waits.last_number;
    tl_wait_begin(visit, kind, ms, step);
    return visit;
}

/* So long after this visit began to wait. */
static void tick(struct world *world, const struct tl_visit *since, int64_t ms)
{
    tl_waits_tick(world->worker, since->now_ms + ms); /* as the deadline counts */
}

static int64_t wait_ms(const struct world *world)
{
    return world->config->http.join_wait_ms;
}

/* ---- commands ---- */

static const struct tl_pending_result applied = {.end = TL_PENDING_APPLIED};
static const struct tl_pending_result refused = {.end = TL_PENDING_REFUSED};

static void an_outcome_ends_all_that_wait_for_it(void **state)
{
    struct world *world = *state;
    struct tl_pending_command one = {0}, other = {0};
    const struct tl_visit *a = hold(world, &one), *b = hold(world, &other), *c = hold(world, &one);
    assert_int_equal(tl_waits_count(&world->worker->waits), 3);
    tl_waits_settle(&one, &applied);
    assert_int_equal(n, 2);
    for (size_t i = 0; i < 2; i++)
        assert_true((ends[i].visit == a || ends[i].visit == c) && ends[i].applied);
    assert_ptr_not_equal(ends[0].visit, ends[1].visit);
    assert_null(one.waiters);
    tl_waits_settle(&other, &refused);
    assert_int_equal(n, 3);
    assert_ptr_equal(ends[2].visit, b);
    assert_true(ends[2].in_time && !ends[2].applied);
    tick(world, a, 600000);
    assert_int_equal(n, 3);
}

static void the_earliest_deadline_ends_first(void **state)
{
    struct world *world = *state;
    struct tl_visit *visits[4];
    struct tl_pending_command one = {0}, other = {0};
    for (size_t i = 0; i < 4; i++) {
        visits[i] = hold(world, i == 2 ? &other : &one);
        visits[i]->wait.deadline_ms = visits[0]->wait.deadline_ms + (int64_t)i * 100;
    }
    tick(world, visits[0], wait_ms(world) - 1);
    assert_int_equal(n, 0);
    tick(world, visits[0], wait_ms(world));
    assert_int_equal(n, 1);
    tick(world, visits[0], wait_ms(world) + 200);
    assert_int_equal(n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_ptr_equal(ends[i].visit, visits[i]);
        assert_false(ends[i].in_time);
    }
    assert_null(other.waiters);
    tl_waits_settle(&one, &applied); /* one still waits for it */
    assert_int_equal(n, 4);
    assert_ptr_equal(ends[3].visit, visits[3]);
    assert_true(ends[3].applied);
}

static void without_memory_for_a_command_the_visit_is_refused(void **state)
{
    struct tl_visit *visit = visit_of(*state, 0);
    assert_false(tl_wait_command(visit, NULL, step));
    assert_int_equal(visit->refusal.kind, TL_REFUSAL_BUSY);
    assert_false(visit->request->held);
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
    struct world *world = *state;
    for (size_t i = 0; i < 3; i++) {
        bool known;
        const struct tl_visit *visit = look_up(world, 900 + i);
        assert_true(visit->request->held);
        tl_waits_found(world->worker, world->number, cases[i].found, TL_REASON_LEFT);
        tl_waits_found(world->worker, world->number, cases[i].found, TL_REASON_LEFT);
        assert_int_equal(n, i + 1);
        assert_ptr_equal(ends[i].visit, visit);
        assert_int_equal(ends[i].known, cases[i].known);
        const struct tl_line_view view = tl_queue_look(visit->queue, 900 + i, &known);
        assert_int_equal(known, cases[i].known);
        assert_int_equal(view.status, cases[i].status);
        if (cases[i].status == TL_LINE_ENDED)
            assert_int_equal(view.reason, TL_REASON_LEFT);
    }
    assert_int_equal(tl_metrics_get(world->env.metrics, TL_WORKER_LOOKUPS), 3);
}

static void answers_find_their_lookups(void **state)
{
    struct world *world = *state;
    const struct tl_ticket ticket = {.visitor = "v", .place = 901};
    struct tl_visit stream = tl_visit_of(world->worker, world_queue(world), &ticket, tl_clock_ms());
    const struct tl_visit *first = look_up(world, 900);
    assert_true(tl_wait_lookup(&stream, step)); /* without a request */
    const struct tl_visit *second = look_up(world, 902);
    tl_waits_found(world->worker, stream.wait.number, TL_LOOKUP_ENDED, TL_REASON_LEFT);
    assert_int_equal(n, 1);
    assert_ptr_equal(ends[0].visit, &stream);
    tl_waits_found(world->worker, second->wait.number, TL_LOOKUP_ENDED, TL_REASON_LEFT);
    assert_ptr_equal(ends[1].visit, second);
    tl_waits_found(world->worker, first->wait.number, TL_LOOKUP_ENDED, TL_REASON_LEFT);
    assert_ptr_equal(ends[2].visit, first);
}

static void a_lookup_waits_for_a_line_that_is_behind(void **state)
{
    struct world *world = *state;
    const struct tl_visit *visit = look_up(world, tl_place_make(0, 10));
    tl_waits_found(world->worker, world->number, TL_LOOKUP_ALIVE, 0);
    tick(world, visit, 100);
    assert_int_equal(n, 0);
    world_event(world, "[2,[10,1]]");
    tick(world, visit, 200);
    assert_int_equal(n, 1);
    assert_true(ends[0].known);
}

static void a_lookup_gives_up_in_time(void **state)
{
    struct world *world = *state;
    const struct tl_visit *silent = look_up(world, 900), *behind = look_up(world, 901);
    tl_waits_found(world->worker, behind->wait.number, TL_LOOKUP_ALIVE, 0);
    struct tl_visit *late = look_up(world, 902);
    late->wait.deadline_ms = behind->wait.deadline_ms + 1;
    tl_waits_tick(world->worker, silent->wait.deadline_ms - 1);
    assert_int_equal(n, 0);
    tl_waits_tick(world->worker, behind->wait.deadline_ms);
    assert_int_equal(n, 2);
    assert_false(ends[0].known);
    assert_false(ends[1].known);
    tl_waits_found(world->worker, silent->wait.number, TL_LOOKUP_ENDED, TL_REASON_LEFT);
    assert_int_equal(n, 2); /* too late */
    tl_waits_tick(world->worker, late->wait.deadline_ms);
    assert_int_equal(n, 3);
}

static void a_question_that_cannot_be_asked_holds_nothing(void **state)
{
    struct world *world = *state;
    struct tl_visit *visit = visit_of(world, 900);
    world->deaf = true;
    assert_false(tl_wait_lookup(visit, step));
    world->deaf = false;
    world->env.follower_up = false;
    assert_false(tl_wait_lookup(visit, step));
    assert_false(visit->request->held);
    assert_int_equal(tl_waits_count(&world->worker->waits), 0);
}

/* ---- events ---- */

static void an_event_ends_all_that_wait_for_it(void **state)
{
    struct world *world = *state;
    const struct tl_visit *a = wait_for(world, 101), *b = wait_for(world, 102),
                          *c = wait_for(world, 101);
    tick(world, a, 1);
    assert_int_equal(n, 0);
    assert_int_equal(tl_waits_count(&world->worker->waits), 3);
    world_event(world, ""); /* 101 */
    tick(world, a, 2);
    assert_int_equal(n, 2);
    assert_ptr_equal(ends[0].visit, a);
    assert_ptr_equal(ends[1].visit, c);
    tl_waits_drop(world->worker, b->queue);
    assert_ptr_equal(ends[2].visit, b);
}

static void an_event_is_not_waited_for_long(void **state)
{
    struct world *world = *state;
    const struct tl_visit *a = wait_for(world, 101);
    struct tl_visit *b = wait_for(world, 101);
    b->wait.deadline_ms = a->wait.deadline_ms + 100;
    tick(world, a, 249);
    assert_int_equal(n, 0);
    tick(world, a, 250);
    assert_int_equal(n, 1);
    tick(world, a, 350);
    assert_int_equal(n, 2);
}

/* ---- pages and verdicts ---- */

static void pages_and_verdicts_are_waited_for_as_long_as_is_said(void **state)
{
    struct world *world = *state;
    const struct tl_visit *page = ask(world, TL_WAIT_PAGE, 5000);
    struct tl_visit *token = ask(world, TL_WAIT_VERDICT, 400);
    struct tl_visit *another = ask(world, TL_WAIT_VERDICT, 500);
    struct tl_fetch fetches[2] = {{.world = world}, {.world = world}};
    token->wait.fetch = &fetches[0];
    another->wait.fetch = &fetches[1];
    tl_verifications_ended(world->worker);
    assert_int_equal(n, 0);
    fetches[1].judged = true;
    tl_verifications_ended(world->worker);
    assert_true(n == 1 && ends[0].visit == another && ends[0].told);
    tl_waits_tick(world->worker, token->wait.deadline_ms);
    assert_true(n == 2 && ends[1].visit == token && !ends[1].told);
    tl_waits_drawn(world->worker, page->wait.number, "ids", 3);
    assert_true(n == 3 && ends[2].visit == page && ends[2].told);
    tl_waits_drawn(world->worker, page->wait.number, "ids", 3);
    assert_int_equal(n, 3);
}

/* ---- queues that go ---- */

static void what_a_recreated_queue_cannot_tell_any_more_ends(void **state)
{
    struct world *world = *state;
    struct tl_pending_command pending = {0};
    struct tl_queue *other = tl_queue_new(&world->env, "r");
    (void)hold(world, &pending);
    (void)ask(world, TL_WAIT_VERDICT, 5000);
    const struct tl_visit *lookup = look_up(world, 900);
    tl_waits_drop(world->worker, other);
    assert_int_equal(n, 0);
    tl_waits_drop(world->worker, world_queue(world));
    assert_int_equal(n, 1);
    assert_ptr_equal(ends[0].visit, lookup);
    assert_false(ends[0].known);
    (void)look_up(world, 900);
    tl_waits_drop(world->worker, NULL); /* of all queues */
    assert_int_equal(n, 3);
    assert_int_equal(tl_waits_count(&world->worker->waits), 1); /* commands go on */
    tl_waits_settle(&pending, &applied);
    tl_queue_free(&other);
}

static void nothing_waits_for_a_deleted_queue(void **state)
{
    struct world *world = *state;
    struct tl_outbox *outbox = world_queue(world)->outbox;
    const struct tl_visit *join = hold(world, tl_outbox_join(outbox, "v", 0, NULL, 0));
    (void)look_up(world, 900);
    (void)wait_for(world, 102);
    (void)ask(world, TL_WAIT_PAGE, 5000);
    (void)ask(world, TL_WAIT_VERDICT, 5000);
    world_take(world, (struct tl_change){.kind = TL_CHANGE_GONE});
    assert_int_equal(n, 4);
    for (size_t i = 0; i < 4; i++)
        assert_false(ends[i].known || ends[i].told);
    assert_int_equal(tl_waits_count(&world->worker->waits), 0);
    assert_problem(join->request, 404, "no-such-queue");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_outcome_ends_all_that_wait_for_it),
        TEST(the_earliest_deadline_ends_first),
        TEST(without_memory_for_a_command_the_visit_is_refused),
        TEST(the_stores_answer_ends_a_lookup),
        TEST(answers_find_their_lookups),
        TEST(a_lookup_waits_for_a_line_that_is_behind),
        TEST(a_lookup_gives_up_in_time),
        TEST(a_question_that_cannot_be_asked_holds_nothing),
        TEST(an_event_ends_all_that_wait_for_it),
        TEST(an_event_is_not_waited_for_long),
        TEST(pages_and_verdicts_are_waited_for_as_long_as_is_said),
        TEST(what_a_recreated_queue_cannot_tell_any_more_ends),
        TEST(nothing_waits_for_a_deleted_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
