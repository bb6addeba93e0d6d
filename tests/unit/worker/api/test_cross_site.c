/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that pages of other web sites send; and the cookies, which such pages must not use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/unit/worker/api/world.h"
#include "worker/visit/browser.h"
#include "worker/visit/subscribers.h"
#include "worker/visit/visit.h"

#define JOIN "/v1/queues/concert/join"

struct sender {
    const char *origin, *site, *host, *peer;
    const char *proto, *forwarded_host;
};

static struct tl_request request_of(const struct sender *sender)
{
    struct tl_request request = {.method = "POST", .path = JOIN, .peer = sender->peer};
    const struct fake_value headers[] = {
        {"Origin", sender->origin},
        {"Sec-Fetch-Site", sender->site},
        {"Host", sender->host},
        {"X-Forwarded-Proto", sender->proto},
        {"X-Forwarded-Host", sender->forwarded_host},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        if (headers[i].value != NULL)
            request.headers[n++] = headers[i];
    }
    return request;
}

static bool allowed(const struct world *world, const struct sender *sender)
{
    struct tl_refusal refusal = {0};
    struct tl_request request = request_of(sender);
    bool result = tl_cross_site_allows(world->worker, &request, &refusal);
    if (!result)
        assert_int_equal(refusal.kind, TL_REFUSAL_FOREIGN_ORIGIN);
    return result;
}

static void own_and_allowed_pages_may_post(void **state)
{
    static const struct sender senders[] = {
        {0}, /* a program */
        {.origin = "https://wait.example", .site = "same-origin"},
        {.origin = "https://wait.example"},
        {.origin = "null", .site = "same-origin"}, /* a page without referrers */
        {.origin = "https://shop.example", .site = "cross-site"},
        {.origin = "http://127.0.0.1:3000"},
        {.origin = "http://10.1.1.1:8080", .host = "10.1.1.1:8080"},
        {.origin = "https://other.example", .host = "other.example"}, /* a proxy has ended TLS */
        {.origin = "https://other.example",
         .host = "worker:8080",
         .peer = "10.0.0.1",
         .proto = "https",
         .forwarded_host = "other.example"},
    };
    for (size_t i = 0; i < sizeof(senders) / sizeof(senders[0]); i++) {
        if (!allowed(*state, &senders[i]))
            fail_msg("refused: number %zu, %s", i, senders[i].origin);
    }
}

static void other_pages_may_not_post(void **state)
{
    static const struct sender senders[] = {
        {.origin = "https://evil.example"},
        {.origin = "https://evil.example", .site = "cross-site", .host = "wait.example"},
        {.origin = "https://a.wait.example", .site = "same-site"},
        {.origin = "http://wait.example"},
        {.origin = "https://shop.example:8443"},
        {.origin = "https://shop.example.evil.example"},
        {.origin = "null"},
        {.origin = "null", .site = "cross-site"},
        {.site = "cross-site"},
        {.origin = "https://evil.example", .host = "evil.example:8080"},
        /* no trusted proxy says this */
        {.origin = "https://evil.example", .host = "a", .forwarded_host = "evil.example"},
        {.origin = "https://evil.example",
         .host = "a",
         .peer = "192.0.2.1",
         .forwarded_host = "evil.example"},
        /* a trusted proxy says by which scheme it was */
        {.origin = "http://a.example", .host = "a.example", .peer = "10.0.0.1", .proto = "https"},
    };
    for (size_t i = 0; i < sizeof(senders) / sizeof(senders[0]); i++) {
        if (allowed(*state, &senders[i]))
            fail_msg("let through: number %zu, %s", i, senders[i].origin);
    }
}

static void a_foreign_post_changes_nothing(void **state)
{
    struct world *world = *state;
    struct tl_request request = request_of(&(struct sender){.origin = "https://evil.example"});
    world_handle(world, &request);
    assert_problem(&request, 403, "cross-origin");
    assert_true(request.by_origin);
    assert_null(request.shared_origin);
    struct tl_request form = request_of(&(struct sender){.origin = "https://evil.example"});
    form.path = "/q/concert/join";
    world_handle(world, &form);
    assert_answer(&form, 403, "data-state=\"outside\" data-visitor");
    assert_int_equal(tl_queues_in_flight(&world->worker->queues), 0);
}

