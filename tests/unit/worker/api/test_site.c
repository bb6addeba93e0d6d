/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of gateways, anonymous clients and browsers: check, public numbers, health, the page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth/pass.h"
#include "common/base/clock.h"
#include "tests/unit/worker/api/world.h"
#include "worker/visit/visit.h"

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

struct bearer {
    char text[TL_PASS_MAX + 8];
};

/* A pass of bob for a place of lane 0. */
static struct bearer pass_of(struct world *world, uint64_t generation, uint64_t seq, uint64_t event)
{
    struct tl_error err = {0};
    struct bearer bearer = {.text = "Bearer "};
    const struct tl_pass pass = {.visitor = "bob",
                                 .id = "concert-7-1",
                                 .issued = WORLD_STORE_MS / 1000,
                                 .expires = WORLD_STORE_MS / 1000 + 600,
                                 .generation = generation,
                                 .place = tl_place_make(0, seq),
                                 .event = event};
    assert_true(tl_pass_sign(world->worker->secrets.pass_keys, "https://wait.example", "concert",
                             &pass, bearer.text + 7, &err));
    return bearer;
}

static void a_pass_is_let_in_while_its_session_is_active(void **state)
{
    struct world *world = *state;
    static const struct {
        uint64_t generation, seq, event;
        unsigned status;
    } cases[] = {
        {WORLD_GENERATION, 1, 100, 204},  {WORLD_GENERATION, 1, 90, 204},
        {WORLD_GENERATION, 1, 101, 204},  /* active here, too */
        {WORLD_GENERATION, 77, 100, 401}, /* its session is over */
        {WORLD_GENERATION, 2, 100, 401},  {WORLD_GENERATION - 1, 1, 100, 401},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct bearer bearer =
            pass_of(world, cases[i].generation, cases[i].seq, cases[i].event);
        struct tl_request request = world_send(world, "GET", CHECK, bearer.text);
        assert_answer(&request, cases[i].status, "");
        if (cases[i].status == 204)
            assert_string_equal(fake_answer_header(&request, "X-Tellerline-Visitor"), "bob");
    }
    const struct bearer active = pass_of(world, WORLD_GENERATION, 1, 100);
    world->env.listed = false;
    struct tl_request request = world_send(world, "GET", "/v1/queues/opened/check", active.text);
    assert_answer(&request, 204, ""); /* by on_store_error alone: it is another queue's pass */
    world->env.listed = true;
    assert_null(fake_answer_header(&request, "X-Tellerline-Visitor"));
    world->env.store_offset_ms += 640000;
    request = world_send(world, "GET", CHECK, active.text);
    assert_answer(&request, 401, "");
}

static void a_worker_that_is_behind_a_pass_waits_for_its_event(void **state)
{
    struct world *world = *state;
    const struct bearer bearer = pass_of(world, WORLD_GENERATION, 2, 101);
    struct tl_request early = {
        .method = "GET", .path = CHECK, .headers = {{"Authorization", bearer.text}}};
    world_handle(world, &early);
    assert_waits(&early);
    world_admit(world, 2); /* event 101 */
    tl_waits_tick(world->worker, tl_clock_ms());
    assert_answer(&early, 204, "");
    assert_string_equal(fake_answer_header(&early, "X-Tellerline-Visitor"), "bob");

    const struct bearer next = pass_of(world, WORLD_GENERATION, 3, 102);
    struct tl_request late = {
        .method = "GET", .path = CHECK, .headers = {{"Authorization", next.text}}};
    world_handle(world, &late);
    assert_waits(&late);
    tl_waits_tick(world->worker, tl_clock_ms() + 251);
    assert_answer(&late, 401, "not-admitted");
}

/* No line, a queue that recovers, or no store: on_store_error (closed) has no say. */
static void a_pass_counts_while_nobody_can_know(void **state)
{
    struct world *world = *state;
    const struct bearer over = pass_of(world, WORLD_GENERATION, 77, 100);
    const struct bearer newer = pass_of(world, WORLD_GENERATION, 2, 101);
    struct tl_request request;
    tl_queue_set_recovery(
        world_queue(world),
        &(struct tl_recovery){.present = WORLD_GENERATION, .until_ms = WORLD_STORE_MS + 60000});
    request = world_send(world, "GET", CHECK, over.text);
    assert_answer(&request, 204, "");
    tl_queue_set_recovery(world_queue(world), &(struct tl_recovery){.present = WORLD_GENERATION});
    world->settings.on_store_error = TL_STORE_ERROR_OPEN;
    world_load(world);
    world->env.ingest_up = world->env.follower_up = false;
    request = world_send(world, "GET", CHECK, newer.text);
    assert_answer(&request, 204, "");
    assert_non_null(fake_answer_header(&request, "X-Tellerline-Visitor"));
    request = world_send(world, "GET", CHECK, over.text); /* known to be over */
    assert_answer(&request, 401, "");
    world_take(world, (struct tl_change){.kind = TL_CHANGE_GONE});
    request = world_send(world, "GET", CHECK, over.text);
    assert_answer(&request, 204, "");
    assert_string_equal(fake_answer_header(&request, "X-Tellerline-Visitor"), "bob");
}

