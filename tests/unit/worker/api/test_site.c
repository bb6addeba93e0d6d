/* Requests of gateways, anonymous clients and browsers: check, public numbers, health, the page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth/pass.h"
#include "tests/unit/worker/api/world.h"
#include "worker/api/context.h"

#define CHECK "/v1/queues/concert/check"

static struct world_ticket numbered(struct world *world, uint64_t seq)
{
    return world_ticket(world, WORLD_GENERATION, tl_place_make(0, seq));
}

/* ---- check ---- */

static void an_active_visitor_is_let_in(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = numbered(world, 1);
    struct tl_request request = world_send(world, "GET", CHECK, ticket.text);
    assert_answer(&request, 204, "");
    assert_string_equal(fake_answer_header(&request, "X-Tellerline-Visitor"), "alice");
    world->env.ingest_up = world->env.follower_up = false; /* until the deadline */
    request = world_send(world, "GET", CHECK, ticket.text);
    assert_answer(&request, 204, "");
    world->env.store_offset_ms += 600001;
    request = world_send(world, "GET", CHECK, ticket.text);
    assert_answer(&request, 401, "");
}

static void others_are_told_where_to_wait(void **state)
{
    struct world *world = *state;
    const struct world_ticket tickets[] = {numbered(world, 4), numbered(world, 99),
                                           world_ticket(world, 0, tl_place_make(0, 0)),
                                           world_ticket(world, 6, tl_place_make(0, 1))};
    for (size_t i = 0; i < sizeof(tickets) / sizeof(tickets[0]); i++) {
        struct tl_request request = world_send(world, "GET", CHECK, tickets[i].text);
        assert_answer(&request, 401, "not-admitted");
        assert_string_equal(fake_answer_header(&request, "X-Tellerline-Location"),
                            "https://wait.example/q/concert");
        assert_string_equal(fake_answer_header(&request, "WWW-Authenticate"), "Bearer");
    }
}

static void the_wanted_address_is_kept(void **state)
{
    struct world *world = *state;
    struct tl_request whole = {.method = "GET",
                               .path = CHECK,
                               .headers = {{"X-Original-URL", "https://shop.example/a b?c=1"}}};
    world_handle(world, &whole);
    assert_string_equal(
        fake_answer_header(&whole, "X-Tellerline-Location"),
        "https://wait.example/q/concert?return=https%3A%2F%2Fshop.example%2Fa%20b%3Fc%3D1");
    struct tl_request parts = {.method = "GET",
                               .path = CHECK,
                               .headers = {{"X-Forwarded-Proto", "https"},
                                           {"X-Forwarded-Host", "shop.example"},
                                           {"X-Forwarded-Uri", "/x"}}};
    world_handle(world, &parts);
    assert_string_equal(fake_answer_header(&parts, "X-Tellerline-Location"),
                        "https://wait.example/q/concert?return=https%3A%2F%2Fshop.example%2Fx");
    char longest[2000];
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    struct tl_request too_long = {
        .method = "GET", .path = CHECK, .headers = {{"X-Original-URL", longest}}};
    world_handle(world, &too_long);
    assert_string_equal(fake_answer_header(&too_long, "X-Tellerline-Location"),
                        "https://wait.example/q/concert");
}

static void a_pass_is_let_in_until_it_expires(void **state)
{
    struct world *world = *state;
    struct tl_error err = {0};
    char bearer[TL_PASS_MAX + 8] = "Bearer ";
    const struct tl_pass pass = {.visitor = "bob",
                                 .id = "concert-7-1",
                                 .issued = WORLD_STORE_MS / 1000,
                                 .expires = WORLD_STORE_MS / 1000 + 600};
    assert_true(tl_pass_sign(world->api->secrets.pass_keys, "https://wait.example", "concert",
                             &pass, bearer + 7, &err));
    struct tl_request request = world_send(world, "GET", CHECK, bearer);
    assert_answer(&request, 204, "");
    assert_string_equal(fake_answer_header(&request, "X-Tellerline-Visitor"), "bob");
    request = world_send(world, "GET", "/v1/queues/opened/check", bearer); /* another queue's */
    assert_answer(&request, 404, "");
    world->env.store_offset_ms += 640000;
    request = world_send(world, "GET", CHECK, bearer);
    assert_answer(&request, 401, "");
}

