/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/queues/{q}/join with an Idempotency-Key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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

/* The line may have filled up since, with this visitor in it: the store knows. */
static void a_join_with_a_key_asks_the_store_when_the_line_is_full(void **state)
{
    struct world *world = *state;
    world->settings.max_waiting = 11;
    world_load(world);
    const struct tl_request join = {
        .method = "POST", .path = PATH, .headers = {{"Idempotency-Key", "0d53a1c2-4b9e-4f4e"}}};
    struct tl_request held = join, refused = join;
    world_handle(world, &held);
    assert_waits(&held);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_WAITING, tl_place_make(0, 5));
    assert_answer(&held, 200, "\"position\":4,");
    world_handle(world, &refused);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_FULL, 0);
    assert_problem(&refused, 503, "full");
    struct world_ticket ticket = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 99));
    struct tl_request over = join; /* a ticket says who joins */
    over.headers[1] = (struct fake_value){"Authorization", ticket.text};
    world_handle(world, &over);
    assert_problem(&over, 503, "full");
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
        TEST(a_join_with_a_key_asks_the_store_when_the_line_is_full),
        TEST(a_key_that_others_could_have_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
