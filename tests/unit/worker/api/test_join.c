/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/queues/{q}/join, and the outcomes of joins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/unit/worker/api/world.h"
#include "worker/report/worker_metrics.h"
#include "worker/visit/subscribers.h"
#include "worker/visit/visit.h"

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
    assert_int_equal(ticket.issued, WORLD_STORE_MS / 60000 * 60 % TL_TICKET_ISSUED_MODULO);
    const char *cookie = fake_answer_header(&request, "Set-Cookie");
    assert_non_null(cookie);
    assert_int_equal(strncmp(cookie, "__Host-tellerline_concert=", 26), 0);
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

static struct tl_request again(const struct world_ticket *ticket)
{
    return (struct tl_request){
        .method = "POST", .path = PATH, .headers = {{"Authorization", ticket->text}}};
}

static void who_holds_a_place_gets_it_again(void **state)
{
    struct world *world = *state;
    struct world_ticket ticket = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 3));
    struct tl_request waits = again(&ticket);
    world_handle(world, &waits);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_WAITING, tl_place_make(0, 3));
    assert_answer(&waits, 200, "\"position\":2,");
    assert_int_equal(world_given(world, &waits).place, tl_place_make(0, 3));
    ticket = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 1));
    struct tl_request active = again(&ticket);
    world_handle(world, &active);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_ACTIVE, tl_place_make(0, 1));
    assert_answer(&active, 200, "\"status\":\"active\"");
    assert_non_null(strstr(active.text, "\"pass\":\""));
}

/* Through another worker, whose event is not here yet. */
static void who_has_just_given_a_place_up_gets_a_new_one(void **state)
{
    struct world *world = *state;
    tl_place place = tl_place_make(0, 1);
    struct world_ticket ticket = world_ticket(world, WORLD_GENERATION, place);
    struct tl_request request = again(&ticket);
    world_handle(world, &request);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_GONE, place);
    assert_waits(&request);
    world_applied(world, world_batch(world, true), 9);
    assert_int_equal(world->kind, TL_COMMAND_JOIN);
    assert_answer(&request, 200, "\"status\":\"waiting\"");
    assert_int_equal(world_given(world, &request).place, tl_place_make(0, 9));
}

/* It may reach the store after the place has ended, and would make a second one. */
static void who_holds_a_place_sends_no_join(void **state)
{
    struct world *world = *state;
    for (uint64_t seq = 1; seq < 4; seq++) {
        struct world_ticket ticket = world_ticket(world, WORLD_GENERATION, tl_place_make(0, seq));
        struct tl_request request = again(&ticket);
        world_handle(world, &request);
        world_lose(world);
        assert_int_equal(world->kind, TL_COMMAND_CLAIM);
        assert_answer(&request, 200, "\"ticket\"");
    }
}

static void without_the_store_a_place_is_given_as_known(void **state)
{
    struct world *world = *state;
    struct world_ticket ticket = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 3));
    world->env.ingest_up = false;
    struct tl_request down = world_send(world, "POST", PATH, ticket.text);
    assert_answer(&down, 200, "\"position\":2,");
    world->env.ingest_up = true;
    struct tl_request refused = again(&ticket);
    world_handle(world, &refused);
    (void)world_batch(world, false);
    assert_answer(&refused, 200, "\"position\":2,");
    struct tl_request late = again(&ticket);
    world_handle(world, &late);
    tl_waits_tick(world->worker, tl_clock_ms() + world->config->http.join_wait_ms + 1000);
    assert_answer(&late, 200, "\"position\":2,");
    assert_int_equal(world_given(world, &late).place, tl_place_make(0, 3));
    struct tl_request lost = again(&ticket);
    world_handle(world, &lost);
    world_recreate(world);
    assert_waits(&lost);
    (void)world_batch(world, true);
    assert_int_equal(world->kind, TL_COMMAND_CLAIM);
    world_applied(world, world_batch(world, true), 9); /* in the new line */
    assert_answer(&lost, 200, "\"position\":8,");
}