static void without_the_store_the_queues_setting_decides(void **state)
{
    struct world *world = *state;
    struct tl_request request = world_send(world, "GET", "/v1/queues/opened/check", NULL);
    assert_problem(&request, 404, "no-such-queue");
    world->env.ingest_up = false;
    request = world_send(world, "GET", CHECK, NULL);
    assert_answer(&request, 401, "");
    world->settings.on_store_error = TL_STORE_ERROR_OPEN;
    world_load(world);
    request = world_send(world, "GET", CHECK, NULL);
    assert_answer(&request, 204, "");
    assert_null(fake_answer_header(&request, "X-Tellerline-Visitor"));
    request = world_send(world, "GET", "/v1/queues/opened/check", NULL); /* by the configuration */
    assert_answer(&request, 204, "");
    request = world_send(world, "GET", "/v1/queues/unknown/check", NULL);
    assert_answer(&request, 401, "");
    world->env.ingest_up = true;
    request = world_send(world, "GET", CHECK, NULL);
    assert_answer(&request, 401, "");
    world->env.draining = true;
    request = world_send(world, "GET", "/v1/queues/unknown/check", NULL);
    assert_problem(&request, 503, "stopping");
}

/* ---- what anyone may ask ---- */

static void the_numbers_of_a_queue_are_public(void **state)
{
    struct world *world = *state;
    struct tl_request request = world_send(world, "GET", "/v1/queues/concert", NULL);
    assert_answer(&request, 200,
                  "{\"queue\":\"concert\",\"open\":true,\"waiting\":11,\"active\":1,"
                  "\"capacity\":1,\"lanes\":[\"general\",\"vip\"]}\n");
    world->settings.paused = true;
    world->settings.policy = TL_POLICY_RATE;
    world->settings.opens_at_ms = WORLD_STORE_MS + 60000;
    world_load(world);
    request = world_send(world, "GET", "/v1/queues/concert", NULL);
    assert_answer(&request, 200, "\"open\":false,\"opens_at\":\"2026-11-18T11:07:40Z\"");
    assert_non_null(strstr(request.text, "\"paused\":true"));
    assert_null(strstr(request.text, "\"capacity\""));
    request = world_send(world, "GET", "/v1/queues/none", NULL);
    assert_problem(&request, 404, "no-such-queue");
}

static void health_says_whether_the_process_can_serve(void **state)
{
    struct world *world = *state;
    struct tl_request request = world_send(world, "GET", "/readyz", NULL);
    assert_answer(&request, 200, "ok\n");
    world->env.listed = false;
    request = world_send(world, "GET", "/readyz", NULL);
    assert_problem(&request, 503, "loading");
    world->env.ingest_up = false;
    request = world_send(world, "GET", "/readyz", NULL);
    assert_problem(&request, 503, "store-unavailable");
    world->env.draining = true;
    request = world_send(world, "GET", "/readyz", NULL);
    assert_problem(&request, 503, "stopping");
    request = world_send(world, "GET", "/livez", NULL);
    assert_answer(&request, 200, "ok\n");
}

static void public_keys_and_the_description_are_served(void **state)
{
    struct world *world = *state;
    struct tl_request request = world_send(world, "GET", "/.well-known/jwks.json", NULL);
    assert_answer(&request, 200, "{\"keys\":[]}"); /* HS256 has no public half */
    assert_string_equal(request.type, "application/jwk-set+json");
    request = world_send(world, "GET", "/openapi.yaml", NULL);
    assert_answer(&request, 200, "openapi: ");
}

