/* SPDX-License-Identifier: Apache-2.0 */
/* Joins with an invite, and the pending tickets that they give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth/invite.h"
#include "common/base/clock.h"
#include "tests/unit/auth/jwt_forge.h"
#include "tests/unit/worker/api/world.h"

#define PATH "/v1/queues/concert/join"
#define JSON                                                                                       \
    {                                                                                              \
        "Content-Type", "application/json"                                                         \
    }

static struct tl_request invited(char *body, size_t size, const char *claims)
{
    char text[FORGE_TEXT];
    forge("{\"alg\":\"HS256\",\"kid\":\"shop\"}", claims, text);
    snprintf(body, size, "{\"invite\":\"%s\"}", text);
    return (struct tl_request){.method = "POST", .path = PATH, .headers = {JSON}, .body = body};
}

#define CLAIMS                                                                                     \
    "{\"aud\":\"concert\",\"sub\":\"user-7\",\"jti\":\"a1\",\"exp\":1795000600,\"lane\":\"vip\"}"

static void an_invite_opens_the_queue_once(void **state)
{
    struct world *world = *state;
    char body[FORGE_TEXT + 32];
    world->settings.join = TL_JOIN_INVITED;
    world_load(world);
    struct tl_request first = invited(body, sizeof(body), CLAIMS);
    world_handle(world, &first);
    world_applied(world, world_batch(world, true), 2);
    assert_answer(&first, 200, "\"visitor\":\"user-7\"");
    assert_int_equal(world_given(world, &first).place, tl_place_make(1, 2));

    struct tl_request second = invited(body, sizeof(body), CLAIMS);
    world_handle(world, &second);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_SPENT, 0);
    assert_problem(&second, 403, "invite-used");
}

static void an_invite_that_is_not_valid_is_refused(void **state)
{
    struct world *world = *state;
    static const char *const claims[] = {
        "{\"aud\":\"other\",\"sub\":\"user-7\",\"jti\":\"a1\",\"exp\":1795000600}",
        "{\"aud\":\"concert\",\"sub\":\"user-7\",\"jti\":\"a1\",\"exp\":1794000000}",
    };
    char body[FORGE_TEXT + 32];
    for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
        struct tl_request request = invited(body, sizeof(body), claims[i]);
        world_handle(world, &request);
        assert_problem(&request, 403, "bad-invite");
        assert_non_null(strstr(request.text, "\"detail\":\""));
    }
    struct tl_request request = invited(
        body, sizeof(body),
        "{\"aud\":\"concert\",\"sub\":\"u\",\"jti\":\"a\",\"exp\":1795000600,\"lane\":\"no\"}");
    world_handle(world, &request);
    assert_problem(&request, 400, "bad-body");
}

/* A pending ticket keeps what opened its join and when, however often it is given. */
static void a_pending_ticket_is_bound_to_its_invite_and_time(void **state)
{
    struct world *world = *state;
    char body[FORGE_TEXT];
    struct tl_request request = invited(body, sizeof(body), CLAIMS);
    world_handle(world, &request);
    tl_waits_tick(world->worker, tl_clock_ms() + world->config->http.join_wait_ms + 1000);
    assert_answer(&request, 202, "\"status\":\"pending\"");
    const struct tl_ticket given = world_given(world, &request);
    assert_int_equal(given.invite, tl_invite_digest("a1"));
    assert_int_equal(given.place, tl_place_make(1, 0));
    world->env.store_offset_ms += 60000;
    struct world_ticket ticket = world_signed(world, &given);
    struct tl_request again = {.method = "GET",
                               .path = "/v1/queues/concert/status",
                               .headers = {{"Authorization", ticket.text}}};
    world_handle(world, &again);
    world_lose(world);
    assert_answer(&again, 202, "\"status\":\"pending\"");
    const struct tl_ticket second = world_given(world, &again);
    assert_int_equal(second.issued, given.issued);
    assert_int_equal(second.invite, given.invite);

    struct tl_request spent = {.method = "GET",
                               .path = "/v1/queues/concert/status",
                               .headers = {{"Authorization", ticket.text}}};
    world_handle(world, &spent);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_SPENT, 0);
    assert_waits(&spent); /* has its place ended, or was the invite spent before? */
    tl_waits_found(world->worker, world->number, TL_LOOKUP_NOWHERE, 0);
    assert_problem(&spent, 401, "bad-ticket");
    spent.answers = 0;
    world_handle(world, &spent);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_SPENT, 0);
    tl_waits_found(world->worker, world->number, TL_LOOKUP_FAILED, 0);
    assert_problem(&spent, 503, "store-unavailable");
}

/* This request with a pending ticket, whose place has ended for this reason. */
static void past_the_end(struct world *world, struct tl_request *request, enum tl_reason reason)
{
    world_handle(world, request);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_SPENT, 0);
    assert_waits(request);
    tl_waits_found(world->worker, world->number, TL_LOOKUP_ENDED, reason);
}

static void a_pending_ticket_outlives_its_place(void **state)
{
    struct world *world = *state;
    const struct tl_ticket pending = {.visitor = "alice", .issued = WORLD_STORE_MS / 1000};
    const struct world_ticket ticket = world_signed(world, &pending);
    struct tl_request status = {.method = "GET",
                                .path = "/v1/queues/concert/status",
                                .headers = {{"Authorization", ticket.text}}};
    past_the_end(world, &status, TL_REASON_LEFT);
    assert_answer(&status, 200, "\"status\":\"left\"");
    assert_null(strstr(status.text, "poll_after_ms"));
    struct tl_request join = {.method = "POST",
                              .path = "/v1/queues/concert/join",
                              .headers = {{"Authorization", ticket.text}}};
    past_the_end(world, &join, TL_REASON_REMOVED);
    assert_problem(&join, 403, "removed");
    join.answers = 0;
    past_the_end(world, &join, TL_REASON_COMPLETED);
    assert_waits(&join);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&join, 200, "\"status\":\"waiting\"");
    assert_string_equal(world_given(world, &join).visitor, "alice");
    world->settings.join = TL_JOIN_INVITED;
    world_load(world);
    const struct tl_ticket invited_once = {
        .visitor = "alice", .issued = WORLD_STORE_MS / 1000, .invite = tl_invite_digest("a1")};
    const struct world_ticket spent = world_signed(world, &invited_once);
    join.headers[0].value = spent.text;
    join.answers = 0;
    past_the_end(world, &join, TL_REASON_COMPLETED);
    assert_problem(&join, 403, "by-invitation");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_invite_opens_the_queue_once),
        TEST(an_invite_that_is_not_valid_is_refused),
        TEST(a_pending_ticket_is_bound_to_its_invite_and_time),
        TEST(a_pending_ticket_outlives_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