static void without_the_store_the_queues_setting_decides(void **state)
{
    struct world *world = *state;
    struct tl_request request = world_send(world, "GET", "/v1/queues/unknown/check", NULL);
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
                  "{\"queue\":\"concert\",\"open\":true,\"mode\":\"open\","
                  "\"phase\":\"open\",\"joins\":true,\"waiting\":11,\"active\":1,"
                  "\"capacity\":1,\"lanes\":[\"general\",\"vip\"]}\n");
    world->settings.mode = TL_MODE_PAUSED;
    world->settings.policy = TL_POLICY_RATE;
    world->settings.rate.admit = 1400;
    world->settings.rate.every_ms = 10000;
    world->settings.opens_at_ms = WORLD_STORE_MS + 60000;
    world_load(world);
    request = world_send(world, "GET", "/v1/queues/concert", NULL);
    assert_answer(&request, 200, "\"open\":false,\"opens_at\":\"2026-11-18T11:07:40Z\"");
    assert_non_null(strstr(request.text, "\"paused\":true"));
    assert_null(strstr(request.text, "\"capacity\""));
    assert_non_null(strstr(request.text, "\"rate_admit\":1400,\"rate_every_ms\":10000,"));
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
    assert_answer(&request, 200, "{\"keys\":[{\"kty\":\"EC\",");
    assert_string_equal(request.type, "application/jwk-set+json");
    request = world_send(world, "GET", "/openapi.yaml", NULL);
    assert_answer(&request, 200, "openapi: ");
}

static void a_body_too_large_is_refused_as_the_route_answers(void **state)
{
    struct world *world = *state;
    struct tl_refusal refusal;
    (void)tl_refuse(&refusal, TL_REFUSAL_TOO_LARGE, "A body may have at most %d bytes", 16384);
    struct tl_request json = {
        .method = "POST", .path = "/v1/queues/concert/join", .context = world->worker};
    tl_worker_handle(world->worker, &json, &refusal);
    assert_problem(&json, 413, "too-large");
    assert_non_null(strstr(json.text, "at most 16384 bytes"));
    struct tl_request page = {
        .method = "POST", .path = "/q/concert/join", .context = world->worker};
    tl_worker_handle(world->worker, &page, &refusal);
    assert_answer(&page, 413, "<html");
    /* It is of now, as its limits are. */
    const char *now = strstr(page.text, " data-now=\"");
    assert_non_null(now);
    assert_in_range(strtoll(now + strlen(" data-now=\""), NULL, 10), WORLD_STORE_MS,
                    WORLD_STORE_MS + 600000);
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
    assert_int_equal(tl_queues_in_flight(&world->worker->queues), 0);
}

static void what_no_person_opened_takes_no_place(void **state)
{
    struct world *world = *state;
    static const struct fake_value headers[] = {
        {"Sec-Fetch-Dest", "image"},
        {"Sec-Fetch-Dest", "iframe"},
        {"Sec-Fetch-Dest", "empty"},
        {"Sec-Fetch-Mode", "no-cors"},
        {"User-Agent", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"},
        {"User-Agent", "facebookexternalhit/1.1; kakaotalk-scrap/1.0"},
    };
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        struct tl_request request = {
            .method = "GET", .path = "/q/concert", .headers = {headers[i]}};
        request.queries[0] = (struct fake_value){"invite", "i.n.v"};
        world_handle(world, &request);
        assert_answer(&request, 200, "data-state=\"outside\" data-visitor");
        assert_non_null(strstr(request.text, "action=\"/q/concert/join?invite=i.n.v\""));
        assert_null(fake_answer_header(&request, "Set-Cookie"));
    }
    assert_int_equal(tl_queues_in_flight(&world->worker->queues), 0);
    struct tl_request person = {
        .method = "GET",
        .path = "/q/concert",
        .cookies = {{"tellerline_COOKIES", "1"}},
        .headers = {{"Sec-Fetch-Dest", "document"},
                    {"Sec-Fetch-Mode", "navigate"},
                    {"Sec-Fetch-Site", "cross-site"},
                    {"User-Agent", "Mozilla/5.0 (Linux; Android 10; CUBOT X30) Chrome/130"}}};
    world_handle(world, &person);
    assert_waits(&person);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&person, 200, "data-state=\"waiting\" data-visitor");
}