/* A new place needs an invite: joining again only looks whether the old one is still held. */
static void a_queue_by_invitation_gives_a_place_again(void **state)
{
    struct world *world = *state;
    world->settings.join = TL_JOIN_INVITED;
    world_load(world);
    static const struct {
        enum tl_outcome outcome;
        unsigned status;
        const char *part;
    } cases[] = {{TL_OUTCOME_WAITING, 200, "\"ticket\""},
                 {TL_OUTCOME_DONE, 200, "\"ticket\""},
                 {TL_OUTCOME_GONE, 403, "\"/problems/by-invitation\""}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tl_place place = tl_place_make(0, cases[i].outcome == TL_OUTCOME_DONE ? 1 : 3);
        struct world_ticket ticket = world_ticket(world, WORLD_GENERATION, place);
        struct tl_request request = again(&ticket);
        world_handle(world, &request);
        world_excepted(world, world_batch(world, true), cases[i].outcome, place);
        assert_answer(&request, cases[i].status, cases[i].part);
    }
    struct world_ticket ticket = world_ticket(world, WORLD_GENERATION, tl_place_make(0, 3));
    struct tl_request lost = again(&ticket);
    world_handle(world, &lost);
    world_recreate(world);
    assert_problem(&lost, 403, "by-invitation");
}

/* A lane is used up with its place. Only the repeat of a join keeps it. */
static void a_place_that_is_over_leads_to_a_new_one_in_the_default_lane(void **state)
{
    struct world *world = *state;
    unsigned usual = world->settings.default_lane;
    const struct {
        uint64_t generation, seq;
        unsigned lane;
    } cases[] = {{WORLD_GENERATION, 99, usual}, {WORLD_GENERATION - 1, 2, usual}, {0, 0, 1}};
    assert_int_not_equal(usual, 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tl_place place = tl_place_make(1, cases[i].seq);
        struct world_ticket ticket = world_ticket(world, cases[i].generation, place);
        struct tl_request request = {
            .method = "POST", .path = PATH, .headers = {{"Authorization", ticket.text}}};
        world_handle(world, &request);
        assert_waits(&request);
        world_applied(world, world_batch(world, true), 3);
        assert_answer(&request, 200, "\"visitor\":\"alice\"");
        assert_int_equal(world_given(world, &request).place, tl_place_make(cases[i].lane, 3));
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

    struct world_ticket pending = world_ticket(world, 0, tl_place_make(0, 0)); /* uninvited */
    request = world_send(world, "POST", PATH, pending.text);
    assert_problem(&request, 403, "by-invitation");
    pending = world_signed(world, &(struct tl_ticket){.visitor = "alice",
                                                      .invite = TL_TICKET_TRUSTED,
                                                      .place = tl_place_make(0, 0),
                                                      .issued = WORLD_STORE_MS / 1000});
    struct tl_request again = {
        .method = "POST", .path = PATH, .headers = {{"Authorization", pending.text}}};
    world_handle(world, &again);
    assert_waits(&again);
    world_applied(world, world_batch(world, true), 4);
    assert_answer(&again, 200, "\"position\":3,");
    struct tl_request page = {
        .method = "GET", .path = "/q/concert", .headers = {{"Authorization", pending.text}}};
    world_handle(world, &page);
    assert_waits(&page);
    pending = world_ticket(world, 0, tl_place_make(0, 0));
    request = world_send(world, "GET", "/q/concert", pending.text);
    assert_int_equal(request.status, 403); /* as a page */
    world_applied(world, world_batch(world, true), 5);
    assert_answer(&page, 200, "");

    struct tl_request trusted = {.method = "POST", .path = PATH, .headers = {KEY}};
    world_handle(world, &trusted);
    assert_waits(&trusted);
    world_applied(world, world_batch(world, true), 6);
    assert_answer(&trusted, 200, "");
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
        assert_in_range(strtoul(fake_answer_header(&request, "Retry-After"), NULL, 10), 30, 60);
    }
    return request.status;
}

