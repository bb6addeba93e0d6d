/* POST /v1/queues/{q}/join, and the outcomes of joins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/unit/auth/jwt_forge.h"
#include "tests/unit/worker/api/world.h"
#include "worker/report/worker_metrics.h"

#define PATH "/v1/queues/concert/join"
#define JSON                                                                                       \
    {                                                                                              \
        "Content-Type", "application/json"                                                         \
    }
#define KEY                                                                                        \
    {                                                                                              \
        "Authorization", "Bearer " WORLD_API_KEY                                                   \
    }

static void a_join_is_held_and_answered_with_its_place(void **state)
{
    struct world *world = *state;
    struct tl_request request = {.method = "POST", .path = PATH};
    world_handle(world, &request);
    assert_waits(&request);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&request, 200, "\"status\":\"waiting\"");
    assert_non_null(strstr(request.text, "\"position\":4,")); /* behind 2, 3 and 4 */
    struct tl_ticket ticket = world_given(world, &request);
    assert_int_equal(ticket.place, tl_place_make(0, 5));
    assert_int_equal(ticket.generation, WORLD_GENERATION);
    assert_int_equal(strlen(ticket.visitor), 22); /* random */
    assert_int_equal(ticket.issued, WORLD_STORE_MS / 1000);
    const char *cookie = fake_answer_header(&request, "Set-Cookie");
    assert_non_null(cookie);
    assert_int_equal(strncmp(cookie, "tellerline_concert=", 19), 0);
    assert_non_null(strstr(cookie, "; HttpOnly; SameSite=Lax; Secure"));
    assert_int_equal(tl_metrics_get(world->env.metrics, TL_WORKER_JOINS), 1);
}

static void a_trusted_caller_says_who_joins_and_where(void **state)
{
    struct world *world = *state;
    struct tl_request request = {.method = "POST",
                                 .path = PATH,
                                 .headers = {KEY, JSON},
                                 .body = "{\"visitor\":\"bob\",\"lane\":\"vip\"}"};
    world_handle(world, &request);
    world_applied(world, world_batch(world, true), 2);
    assert_answer(&request, 200, "\"visitor\":\"bob\"");
    assert_int_equal(world_given(world, &request).place, tl_place_make(1, 2));
}

static void a_body_that_is_not_valid_is_refused(void **state)
{
    struct world *world = *state;
    static const struct {
        struct fake_value headers[2];
        const char *body, *type;
        unsigned status;
    } cases[] = {
        {{JSON}, "{\"visitor\":\"bob\"}", "not-trusted", 403},
        {{JSON}, "{\"lane\":\"vip\"}", "not-trusted", 403},
        {{JSON, {"Authorization", "Bearer k9999999999999999999999999999999999999999"}},
         "{\"visitor\":\"bob\"}",
         "not-trusted",
         403},
        {{JSON, KEY}, "{\"lane\":\"none\"}", "bad-body", 400},
        {{JSON}, "{", "bad-body", 400},
        {{{"Content-Type", "text/plain"}}, "{}", "not-json", 415},
        {{{"Content-Type", "application/jsonx"}}, "{}", "not-json", 415},
        {{{NULL, NULL}}, "{}", "not-json", 415},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_request request = {.method = "POST", .path = PATH, .body = cases[i].body};
        char type[64];
        memcpy(request.headers, cases[i].headers, sizeof(cases[i].headers));
        world_handle(world, &request);
        snprintf(type, sizeof(type), "\"/problems/%s\"", cases[i].type);
        assert_answer(&request, cases[i].status, type);
    }
}

static void a_content_type_may_have_parameters(void **state)
{
    struct world *world = *state;
    struct tl_request request = {.method = "POST",
                                 .path = PATH,
                                 .headers = {{"Content-Type", "Application/JSON; charset=utf-8"}},
                                 .body = "{}"};
    world_handle(world, &request);
    assert_waits(&request);
    world_applied(world, world_batch(world, true), 5);
}

static void who_holds_a_place_gets_it_again(void **state)
{
    struct world *world = *state;
    struct world_ticket ticket = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 3));
    struct tl_request request = world_send(world, "POST", PATH, ticket.text);
    assert_answer(&request, 200, "\"position\":2,");
    assert_int_equal(world_given(world, &request).place, tl_place_make(0, 3));
    ticket = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 1));
    request = world_send(world, "POST", PATH, ticket.text);
    assert_answer(&request, 200, "\"status\":\"active\"");
    assert_non_null(strstr(request.text, "\"pass\":\""));
}

