/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of visitors with a ticket: status, leave, complete, renew, and the event stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "tests/unit/worker/api/world.h"
#include "worker/visit/subscribers.h"
#include "worker/visit/visit.h"

#define STATUS "/v1/queues/concert/status"
#define EVENTS "/v1/queues/concert/events"

static tl_place place(uint64_t seq)
{
    return tl_place_make(0, seq);
}

static struct world_ticket numbered(struct world *world, uint64_t seq)
{
    return world_ticket(world, WORLD_GENERATION, place(seq));
}

/* ---- status ---- */

static void the_status_tells_where_the_visitor_stands(void **state)
{
    struct world *world = *state;
    struct world_ticket ticket = numbered(world, 4);
    struct tl_request request = world_send(world, "GET", STATUS, ticket.text);
    assert_answer(&request, 200, "\"position\":3,");
    assert_null(strstr(request.text, "\"ticket\""));
    assert_null(fake_answer_header(&request, "Set-Cookie"));

    struct tl_request cookie = {
        .method = "GET", .path = STATUS, .cookies = {{"tellerline_concert", ticket.text + 7}}};
    world_handle(world, &cookie);
    assert_answer(&cookie, 200, "\"position\":3,");
    struct tl_request query = {
        .method = "GET", .path = STATUS, .queries = {{"ticket", ticket.text + 7}}};
    world_handle(world, &query);
    assert_answer(&query, 200, "\"position\":3,");
}

static void a_waiting_visitor_gets_a_new_ticket_for_an_old_one(void **state)
{
    struct world *world = *state;
    struct tl_ticket old = {.visitor = "alice",
                            .generation = WORLD_GENERATION,
                            .place = place(4),
                            .issued = WORLD_STORE_MS / 1000 - 120};
    struct tl_request request = world_send(world, "GET", STATUS, world_signed(world, &old).text);
    assert_answer(&request, 200, "\"position\":3,");
    const struct tl_ticket given = world_given(world, &request);
    assert_int_equal(given.place, place(4));
    assert_int_equal(given.generation, WORLD_GENERATION);
    assert_int_equal(given.front, 1); /* seq 2 is the first who waits */
    assert_int_equal(given.issued, WORLD_STORE_MS / 60000 * 60 % TL_TICKET_ISSUED_MODULO);

    old.place = place(1); /* active: the first answer must claim the session */
    request = world_send(world, "GET", STATUS, world_signed(world, &old).text);
    assert_answer(&request, 200, "\"status\":\"active\"");
    assert_null(strstr(request.text, "\"ticket\""));
    assert_null(strstr(request.text, "\"claimed\"")); /* `expires_at` is still that of the claim */
}

static void without_a_valid_ticket_there_is_no_status(void **state)
{
    struct world *world = *state;
    struct tl_request request = world_send(world, "GET", STATUS, NULL);
    assert_problem(&request, 401, "bad-ticket");
    struct world_ticket ticket = numbered(world, 4);
    ticket.text[20] ^= 1;
    request = world_send(world, "GET", STATUS, ticket.text);
    assert_problem(&request, 401, "bad-ticket");
    ticket = world_ticket(world, WORLD_GENERATION - 1, place(4));
    request = world_send(world, "GET", STATUS, ticket.text);
    assert_problem(&request, 409, "queue-recreated");
    /* Another worker knows already that the queue was created again. */
    ticket = world_ticket(world, WORLD_GENERATION + 1, place(4));
    request = world_send(world, "GET", STATUS, ticket.text);
    assert_problem(&request, 503, "loading");
    ticket = numbered(world, 4);
    request = world_send(world, "GET", "/v1/queues/none/status", ticket.text);
    assert_problem(&request, 404, "no-such-queue");
}

