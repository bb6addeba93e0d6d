/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/queues/{q}/join with an Idempotency-Key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/unit/auth/puzzle_solve.h"
#include "tests/unit/worker/api/world.h"

#define PATH "/v1/queues/concert/join"

/* The visitor who joins so. */
static const char *joins_as(struct world *world, struct tl_request *request)
{
    static struct tl_ticket given;
    world_handle(world, request);
    assert_waits(request);
    world_applied(world, world_batch(world, true), 5);
    given = world_given(world, request);
    return given.visitor;
}

static void a_join_with_a_key_may_be_sent_again(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *key, *peer;
        struct fake_value bearer;
    } cases[] = {{"0d53a1c2-4b9e-4f4e", "192.0.2.1", {NULL, NULL}},
                 {"0d53a1c2-4b9e-4f4f", "192.0.2.1", {NULL, NULL}},
                 {"0d53a1c2-4b9e-4f4e", "192.0.2.2", {NULL, NULL}},
                 {"0d53a1c2-4b9e-4f4e", "192.0.2.1", {"Authorization", "Bearer " WORLD_API_KEY}}};
    enum { N = sizeof(cases) / sizeof(cases[0]) };
    char visitors[N][TL_VISITOR_MAX + 1];
    ((struct tl_config *)(uintptr_t)world->config)->http.joins_per_minute = 100;
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < N; i++) {
            struct tl_request request = {
                .method = "POST",
                .path = PATH,
                .peer = cases[i].peer,
                .headers = {{"Idempotency-Key", cases[i].key}, cases[i].bearer}};
            const char *visitor = joins_as(world, &request);
            assert_int_equal(strlen(visitor), 22);
            if (turn == 1)
                assert_string_equal(visitor, visitors[i]);
            memcpy(visitors[i], visitor, strlen(visitor) + 1);
            for (size_t k = 0; k < i; k++)
                assert_string_not_equal(visitor, visitors[k]);
        }
}

/* A crowd with keys of its own reaches neither the store nor a challenge service. A trusted caller
 * does, with a key and without. */
static void a_key_opens_no_queue_that_takes_no_newcomers(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *problem;
        uint64_t max_waiting;
        enum tl_queue_mode mode;
        int status;
    } cases[] = {{"/problems/full", 11, TL_MODE_OPEN, 503},
                 {"/problems/draining", 100, TL_MODE_DRAINING, 403},
                 {"/problems/closed", 100, TL_MODE_CLOSED, 403},
                 {"/problems/sold-out", 100, TL_MODE_SOLD_OUT, 410}};
    static const enum tl_challenge_mode challenges[] = {TL_CHALLENGE_NONE, TL_CHALLENGE_WORK,
                                                        TL_CHALLENGE_EXTERNAL};
    for (size_t i = 0; i < 3 * sizeof(cases) / sizeof(cases[0]); i++) {
        world->settings.mode = cases[i / 3].mode;
        world->settings.max_waiting = cases[i / 3].max_waiting;
        world->settings.challenge = challenges[i % 3];
        world_load(world);
        struct tl_request request = {.method = "POST",
                                     .path = PATH,
                                     .headers = {{"Idempotency-Key", "0d53a1c2-4b9e-4f4e"},
                                                 {"Content-Type", "application/json"}},
                                     .body = "{\"token\":\"t-1\"}"};
        world_handle(world, &request);
        assert_answer(&request, cases[i / 3].status, cases[i / 3].problem);
    }
    assert_int_equal(tl_queues_in_flight(&world->worker->queues), 0);
    assert_int_equal(world->service.asked, 0);
    struct tl_request trusted = {.method = "POST",
                                 .path = PATH,
                                 .headers = {{"Idempotency-Key", "0d53a1c2-4b9e-4f4e"},
                                             {"Authorization", "Bearer " WORLD_API_KEY}}};
    world_handle(world, &trusted);
    assert_waits(&trusted);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_WAITING, tl_place_make(0, 5));
    assert_answer(&trusted, 200, "\"position\":4,");
}