static void a_place_that_is_over_leads_to_a_new_one_in_its_lane(void **state)
{
    struct world *world = *state;
    static const struct {
        uint64_t generation;
        tl_place lane, seq;
    } cases[] = {{WORLD_GENERATION, 1, 99}, {WORLD_GENERATION - 1, 1, 2}, {0, 1, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tl_place place = tl_place_make((unsigned)cases[i].lane, cases[i].seq);
        struct world_ticket ticket = world_ticket(world, cases[i].generation, place);
        struct tl_request request = {
            .method = "POST", .path = PATH, .headers = {{"Authorization", ticket.text}}};
        world_handle(world, &request);
        assert_waits(&request);
        world_applied(world, world_batch(world, true), 3);
        assert_answer(&request, 200, "\"visitor\":\"alice\"");
        assert_int_equal(world_given(world, &request).place, tl_place_make(1, 3));
    }
}

static void a_lane_that_is_gone_becomes_the_default_lane(void **state)
{
    struct world *world = *state;
    struct world_ticket ticket = world_ticket(world, 0, tl_place_make(5, 0));
    struct tl_request request = {
        .method = "POST", .path = PATH, .headers = {{"Authorization", ticket.text}}};
    world_handle(world, &request);
    tl_place place = tl_place_make(world->settings.default_lane, 3);
    world_applied(world, world_batch(world, true), 3);
    assert_int_equal(world_given(world, &request).place, place);
}

static void a_queue_by_invitation_is_closed_to_others(void **state)
{
    struct world *world = *state;
    world->settings.join = TL_JOIN_INVITED;
    world_load(world);
    struct tl_request request = world_send(world, "POST", PATH, NULL);
    assert_problem(&request, 403, "by-invitation");
    struct world_ticket over = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 99));
    request = world_send(world, "POST", PATH, over.text);
    assert_problem(&request, 403, "by-invitation");

    struct world_ticket pending = world_ticket(world, 0, tl_place_make(0, 0));
    struct tl_request again = {
        .method = "POST", .path = PATH, .headers = {{"Authorization", pending.text}}};
    world_handle(world, &again);
    assert_waits(&again);
    world_applied(world, world_batch(world, true), 4);
    assert_answer(&again, 200, "\"position\":3,");

    struct tl_request trusted = {.method = "POST", .path = PATH, .headers = {KEY}};
    world_handle(world, &trusted);
    assert_waits(&trusted);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&trusted, 200, "");
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
    assert_problem(&second, 403, "invite-spent");
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

static unsigned join_from(struct world *world, const char *peer, const char *forwarded)
{
    struct tl_request request = {
        .method = "POST",
        .path = PATH,
        .peer = peer,
        .headers = {{forwarded != NULL ? "X-Forwarded-For" : NULL, forwarded}}};
    world_handle(world, &request);
    if (request.held) {
        world_applied(world, world_batch(world, true), 5);
    } else {
        assert_problem(&request, 429, "too-many-joins");
        assert_string_equal(fake_answer_header(&request, "Retry-After"), "30");
    }
    return request.status;
}

static void an_address_may_join_so_often_a_minute(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(join_from(world, "192.0.2.1", NULL), 200);
    if (join_from(world, "192.0.2.1", NULL) == 200) /* a new minute began */
        return;
    assert_int_equal(join_from(world, "192.0.2.1", "192.0.2.77"), 429); /* is no proxy */
    assert_int_equal(join_from(world, "192.0.2.2", NULL), 200);
    assert_int_equal(join_from(world, "10.1.1.1", "192.0.2.1, 10.2.2.2"), 429);
    assert_int_equal(join_from(world, "10.1.1.1", "192.0.2.1, 192.0.2.3"), 200);
    struct tl_request trusted = {
        .method = "POST", .path = PATH, .peer = "192.0.2.1", .headers = {KEY}};
    world_handle(world, &trusted);
    assert_waits(&trusted);
    world_applied(world, world_batch(world, true), 5);
}

static void a_join_that_cannot_be_sent_is_refused(void **state)
{
    struct world *world = *state;
    world->env.ingest_up = false;
    struct tl_request request = world_send(world, "POST", PATH, NULL);
    assert_problem(&request, 503, "store-unavailable");
    world->env.ingest_up = true;
    world->full = true;
    request = world_send(world, "POST", PATH, NULL);
    assert_problem(&request, 503, "busy");
    world->env.draining = true;
    request = world_send(world, "POST", PATH, NULL);
    assert_problem(&request, 503, "stopping");
    assert_int_equal(tl_metrics_get(world->env.metrics, TL_WORKER_JOINS_REFUSED), 3);
    request = world_send(world, "POST", "/v1/queues/none/join", NULL);
    assert_problem(&request, 503, "stopping");
    world->env.draining = false;
    request = world_send(world, "POST", "/v1/queues/none/join", NULL);
    assert_problem(&request, 404, "no-such-queue");
    world->env.listed = false;
    request = world_send(world, "POST", "/v1/queues/none/join", NULL);
    assert_problem(&request, 503, "loading");
}