static void a_pending_ticket_asks_for_its_place_again(void **state)
{
    struct world *world = *state;
    struct world_ticket ticket = world_ticket(world, 0, tl_place_make(1, 0));
    struct tl_request request = {
        .method = "GET", .path = STATUS, .headers = {{"Authorization", ticket.text}}};
    world_handle(world, &request);
    assert_waits(&request);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_WAITING, tl_place_make(1, 2));
    assert_answer(&request, 200, "\"visitor\":\"alice\"");
    assert_int_equal(world_given(world, &request).place, tl_place_make(1, 2));
}

static struct tl_request waiting_for(const struct world_ticket *ticket, const char *wait)
{
    return (struct tl_request){.method = "GET",
                               .path = STATUS,
                               .headers = {{"Authorization", ticket->text}},
                               .queries = {{"wait", wait}}};
}

static void the_status_can_wait_for_a_change(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = numbered(world, 4);
    struct tl_request request = waiting_for(&ticket, "20s");
    world_handle(world, &request);
    assert_true(request.held);
    tl_subscribers_sweep(world->worker, tl_clock_ms() + 15000);
    assert_waits(&request);
    tl_subscribers_sweep(world->worker, tl_clock_ms() + 25000);
    assert_answer(&request, 200, "\"position\":3,");
    assert_null(strstr(request.text, "\"ticket\""));
}

static void the_status_does_not_wait_where_nothing_comes(void **state)
{
    struct world *world = *state;
    struct world_ticket ticket = numbered(world, 4);
    static const char *const wrong[] = {"2h", "56s", "x", ""};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct tl_request request = waiting_for(&ticket, wrong[i]);
        world_handle(world, &request);
        assert_problem(&request, 400, "bad-query");
    }
    struct tl_request zero = waiting_for(&ticket, "0s");
    world_handle(world, &zero);
    assert_answer(&zero, 200, "waiting");
    world->env.draining = true;
    struct tl_request draining = waiting_for(&ticket, "20s");
    world_handle(world, &draining);
    assert_answer(&draining, 200, "waiting");
    world->env.draining = false;
    ticket = numbered(world, 99);
    tl_queue_remember_end(world_queue(world), place(99), TL_REASON_LEFT);
    struct tl_request over = waiting_for(&ticket, "20s");
    world_handle(world, &over);
    assert_answer(&over, 200, "\"status\":\"left\"");
}

static void a_worker_that_drains_waits_for_its_subscribers(void **state)
{
    struct world *world = *state;
    struct world_ticket ticket = numbered(world, 4);
    struct tl_request poll = waiting_for(&ticket, "20s");
    int64_t now_ms = tl_clock_ms();
    assert_true(tl_worker_idle(world->worker));
    world_handle(world, &poll);
    assert_waits(&poll);
    assert_false(tl_worker_idle(world->worker));
    world->env.draining = true;
    tl_subscribers_drain(world->worker, now_ms, now_ms + 1000);
    assert_false(tl_worker_idle(world->worker));
    tl_subscribers_sweep(world->worker, now_ms + 2000);
    assert_answer(&poll, 200, "\"position\":3,");
    assert_true(tl_worker_idle(world->worker));
}

static void a_place_unknown_here_is_asked_of_the_store(void **state)
{
    struct world *world = *state;
    struct world_ticket ticket = numbered(world, 99);
    struct tl_request request = {
        .method = "GET", .path = STATUS, .headers = {{"Authorization", ticket.text}}};
    world_handle(world, &request);
    assert_waits(&request);
    assert_int_equal(world->asked, 1);
    tl_waits_found(world->worker, world->number, TL_LOOKUP_FAILED, 0);
    assert_problem(&request, 503, "store-unavailable");

    request.answers = 0;
    world_handle(world, &request);
    tl_waits_found(world->worker, world->number, TL_LOOKUP_ENDED, TL_REASON_COMPLETED);
    assert_answer(&request, 200, "\"status\":\"completed\"");
    request.answers = 0;
    world_handle(world, &request); /* remembered now */
    assert_answer(&request, 200, "\"status\":\"completed\"");
    assert_int_equal(world->asked, 2);

    ticket = numbered(world, 98);
    world->deaf = true;
    request = world_send(world, "GET", STATUS, ticket.text);
    assert_problem(&request, 503, "store-unavailable");
    world->deaf = false;
    world->env.follower_up = false;
    request = world_send(world, "GET", STATUS, ticket.text);
    assert_problem(&request, 503, "store-unavailable");
    assert_int_equal(world->asked, 2);
}