/* Nine a minute: three at once, and one more ten seconds later. */
static void an_address_may_join_so_often_a_minute(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(join_from(world, "192.0.2.1", NULL), 200);
    if (join_from(world, "192.0.2.1", NULL) == 200) /* they took so long */
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

/* A proxy that adds a line of its own leaves the client's line before it. */
static void the_last_line_of_forwarded_for_counts(void **state)
{
    struct world *world = *state;
    unsigned refused = 0;
    for (int i = 0; i < 5; i++) {
        char claim[32];
        snprintf(claim, sizeof(claim), "198.51.100.%d", i);
        struct tl_request request = {
            .method = "POST",
            .path = PATH,
            .peer = "10.1.1.1",
            .headers = {{"X-Forwarded-For", claim}, {"X-Forwarded-For", "192.0.2.9"}}};
        world_handle(world, &request);
        refused += request.status == 429;
        if (request.held)
            world_applied(world, world_batch(world, true), 5);
    }
    assert_in_range(refused, 1, 2); /* 1: a new minute began */
}

/* A visitor who leaves and joins again takes a new place each time: that counts, by the API and by
 * the page. */
static void joining_again_counts(void **state)
{
    struct world *world = *state;
    static const char *const paths[] = {PATH, "/q/concert/join"};
    const struct world_ticket ended = world_ticket(world, WORLD_GENERATION, 50);
    for (size_t path = 0; path < sizeof(paths) / sizeof(paths[0]); path++) {
        unsigned refused = 0;
        for (int i = 0; i < 5; i++) {
            struct tl_request request = {.method = "POST",
                                         .path = paths[path],
                                         .peer = path == 0 ? "192.0.2.1" : "192.0.2.2",
                                         .headers = {{"Authorization", ended.text}}};
            world_handle(world, &request);
            refused += request.status == 429;
            if (request.held)
                world_applied(world, world_batch(world, true), 5);
        }
        assert_in_range(refused, 1, 2);
    }
}

/* The line of the test has 11 who wait. What the worker knows is refused at once; what the store
 * finds out, by its outcome. */
static void a_full_line_takes_no_join(void **state)
{
    struct world *world = *state;
    world->settings.max_waiting = 11;
    world_load(world);
    struct tl_request full = world_send(world, "POST", PATH, NULL);
    assert_problem(&full, 503, "full");
    assert_in_range(strtoul(fake_answer_header(&full, "Retry-After"), NULL, 10), 15, 30);
    struct tl_request page = world_send(world, "GET", "/q/concert", NULL);
    assert_answer(&page, 503, "<section data-state=\"full\">");
    assert_non_null(strstr(page.text, "http-equiv=\"refresh\""));
    world->settings.max_waiting = 12;
    world_load(world);
    struct tl_request request = {.method = "POST", .path = PATH};
    world_handle(world, &request);
    assert_waits(&request);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_FULL, 0);
    assert_problem(&request, 503, "full");
}

/* Under pressure an address has its share of each second, and others have theirs. */
static void under_pressure_joins_are_shared(void **state)
{
    struct world *world = *state;
    unsigned refused = 0, taken = 0;
    ((struct tl_config *)(uintptr_t)world->config)->http.joins_per_minute = 100000;
    world->env.in_flight = 60000;
    for (int i = 0; i < 200; i++) {
        struct tl_request request = {.method = "POST", .path = PATH, .peer = "192.0.2.1"};
        world_handle(world, &request);
        refused += request.status == 503;
        if (request.held)
            world_applied(world, world_batch(world, true), 5);
    }
    assert_in_range(refused, 1, 195);
    struct tl_request other = {.method = "POST", .path = PATH, .peer = "192.0.2.2"};
    world_handle(world, &other);
    assert_waits(&other);
    world_applied(world, world_batch(world, true), 5);
    world->env.in_flight = 0;
    for (int i = 0; i < 50; i++)
        taken += join_from(world, "192.0.2.1", NULL) == 200;
    assert_int_equal(taken, 50);
}

static void a_join_that_cannot_be_sent_is_refused(void **state)
{
    struct world *world = *state;
    world->env.ingest_up = false;
    struct tl_request request = world_send(world, "POST", PATH, NULL);
    assert_problem(&request, 503, "store-unavailable");
    world->env.ingest_up = true;
    world->env.memory_full = true;
    request = world_send(world, "POST", PATH, NULL);
    assert_problem(&request, 503, "store-unavailable");
    world->env.memory_full = false;
    world->env.full = true;
    request = world_send(world, "POST", PATH, NULL);
    assert_problem(&request, 503, "busy");
    world->env.draining = true;
    request = world_send(world, "POST", PATH, NULL);
    assert_problem(&request, 503, "stopping");
    assert_int_equal(tl_metrics_get(world->env.metrics, TL_WORKER_JOINS_REFUSED), 4);
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
    world_lose(world);
    assert_answer(&request, 202, "\"status\":\"pending\"");
    struct tl_ticket ticket = world_given(world, &request);
    assert_int_equal(ticket.place, tl_place_make(world->settings.default_lane, 0));
    assert_int_equal(ticket.generation, 0);
    assert_non_null(fake_answer_header(&request, "Set-Cookie"));
}