static void allowed_pages_may_read_the_answers_of_the_api(void **state)
{
    struct world *world = *state;
    struct tl_request request = request_of(&(struct sender){.origin = "https://shop.example"});
    world_handle(world, &request);
    assert_string_equal(request.shared_origin, "https://shop.example");
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&request, 200, "\"ticket\"");
    struct tl_request get = request_of(&(struct sender){.origin = "https://shop.example"});
    get.method = "GET";
    get.path = "/q/concert";
    world_handle(world, &get); /* a page: nothing for scripts */
    assert_null(get.shared_origin);
}

static void a_browser_may_ask_first(void **state)
{
    struct world *world = *state;
    struct tl_request request = {
        .method = "OPTIONS",
        .path = JOIN,
        .headers = {{"Origin", "https://shop.example"}, {"Access-Control-Request-Method", "POST"}}};
    world_handle(world, &request);
    assert_answer(&request, 204, "");
    assert_string_equal(request.shared_origin, "https://shop.example");
    assert_string_equal(fake_answer_header(&request, "Access-Control-Allow-Methods"), "GET, POST");
    assert_non_null(
        strstr(fake_answer_header(&request, "Access-Control-Allow-Headers"), "Authorization"));
    request.headers[0].value = "https://evil.example";
    request.answers = 0;
    world_handle(world, &request);
    assert_problem(&request, 405, "method-not-allowed");
    assert_null(request.shared_origin);
}

/* ---- cookies ---- */

static void a_cookie_is_the_hosts_own_where_visitors_come_by_https(void **state)
{
    struct world *world = *state;
    char text[TL_COOKIE_TEXT_MAX];
    struct tl_request request = {.method = "GET", .path = "/"};
    struct tl_visit visit = {.worker = world->worker,
                             .request = &request,
                             .name = "concert",
                             .queue = world_queue(world)};
    tl_cookie_write(&visit, "TICKET", text);
    assert_string_equal(text, "__Host-tellerline_concert=TICKET; Path=/; Max-Age=86400; HttpOnly; "
                              "SameSite=Lax; Secure");
    struct tl_config plain = *world->config;
    struct tl_worker worker = *world->worker;
    strcpy(plain.http.public_url, "http://localhost:8080");
    worker.config = &plain;
    visit.worker = &worker;
    tl_cookie_write(&visit, "TICKET", text);
    assert_string_equal(text,
                        "tellerline_concert=TICKET; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax");
    request.headers[0] = (struct fake_value){"X-Forwarded-Proto", "https"};
    request.peer = "192.0.2.1";
    assert_false(tl_cross_site_https(&visit));
    request.peer = "10.0.0.1";
    assert_true(tl_cross_site_https(&visit));
}

static void every_cookie_is_tried(void **state)
{
    struct world *world = *state;
    const struct world_ticket good = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 4));
    struct tl_request request = {.method = "GET",
                                 .path = "/v1/queues/concert/status",
                                 .cookies = {{"__Host-tellerline_concert", "AAAA"},
                                             {"tellerline_concert", "BBBB"},
                                             {"tellerline_other", good.text + 7},
                                             {"tellerline_concert", good.text + 7}}};
    world_handle(world, &request);
    assert_answer(&request, 200, "\"position\":3");
    request.cookies[3].name = "x";
    request.answers = 0;
    world_handle(world, &request);
    assert_problem(&request, 401, "bad-ticket");
    request.cookies[0].value = good.text + 7;
    request.answers = 0;
    world_handle(world, &request);
    assert_answer(&request, 200, "\"position\":3");
    assert_true(tl_cookie_sent(&(struct tl_visit){.request = &request, .name = "other"}));
    assert_false(tl_cookie_sent(&(struct tl_visit){.request = &request, .name = "nothing"}));
}

static struct world_ticket numbered(struct world *world, uint64_t seq)
{
    return world_ticket(world, WORLD_GENERATION, tl_place_make(0, seq));
}