static void a_body_too_large_is_refused_as_the_route_answers(void **state)
{
    struct world *world = *state;
    struct tl_request json = {
        .method = "POST", .path = "/v1/queues/concert/join", .context = world->api};
    tl_api_too_large(world->api, &json);
    assert_problem(&json, 413, "too-large");
    assert_non_null(strstr(json.text, "at most 4096 bytes"));
    struct tl_request page = {.method = "POST", .path = "/q/concert/join", .context = world->api};
    tl_api_too_large(world->api, &page);
    assert_answer(&page, 413, "<html");
}

/* ---- the page ---- */

static void the_page_joins_its_visitor(void **state)
{
    struct world *world = *state;
    struct tl_request request = {.method = "GET", .path = "/q/concert"};
    world_handle(world, &request);
    assert_waits(&request);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&request, 200, "<html");
    assert_non_null(fake_answer_header(&request, "Set-Cookie"));
    const struct world_ticket ticket = numbered(world, 4);
    request = world_send(world, "GET", "/q/concert", ticket.text);
    assert_answer(&request, 200, "<html");
}

static void a_prefetch_takes_no_place(void **state)
{
    struct world *world = *state;
    static const struct fake_value headers[] = {
        {"Sec-Purpose", "prefetch;prerender"}, {"Purpose", "prefetch"}, {"X-Moz", "prefetch"}};
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        struct tl_request request = {
            .method = "GET", .path = "/q/concert", .headers = {headers[i]}};
        world_handle(world, &request);
        assert_answer(&request, 204, "");
    }
    struct tl_request request = world_send(world, "HEAD", "/q/concert", NULL);
    assert_answer(&request, 204, "");
    assert_int_equal(tl_queues_in_flight(tl_api_queues(world->api)), 0);
}

static void the_page_says_why_there_is_no_place(void **state)
{
    struct world *world = *state;
    struct tl_request request = world_send(world, "GET", "/q/none", NULL);
    assert_answer(&request, 404, "<html");
    request = world_send(world, "GET", "/q/UP%20PER", NULL);
    assert_answer(&request, 404, "<html");
    request = world_send(world, "DELETE", "/q/concert", NULL);
    assert_problem(&request, 405, "method-not-allowed");
    const struct world_ticket old = world_ticket(world, 6, tl_place_make(0, 4));
    request = world_send(world, "GET", "/q/concert", old.text);
    assert_answer(&request, 409, "<html");
    world->full = true;
    request = world_send(world, "GET", "/q/concert", NULL);
    assert_answer(&request, 503, "<html");
    assert_string_equal(fake_answer_header(&request, "Retry-After"), "2");
    world->settings.join = TL_JOIN_INVITED;
    world_load(world);
    request = world_send(world, "GET", "/q/concert", NULL);
    assert_answer(&request, 403, "<html");
}

static void a_form_leads_back_to_the_page(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = numbered(world, 99);
    struct tl_request request = {.method = "POST",
                                 .path = "/q/concert/join",
                                 .cookies = {{"tellerline_concert", ticket.text + 7}}};
    world_handle(world, &request);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&request, 303, "");
    assert_int_equal(strncmp(fake_answer_header(&request, "Location"), "/q/concert", 10), 0);
    assert_non_null(fake_answer_header(&request, "Set-Cookie"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_active_visitor_is_let_in),
        TEST(others_are_told_where_to_wait),
        TEST(the_wanted_address_is_kept),
        TEST(a_pass_is_let_in_until_it_expires),
        TEST(without_the_store_the_queues_setting_decides),
        TEST(the_numbers_of_a_queue_are_public),
        TEST(health_says_whether_the_process_can_serve),
        TEST(public_keys_and_the_description_are_served),
        TEST(a_body_too_large_is_refused_as_the_route_answers),
        TEST(the_page_joins_its_visitor),
        TEST(a_prefetch_takes_no_place),
        TEST(the_page_says_why_there_is_no_place),
        TEST(a_form_leads_back_to_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