static void a_join_that_takes_too_long_is_pending(void **state)
{
    struct world *world = *state;
    int64_t late_ms = tl_clock_ms() + world->config->http.join_wait_ms + 1000;
    struct tl_request sent = {.method = "POST", .path = PATH};
    world_handle(world, &sent);
    (void)world_batch(world, true);
    struct tl_request gathered = {.method = "POST", .path = PATH};
    world_handle(world, &gathered);
    tl_waits_tick(world->worker, tl_clock_ms());
    assert_waits(&sent);
    assert_waits(&gathered);
    tl_waits_tick(world->worker, late_ms);
    assert_answer(&sent, 202, "\"status\":\"pending\"");
    assert_answer(&gathered, 202, "\"status\":\"pending\""); /* it will be sent */
}

static void a_join_about_to_be_admitted_waits_a_moment(void **state)
{
    struct world *world = *state;
    world->settings.capacity = 10;
    world_load(world);
    struct tl_request request = {.method = "POST", .path = PATH};
    world_handle(world, &request);
    world_applied(world, world_batch(world, true), 2);
    assert_waits(&request);
    assert_true(request.held);
    tl_subscribers_sweep(world->worker, tl_clock_ms());
    assert_waits(&request);
    tl_subscribers_sweep(world->worker, tl_clock_ms() + 1000); /* no admitter runs */
    assert_answer(&request, 200, "\"position\":1,");
    assert_int_equal(world_given(world, &request).place, tl_place_make(0, 2));
}

/* The outcome says the place, but the line does not know it: an event was missed. */
static void a_join_to_a_place_the_line_does_not_know_has_its_ticket(void **state)
{
    struct world *world = *state;
    struct tl_request request = {.method = "POST", .path = PATH};
    world_handle(world, &request);
    world_applied(world, world_batch(world, true), 900);
    assert_waits(&request);
    tl_waits_found(world->worker, world->number, TL_LOOKUP_ENDED, TL_REASON_LEFT);
    assert_answer(&request, 200, "\"status\":\"left\"");
    assert_non_null(strstr(request.text, "\"ticket\":"));

    request = (struct tl_request){.method = "POST", .path = PATH};
    world_handle(world, &request);
    world_applied(world, world_batch(world, true), 901);
    tl_waits_found(world->worker, world->number, TL_LOOKUP_FAILED, 0);
    assert_answer(&request, 202, "\"status\":\"pending\"");
    assert_non_null(strstr(request.text, "\"ticket\":"));

    world->deaf = true;
    request = (struct tl_request){.method = "POST", .path = PATH};
    world_handle(world, &request);
    world_applied(world, world_batch(world, true), 902);
    assert_answer(&request, 202, "\"status\":\"pending\"");
    assert_non_null(strstr(request.text, "\"ticket\":"));
}

static void a_join_whose_place_is_lost_meanwhile_is_pending(void **state)
{
    struct world *world = *state;
    world->settings.capacity = 10;
    world_load(world);
    struct tl_request request = {.method = "POST", .path = PATH};
    world_handle(world, &request);
    world_applied(world, world_batch(world, true), 2);
    assert_waits(&request);
    world_recreate(world);
    assert_answer(&request, 202, "\"status\":\"pending\"");
    assert_int_equal(world_given(world, &request).generation, 0);
}

static void joins_of_a_deleted_queue_are_told_so(void **state)
{
    struct world *world = *state;
    struct tl_request request = {.method = "POST", .path = PATH};
    world_handle(world, &request);
    world_take(world, (struct tl_change){.kind = TL_CHANGE_GONE});
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
        TEST(who_has_just_given_a_place_up_gets_a_new_one),
        TEST(who_holds_a_place_sends_no_join),
        TEST(without_the_store_a_place_is_given_as_known),
        TEST(a_queue_by_invitation_gives_a_place_again),
        TEST(a_place_that_is_over_leads_to_a_new_one_in_the_default_lane),
        TEST(a_lane_that_is_gone_becomes_the_default_lane),
        TEST(a_queue_by_invitation_is_closed_to_others),
        TEST(an_address_may_join_so_often_a_minute),
        TEST(the_last_line_of_forwarded_for_counts),
        TEST(joining_again_counts),
        TEST(a_full_line_takes_no_join),
        TEST(under_pressure_joins_are_shared),
        TEST(a_join_that_cannot_be_sent_is_refused),
        TEST(a_join_the_store_refuses_is_refused),
        TEST(a_join_with_an_outcome_unknown_is_pending),
        TEST(a_join_that_takes_too_long_is_pending),
        TEST(a_join_about_to_be_admitted_waits_a_moment),
        TEST(a_join_to_a_place_the_line_does_not_know_has_its_ticket),
        TEST(a_join_whose_place_is_lost_meanwhile_is_pending),
        TEST(joins_of_a_deleted_queue_are_told_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