/* Asks for a puzzle with this join, and solves it. body: of the next one. */
static void solve(struct world *world, struct tl_request join, char *body, size_t size)
{
    char puzzle[TL_PUZZLE_MAX], solution[TL_PUZZLE_SOLUTION_MAX];
    join.body = NULL;
    world_handle(world, &join);
    assert_problem(&join, 403, "challenge-required");
    const char *text = strstr(join.text, "\"puzzle\":\"");
    if (text == NULL) {
        fail_msg("no puzzle in %s", join.text);
        return; /* never reached, which clang-tidy does not know */
    }
    snprintf(puzzle, sizeof(puzzle), "%.46s", text + strlen("\"puzzle\":\""));
    puzzle_solve(puzzle, 12, solution);
    snprintf(body, size, "{\"solution\":\"%s\"}", solution);
}

/* The first answer got lost: the same solution, or another one, finds the place. */
static void a_join_with_a_key_and_work_may_be_sent_again(void **state)
{
    struct world *world = *state;
    char visitor[TL_VISITOR_MAX + 1] = "", body[TL_PUZZLE_SOLUTION_MAX + 32] = "";
    const struct tl_request join = {.method = "POST",
                                    .path = PATH,
                                    .headers = {{"Idempotency-Key", "0d53a1c2-4b9e-4f4e"},
                                                {"Content-Type", "application/json"}},
                                    .body = body};
    world->settings.challenge = TL_CHALLENGE_WORK;
    world_load(world);
    for (int turn = 0; turn < 3; turn++) {
        struct tl_request request = join;
        if (turn != 1)
            solve(world, join, body, sizeof(body));
        world_handle(world, &request);
        assert_waits(&request);
        const uint64_t batch = world_batch(world, true);
        if (turn == 0)
            world_applied(world, batch, 5);
        else
            world_excepted(world, batch, TL_OUTCOME_WAITING, tl_place_make(0, 5));
        const struct tl_ticket given = world_given(world, &request);
        if (turn > 0)
            assert_string_equal(given.visitor, visitor);
        memcpy(visitor, given.visitor, sizeof(visitor));
    }
}

/* Its form has none; what a client sends there names no visitor unless it is valid. */
static void a_page_reads_no_key_that_others_could_have(void **state)
{
    struct world *world = *state;
    struct tl_request requests[2];
    for (size_t i = 0; i < 2; i++) {
        requests[i] = (struct tl_request){
            .method = "POST", .path = "/q/concert/join", .headers = {{"Idempotency-Key", "short"}}};
        world_handle(world, &requests[i]);
        assert_waits(&requests[i]);
    }
    assert_int_equal(world_queue(world)->outbox->count, 2); /* one each */
    tl_waits_tick(world->worker, tl_clock_ms() + 60000);
    assert_answer(&requests[0], 303, "");
    assert_answer(&requests[1], 303, "");
}

static void a_key_that_others_could_have_is_refused(void **state)
{
    struct world *world = *state;
    char longest[130];
    memset(longest, 'k', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    const char *const keys[] = {"", "0d53a1c2-4b9e-4", "0d53a1c2 4b9e 4f4e", longest};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct tl_request request = {
            .method = "POST", .path = PATH, .headers = {{"Idempotency-Key", keys[i]}}};
        world_handle(world, &request);
        assert_problem(&request, 400, "bad-request");
    }
    struct tl_request longest_valid = {
        .method = "POST", .path = PATH, .headers = {{"Idempotency-Key", longest + 1}}};
    assert_int_equal(strlen(joins_as(world, &longest_valid)), 22);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_join_with_a_key_may_be_sent_again),
        TEST(a_key_opens_no_queue_that_takes_no_newcomers),
        TEST(a_join_with_a_key_and_work_may_be_sent_again),
        TEST(a_page_reads_no_key_that_others_could_have),
        TEST(a_key_that_others_could_have_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