static void a_pending_ticket_leaves_the_address_too(void **state)
{
    struct world *world = *state;
    const struct world_ticket pending = world_ticket(world, 0, tl_place_make(0, 0));
    struct tl_request request = {.method = "GET",
                                 .path = "/q/concert",
                                 .cookies = {{"tellerline_concert", pending.text + 7}},
                                 .queries = {{"ticket", pending.text + 7}}};
    world_handle(world, &request);
    assert_answer(&request, 303, "");
    assert_string_equal(fake_answer_header(&request, "Location"), "/q/concert");
}

/* A person's browser, as it says, opens the page for the first time. */
static struct tl_request first_visit(void)
{
    return (struct tl_request){
        .method = "GET",
        .path = "/q/concert",
        .headers = {{"Sec-Fetch-Dest", "document"}, {"Sec-Fetch-Mode", "navigate"}},
        .queries = {{"invite", "i.n.v"}}};
}

/* Whether an address in the page has a ticket. (Its script names the parameter, too.) */
static bool links_ticket(const struct tl_request *request)
{
    return strstr(request->text, "?ticket=") != NULL ||
           strstr(request->text, "&amp;ticket=") != NULL;
}

static void a_browser_shows_that_it_keeps_cookies_before_it_joins(void **state)
{
    struct world *world = *state;
    struct tl_request first = first_visit();
    world_handle(world, &first);
    assert_answer(&first, 303, "");
    assert_string_equal(fake_answer_header(&first, "Location"),
                        "/q/concert?invite=i.n.v&cookies=1");
    assert_string_equal(fake_answer_header(&first, "Set-Cookie"),
                        "tellerline_COOKIES=1; Path=/q/; HttpOnly; SameSite=Lax; Secure");
    assert_int_equal(tl_queues_in_flight(&world->worker->queues), 0);

    struct tl_request kept = first_visit();
    kept.queries[0] = (struct fake_value){"cookies", "1"};
    kept.cookies[0] = (struct fake_value){"tellerline_COOKIES", "1"};
    world_handle(world, &kept);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&kept, 200, "data-state=\"waiting\" data-visitor");
    assert_non_null(strstr(fake_answer_header(&kept, "Set-Cookie"), "tellerline_concert="));
    assert_false(links_ticket(&kept));

    struct tl_request without = first_visit();
    without.queries[0] = (struct fake_value){"cookies", "1"};
    world_handle(world, &without);
    world_applied(world, world_batch(world, true), 6);
    assert_answer(&without, 200, "data-state=\"waiting\" data-visitor");
    assert_true(links_ticket(&without));

    struct tl_request solved = first_visit(); /* the signed wait would be lost on the way */
    solved.queries[0] = (struct fake_value){"solution", "w"};
    world_handle(world, &solved);
    assert_waits(&solved);
    world_applied(world, world_batch(world, true), 7);
}

static void joining_again_puts_no_ticket_into_the_address(void **state)
{
    struct world *world = *state;
    struct tl_request request = {
        .method = "POST", .path = "/q/concert/join", .cookies = {{"tellerline_COOKIES", "1"}}};
    world_handle(world, &request);
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&request, 303, "");
    assert_string_equal(fake_answer_header(&request, "Location"), "/q/concert?from=4");
    assert_non_null(strstr(fake_answer_header(&request, "Set-Cookie"), "tellerline_concert="));

    /* A link with the ticket, opened in a browser that keeps cookies: the page's addresses are
     * without it, so the cookie must have it. */
    const struct world_ticket ticket = numbered(world, 4);
    struct tl_request link = {.method = "GET",
                              .path = "/q/concert",
                              .cookies = {{"tellerline_COOKIES", "1"}},
                              .queries = {{"ticket", ticket.text + 7}}};
    world_handle(world, &link);
    assert_answer(&link, 200, "data-state=\"waiting\" data-visitor");
    assert_false(links_ticket(&link));
    assert_non_null(strstr(fake_answer_header(&link, "Set-Cookie"), "tellerline_concert="));
}

/* The seconds for which the answer lets the browser keep the ticket; 0: it sets no cookie. */
static long kept_s(const struct tl_request *request)
{
    const char *cookie = fake_answer_header(request, "Set-Cookie");
    const char *life = cookie != NULL ? strstr(cookie, "; Max-Age=") : NULL;
    return life != NULL ? strtol(life + strlen("; Max-Age="), NULL, 10) : 0;
}