static void a_secret_leaves_the_address_once_the_cookie_works(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = numbered(world, 4);
    struct tl_request request = {
        .method = "GET",
        .path = "/q/concert",
        .cookies = {{"tellerline_concert", ticket.text + 7}},
        .queries = {{"ticket", ticket.text + 7}, {"from", "12"}, {"lang", "ko"}}};
    world_handle(world, &request);
    assert_answer(&request, 303, "");
    assert_string_equal(fake_answer_header(&request, "Location"), "/q/concert?lang=ko&from=12");
    request.queries[0] = (struct fake_value){"invite", "i.n.v"};
    request.answers = 0;
    world_handle(world, &request);
    assert_answer(&request, 303, "");
    request.cookies[0].value = "no ticket"; /* the browser sends cookies, but none is of use */
    request.queries[0] = (struct fake_value){"ticket", ticket.text + 7};
    request.answers = 0;
    world_handle(world, &request);
    assert_answer(&request, 200, "data-state=\"waiting\" data-visitor");
}

/* The page of a waiting visitor, asked for with this return address and more of the query. */
static struct tl_request page_with(struct world *world, const char *address, struct fake_value more)
{
    const struct world_ticket ticket = numbered(world, 4);
    struct tl_request request = {.method = "GET",
                                 .path = "/q/concert",
                                 .headers = {{"Authorization", ticket.text}},
                                 .queries = {{"lang", "en"}, {"return", address}, more}};
    world_handle(world, &request);
    return request;
}

static void return_addresses_are_taken_as_they_are_meant(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *address;
        struct fake_value more;
        const char *taken; /* NULL: refused */
    } cases[] = {
        {"https://shop.example/a?b=1", {"lang", "ko"}, "https://shop.example/a?b=1"},
        {"https://shop.example/a?b=1", {"c", "2 +"}, "https://shop.example/a?b=1&amp;c=2%20%2B"},
        {"https://shop.example/a?b=1", {"c", NULL}, "https://shop.example/a?b=1&amp;c"},
        {"https://shop.example/a", {"c", "2"}, "https://shop.example/a"}, /* the sender's own */
        {"https://shop.example/\xed\x95\x9c", {NULL, NULL}, "https://shop.example/%ED%95%9C"},
        {"https://evil.example/", {NULL, NULL}, NULL},
        {"https://shop.example\\@evil.example/", {NULL, NULL}, NULL},
        {"https://shop.example/?", {"c", "\n"}, NULL},
        {"", {NULL, NULL}, NULL},
    };
    snprintf(world->settings.target_url, sizeof(world->settings.target_url), "%s",
             "https://shop.example/");
    world_load(world);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char data[256];
        const struct tl_request page = page_with(world, cases[i].address, cases[i].more);
        const char *said = fake_answer_header(&page, "X-Tellerline-Return");
        snprintf(data, sizeof(data), " data-return=\"%s\"",
                 cases[i].taken != NULL ? cases[i].taken : "");
        assert_answer(&page, 200, data);
        assert_true((said == NULL) == (cases[i].taken != NULL));
    }
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
    world->env.full = true;
    request = world_send(world, "GET", "/q/concert", NULL);
    assert_answer(&request, 503, "<html");
    assert_non_null(fake_answer_header(&request, "Retry-After"));
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
        TEST(a_pass_is_let_in_while_its_session_is_active),
        TEST(a_worker_that_is_behind_a_pass_waits_for_its_event),
        TEST(a_pass_counts_while_nobody_can_know),
        TEST(without_the_store_the_queues_setting_decides),
        TEST(the_numbers_of_a_queue_are_public),
        TEST(health_says_whether_the_process_can_serve),
        TEST(public_keys_and_the_description_are_served),
        TEST(a_body_too_large_is_refused_as_the_route_answers),
        TEST(the_page_joins_its_visitor),
        TEST(a_prefetch_takes_no_place),
        TEST(what_no_person_opened_takes_no_place),
        TEST(a_secret_leaves_the_address_once_the_cookie_works),
        TEST(return_addresses_are_taken_as_they_are_meant),
        TEST(the_page_says_why_there_is_no_place),
        TEST(a_form_leads_back_to_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