/* ---- commands ---- */

static struct tl_request command(const struct world_ticket *ticket, const char *path)
{
    return (struct tl_request){
        .method = "POST", .path = path, .headers = {{"Authorization", ticket->text}}};
}

static void a_command_is_answered_with_its_outcome(void **state)
{
    struct world *world = *state;
    static const char *const paths[] = {"/v1/queues/concert/leave", "/v1/queues/concert/complete",
                                        "/v1/queues/concert/renew"};
    const struct world_ticket ticket = numbered(world, 1);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct tl_request request = command(&ticket, paths[i]);
        world_handle(world, &request);
        assert_waits(&request);
        world_applied(world, world_batch(world, true), 0);
        assert_answer(&request, 200, "\"visitor\":\"alice\"");
    }
}

static void a_command_too_early_is_refused(void **state)
{
    struct world *world = *state;
    struct world_ticket ticket = numbered(world, 4);
    struct tl_request request = command(&ticket, "/v1/queues/concert/complete");
    world_handle(world, &request);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_WAITING, 0);
    assert_problem(&request, 409, "not-admitted");
    ticket = world_ticket(world, 0, tl_place_make(0, 0));
    request = command(&ticket, "/v1/queues/concert/renew");
    world_handle(world, &request);
    assert_waits(&request); /* its place may have ended */
    tl_waits_found(world->worker, world->number, TL_LOOKUP_NOWHERE, 0);
    assert_problem(&request, 409, "pending");
    assert_non_null(fake_answer_header(&request, "Retry-After"));
    request.answers = 0;
    world_handle(world, &request);
    tl_waits_found(world->worker, world->number, TL_LOOKUP_ENDED, TL_REASON_LEFT);
    assert_answer(&request, 200, "\"status\":\"left\"");
    world->deaf = true;
    request = world_send(world, "POST", "/v1/queues/concert/renew", ticket.text);
    assert_problem(&request, 409, "pending");
}

static void a_pending_place_is_left_when_its_number_is_known(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = world_ticket(world, 0, tl_place_make(0, 0));
    struct tl_request request = command(&ticket, "/v1/queues/concert/leave");
    world_handle(world, &request);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_WAITING, place(4));
    assert_waits(&request); /* the LEAVE is on its way */
    world_applied(world, world_batch(world, true), 0);
    assert_answer(&request, 200, "\"visitor\":\"alice\"");
    assert_int_equal(tl_queues_in_flight(&world->worker->queues), 0);

    request.answers = 0; /* left before */
    world_handle(world, &request);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_SPENT, 0);
    tl_waits_found(world->worker, world->number, TL_LOOKUP_ENDED, TL_REASON_LEFT);
    assert_answer(&request, 200, "\"status\":\"left\"");
}

static void extending_claims_nothing(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = numbered(world, 1), waits = numbered(world, 4);
    struct tl_request request = command(&ticket, "/v1/queues/concert/extend");
    world_handle(world, &request);
    world_applied(world, world_batch(world, true), 0);
    assert_answer(&request, 200, "\"status\":\"active\"");
    assert_non_null(strstr(request.text, "\"pass\":\""));
    assert_int_equal(tl_queues_in_flight(&world->worker->queues), 0); /* no CLAIM */
    assert_false(tl_claims_made(&world_queue(world)->claims, place(1)));
    request = command(&waits, "/v1/queues/concert/extend");
    world_handle(world, &request);
    world_excepted(world, world_batch(world, true), TL_OUTCOME_WAITING, 0);
    assert_problem(&request, 409, "not-admitted");
}