static void every_view_renews_the_cookie(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = numbered(world, 4), active = numbered(world, 1),
                              over = numbered(world, 99);
    static const char *const paths[] = {"/q/concert", "/v1/queues/concert/status"};
    for (size_t i = 0; i < 2; i++) {
        struct tl_request request = {.method = "GET",
                                     .path = paths[i],
                                     .cookies = {{"tellerline_concert", ticket.text + 7}}};
        world_handle(world, &request);
        assert_int_equal(request.status, 200);
        assert_int_equal(kept_s(&request), 86400);
        request.answers = 0;
        request.cookies[0].value = active.text + 7;
        world_handle(world, &request);
        assert_int_equal(kept_s(&request), 86400);
    }
    tl_queue_remember_end(world_queue(world), tl_place_make(0, 99), TL_REASON_LEFT);
    struct tl_request request = {
        .method = "GET", .path = paths[1], .cookies = {{"tellerline_concert", over.text + 7}}};
    world_handle(world, &request);
    assert_int_equal(kept_s(&request), 0); /* a newer place may be in the cookie by now */
    request = world_send(world, "GET", paths[1], ticket.text);
    assert_int_equal(kept_s(&request), 0); /* a program keeps its ticket itself */
}

/* Meanwhile the browser may have taken another place: the answer must not replace its ticket. */
static void the_answer_to_a_question_that_waited_sets_no_cookie(void **state)
{
    struct world *world = *state;
    struct tl_ticket old = {.visitor = "alice",
                            .generation = WORLD_GENERATION,
                            .place = tl_place_make(0, 4),
                            .issued = WORLD_STORE_MS / 1000 - 120};
    const struct world_ticket tickets[] = {numbered(world, 4), world_signed(world, &old)};
    for (size_t i = 0; i < 2; i++) {
        struct tl_request request = {.method = "GET",
                                     .path = "/v1/queues/concert/status",
                                     .cookies = {{"tellerline_concert", tickets[i].text + 7}},
                                     .queries = {{"wait", "20s"}}};
        world_handle(world, &request);
        assert_true(request.held);
        tl_subscribers_sweep(world->worker, tl_clock_ms() + 25000);
        assert_answer(&request, 200, "\"position\":3,");
        assert_null(fake_answer_header(&request, "Set-Cookie"));
    }
}

static void the_cookie_lives_as_long_as_the_place_may(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = numbered(world, 4);
    struct tl_request request = {.method = "GET",
                                 .path = "/q/concert",
                                 .cookies = {{"tellerline_concert", ticket.text + 7}}};
    world->settings.opens_at_ms = WORLD_STORE_MS + 3 * INT64_C(86400000);
    world->settings.waiting_ttl_ms = 7200000;
    world->settings.claim_ttl_ms = 60000;
    world->settings.session_ttl_ms = 600000;
    world->settings.session_max_ms = 3600000;
    world_load(world);
    world_handle(world, &request);
    assert_in_range(kept_s(&request), 3 * 86400 + 7860 - 5, 3 * 86400 + 7860);
    world->settings.session_sliding = true;
    world_load(world);
    request.answers = 0;
    world_handle(world, &request);
    assert_in_range(kept_s(&request), 3 * 86400 + 10860 - 5, 3 * 86400 + 10860);
    world->settings.opens_at_ms = WORLD_STORE_MS + 900 * INT64_C(86400000);
    world_load(world);
    request.answers = 0;
    world_handle(world, &request);
    assert_int_equal(kept_s(&request), 400 * 86400); /* browsers keep none for longer */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(own_and_allowed_pages_may_post),
        TEST(other_pages_may_not_post),
        TEST(a_foreign_post_changes_nothing),
        TEST(allowed_pages_may_read_the_answers_of_the_api),
        TEST(a_browser_may_ask_first),
        TEST(a_cookie_is_the_hosts_own_where_visitors_come_by_https),
        TEST(every_cookie_is_tried),
        TEST(a_pending_ticket_leaves_the_address_too),
        TEST(a_browser_shows_that_it_keeps_cookies_before_it_joins),
        TEST(joining_again_puts_no_ticket_into_the_address),
        TEST(every_view_renews_the_cookie),
        TEST(the_answer_to_a_question_that_waited_sets_no_cookie),
        TEST(the_cookie_lives_as_long_as_the_place_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