/* ---- outcomes ---- */

static void a_join_the_store_refuses_is_refused(void **state)
{
    struct world *world = *state;
    struct tl_request request = {.method = "POST", .path = PATH};
    world_handle(world, &request);
    (void)world_batch(world, false);
    assert_problem(&request, 503, "store-unavailable");
}

static void a_join_with_an_outcome_unknown_is_pending(void **state)
{
    struct world *world = *state;
    struct tl_request request = {.method = "POST", .path = PATH};
    world_handle(world, &request);
    uint64_t batch = world_batch(world, true);
    world_applied(world, batch + 1, 5); /* the event of its own batch was missed */
    assert_answer(&request, 202, "\"status\":\"pending\"");
    struct tl_ticket ticket = world_given(world, &request);
    assert_int_equal(ticket.place, tl_place_make(world->settings.default_lane, 0));
    assert_int_equal(ticket.generation, 0);
    assert_non_null(fake_answer_header(&request, "Set-Cookie"));
}

static void a_join_that_takes_too_long_is_pending_if_the_store_has_it(void **state)
{
    struct world *world = *state;
    int64_t late_ms = tl_clock_ms() + world->config->http.join_wait_ms + 1000;
    struct tl_request sent = {.method = "POST", .path = PATH};
    world_handle(world, &sent);
    (void)world_batch(world, true);
    struct tl_request gathered = {.method = "POST", .path = PATH};
    world_handle(world, &gathered);
    tl_holds_tick(tl_api_holds(world->api), tl_clock_ms());
    assert_waits(&sent);
    assert_waits(&gathered);
    tl_holds_tick(tl_api_holds(world->api), late_ms);
    assert_answer(&sent, 202, "\"status\":\"pending\"");
    assert_problem(&gathered, 503, "store-unavailable");
}

static void a_join_about_to_be_admitted_waits_a_moment(void **state)
{
    struct world *world = *state;
    struct tl_subscribers *subscribers = tl_local_queue_subscribers(world_queue(world));
    world->settings.capacity = 10;
    world_load(world);
    struct tl_request request = {.method = "POST", .path = PATH};
    world_handle(world, &request);
    world_applied(world, world_batch(world, true), 2);
    assert_waits(&request);
    assert_true(request.held);
    tl_subscribers_sweep(subscribers, tl_clock_ms());
    assert_waits(&request);
    tl_subscribers_sweep(subscribers, tl_clock_ms() + 1000); /* no admitter runs */
    assert_answer(&request, 200, "\"position\":1,");
    assert_int_equal(world_given(world, &request).place, tl_place_make(0, 2));
}

static void joins_of_a_deleted_queue_are_told_so(void **state)
{
    struct world *world = *state;
    struct tl_request request = {.method = "POST", .path = PATH};
    world_handle(world, &request);
    world->follower.gone(world->follower.context, "concert");
    assert_problem(&request, 404, "no-such-queue");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_join_is_held_and_answered_with_its_place),
        TEST(a_trusted_caller_says_who_joins_and_where),
        TEST(a_body_that_is_not_valid_is_refused),
        TEST(a_content_type_may_have_parameters),
        TEST(who_holds_a_place_gets_it_again),
        TEST(a_place_that_is_over_leads_to_a_new_one_in_its_lane),
        TEST(a_lane_that_is_gone_becomes_the_default_lane),
        TEST(a_queue_by_invitation_is_closed_to_others),
        TEST(an_invite_opens_the_queue_once),
        TEST(an_invite_that_is_not_valid_is_refused),
        TEST(an_address_may_join_so_often_a_minute),
        TEST(a_join_that_cannot_be_sent_is_refused),
        TEST(a_join_the_store_refuses_is_refused),
        TEST(a_join_with_an_outcome_unknown_is_pending),
        TEST(a_join_that_takes_too_long_is_pending_if_the_store_has_it),
        TEST(a_join_about_to_be_admitted_waits_a_moment),
        TEST(joins_of_a_deleted_queue_are_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