static void a_leave_is_remembered_until_the_number_is_known(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = world_ticket(world, 0, tl_place_make(0, 0));
    struct tl_request request = command(&ticket, "/v1/queues/concert/leave");
    world_handle(world, &request);
    uint64_t batch = world_batch(world, true);
    tl_waits_tick(world->worker, tl_clock_ms() + 60000);
    assert_answer(&request, 202, "\"status\":\"pending\"");
    world_excepted(world, batch, TL_OUTCOME_WAITING, place(4));
    assert_int_equal(tl_queues_in_flight(&world->worker->queues), 1); /* the LEAVE */
    world_applied(world, world_batch(world, true), 0);
    assert_int_equal(tl_queues_in_flight(&world->worker->queues), 0);
}

static void a_command_after_the_end_needs_no_store(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = numbered(world, 99);
    tl_queue_remember_end(world_queue(world), place(99), TL_REASON_EXPIRED);
    world->env.full = true;
    struct tl_request request = world_send(world, "POST", "/v1/queues/concert/leave", ticket.text);
    assert_answer(&request, 200, "\"status\":\"expired\"");
}

static void a_command_without_an_outcome_says_so(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = numbered(world, 4);
    world->env.full = true;
    struct tl_request request = world_send(world, "POST", "/v1/queues/concert/leave", ticket.text);
    assert_problem(&request, 503, "busy");
    world->env.full = false;

    struct tl_request refused = command(&ticket, "/v1/queues/concert/leave");
    world_handle(world, &refused);
    (void)world_batch(world, false);
    assert_problem(&refused, 503, "store-unavailable");

    struct tl_request lost = command(&ticket, "/v1/queues/concert/leave");
    world_handle(world, &lost);
    world_lose(world);
    assert_problem(&lost, 503, "unknown-outcome");

    struct tl_request late = command(&ticket, "/v1/queues/concert/leave");
    world_handle(world, &late);
    tl_waits_tick(world->worker, tl_clock_ms() + world->config->http.join_wait_ms + 1000);
    assert_problem(&late, 503, "unknown-outcome");
}

/* ---- events ---- */

static struct tl_request stream(struct world *world, const struct world_ticket *ticket)
{
    struct tl_request request = {
        .method = "GET", .path = EVENTS, .headers = {{"Authorization", ticket->text}}};
    world_handle(world, &request);
    assert_int_equal(request.answers, 1);
    return request;
}

static void a_stream_tells_the_position_at_once(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = numbered(world, 4);
    char text[8192];
    struct tl_request request = stream(world, &ticket);
    world_read(&request, text, sizeof(text));
    assert_int_equal(strncmp(text, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n", 50),
                     0);
    assert_non_null(strstr(text, "\r\n\r\nretry: "));
    assert_non_null(strstr(text, "event: position\ndata: {"));
    assert_non_null(strstr(text, "\"position\":3,"));
    close(request.client);
}

static void a_pending_ticket_gets_a_stream_and_then_its_place(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = world_ticket(world, 0, tl_place_make(1, 0));
    char text[8192];
    struct tl_request request = stream(world, &ticket);
    world_read(&request, text, sizeof(text));
    assert_non_null(strstr(text, "event: pending\n"));
    world_applied(world, world_batch(world, true), 3);
    world_read(&request, text, sizeof(text));
    assert_non_null(strstr(text, "event: position\n"));
    memcpy(request.text, text, sizeof(text));
    assert_int_equal(world_given(world, &request).place, tl_place_make(1, 3));
    close(request.client);
}

static void an_unknown_place_gets_a_stream_and_then_its_end(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = numbered(world, 99);
    char text[8192];
    struct tl_request request = stream(world, &ticket);
    world_read(&request, text, sizeof(text));
    assert_non_null(strstr(text, "text/event-stream"));
    assert_null(strstr(text, "event: "));
    assert_int_equal(world->asked, 1);
    tl_waits_found(world->worker, world->number, TL_LOOKUP_ENDED, TL_REASON_LEFT);
    world_read(&request, text, sizeof(text));
    assert_non_null(strstr(text, "event: ended\ndata: {"));
    assert_non_null(strstr(text, "\"status\":\"left\""));
    close(request.client);
}

static void assert_short_stream(const struct tl_request *request, const char *event)
{
    assert_false(request->taken_over);
    assert_answer(request, 200, "retry: ");
    assert_string_equal(request->type, "text/event-stream");
    assert_string_equal(fake_answer_header(request, "Connection"), "close");
    if (event == NULL)
        assert_null(strstr(request->text, "event: "));
    else
        assert_non_null(strstr(request->text, event));
}

static void where_no_stream_can_stay_open_a_short_one_is_given(void **state)
{
    struct world *world = *state;
    struct world_ticket ticket = numbered(world, 4);
    world->worker->connections_max = 0;
    struct tl_request request = stream(world, &ticket);
    assert_short_stream(&request, "event: position\ndata: {");
    const struct world_ticket unknown = numbered(world, 99);
    request = stream(world, &unknown);
    assert_short_stream(&request, NULL);
    const struct world_ticket pending = world_ticket(world, 0, place(0));
    request = stream(world, &pending);
    assert_short_stream(&request, NULL);
    world->worker->connections_max = 100;
    world->env.draining = true;
    request = stream(world, &ticket);
    assert_short_stream(&request, "event: position\n");
    world->env.draining = false;
    request = world_send(world, "HEAD", EVENTS, ticket.text);
    assert_short_stream(&request, "event: position\n");
}

static void while_the_line_is_loading_a_short_stream_is_given(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = numbered(world, 4);
    world_take(world, (struct tl_change){.kind = TL_CHANGE_GONE});
    world->env.listed = false;
    struct tl_request request = stream(world, &ticket);
    assert_short_stream(&request, NULL);
    world->env.draining = true;
    request = stream(world, &ticket);
    assert_short_stream(&request, NULL);
    request = world_send(world, "GET", EVENTS, "Bearer no-ticket");
    assert_problem(&request, 503, "stopping");
    world->env.draining = false;
    /* An operator deleted it. That the configuration names it does not bring it back. */
    world->env.listed = true;
    request = stream(world, &ticket);
    assert_problem(&request, 404, "no-such-queue");
    request = world_send(world, "POST", "/v1/queues/concert/join", NULL);
    assert_problem(&request, 404, "no-such-queue");
}

static void what_waits_is_told_that_the_queue_was_recreated(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = numbered(world, 4);
    const struct world_ticket unknown = numbered(world, 99);
    struct tl_request poll = waiting_for(&ticket, "20s");
    world_handle(world, &poll);
    struct tl_request lookup = {
        .method = "GET", .path = STATUS, .headers = {{"Authorization", unknown.text}}};
    world_handle(world, &lookup);
    struct tl_request leave = {.method = "POST",
                               .path = "/v1/queues/concert/leave",
                               .headers = {{"Authorization", ticket.text}}};
    world_handle(world, &leave);
    struct tl_request stream = {
        .method = "GET", .path = EVENTS, .headers = {{"Authorization", ticket.text}}};
    world_handle(world, &stream);
    world_recreate(world);
    assert_problem(&poll, 409, "queue-recreated");
    assert_problem(&lookup, 409, "queue-recreated");
    assert_int_equal(world->worker->subscribers.table.n, 0);
    close(stream.client);
    world_applied(world, world_batch(world, true), 5);
    assert_problem(&leave, 409, "queue-recreated");
}

/* The handler is called again when it is known what becomes of the place. */
static void a_long_poll_waits_for_a_place_that_may_return(void **state)
{
    struct world *world = *state;
    const struct tl_recovery recovery = {.lost_generation = WORLD_GENERATION,
                                         .present = WORLD_GENERATION + 1,
                                         .until_ms = WORLD_STORE_MS + 60000};
    const struct world_ticket ticket = numbered(world, 4);
    struct tl_request poll = waiting_for(&ticket, "20s");
    world_handle(world, &poll);
    world_take(world, (struct tl_change){.kind = TL_CHANGE_RECOVERY, .recovery = recovery});
    struct tl_line *line = tl_line_new();
    assert_non_null(line);
    tl_line_start(line, WORLD_GENERATION + 1, 100); /* it is not back yet */
    world_take(world, (struct tl_change){
                          .kind = TL_CHANGE_LINE, .line = line, .settings = &world->settings});
    assert_int_equal(tl_waits_count(&world->worker->waits), 1);
    world_recreate(world); /* it is */
    world_applied(world, world_batch(world, true), 0);
    assert_int_equal(tl_waits_count(&world->worker->waits), 0);
    assert_waits(&poll); /* for a change again */
}

static void a_stream_needs_a_valid_ticket(void **state)
{
    struct world *world = *state;
    struct tl_request request = world_send(world, "GET", EVENTS, NULL);
    assert_problem(&request, 401, "bad-ticket");
    const struct world_ticket old = world_ticket(world, WORLD_GENERATION - 1, place(4));
    request = world_send(world, "GET", EVENTS, old.text);
    assert_problem(&request, 409, "queue-recreated");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

static void a_pending_ticket_ends(void **state)
{
    struct world *world = *state;
    struct world_ticket ticket = world_ticket(world, 0, tl_place_make(0, 0));
    struct tl_request request = {.method = "GET",
                                 .path = "/v1/queues/concert/status",
                                 .headers = {{"Authorization", ticket.text}}};
    world->env.store_offset_ms += (int64_t)TL_TICKET_PENDING_S * 1000 - 5000;
    world_handle(world, &request);
    world_applied(world, world_batch(world, true), 9);
    assert_answer(&request, 200, "\"status\":\"waiting\"");
    world->env.store_offset_ms += 10000;
    request = world_send(world, "GET", "/v1/queues/concert/status", ticket.text);
    assert_problem(&request, 401, "bad-ticket");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_status_tells_where_the_visitor_stands),
        TEST(a_waiting_visitor_gets_a_new_ticket_for_an_old_one),
        TEST(without_a_valid_ticket_there_is_no_status),
        TEST(a_pending_ticket_asks_for_its_place_again),
        TEST(the_status_can_wait_for_a_change),
        TEST(the_status_does_not_wait_where_nothing_comes),
        TEST(a_worker_that_drains_waits_for_its_subscribers),
        TEST(a_place_unknown_here_is_asked_of_the_store),
        TEST(a_command_is_answered_with_its_outcome),
        TEST(a_command_too_early_is_refused),
        TEST(a_pending_place_is_left_when_its_number_is_known),
        TEST(extending_claims_nothing),
        TEST(a_leave_is_remembered_until_the_number_is_known),
        TEST(a_command_after_the_end_needs_no_store),
        TEST(a_command_without_an_outcome_says_so),
        TEST(a_stream_tells_the_position_at_once),
        TEST(a_pending_ticket_gets_a_stream_and_then_its_place),
        TEST(an_unknown_place_gets_a_stream_and_then_its_end),
        TEST(where_no_stream_can_stay_open_a_short_one_is_given),
        TEST(while_the_line_is_loading_a_short_stream_is_given),
        TEST(what_waits_is_told_that_the_queue_was_recreated),
        TEST(a_long_poll_waits_for_a_place_that_may_return),
        TEST(a_stream_needs_a_valid_ticket),
        TEST(a_pending_ticket_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
