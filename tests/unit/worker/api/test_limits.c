/* SPDX-License-Identifier: Apache-2.0 */
/* What one client may ask for: forged tokens, pages, commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth/pass.h"
#include "common/base/clock.h"
#include "common/store/signs.h"
#include "tests/unit/worker/api/world.h"
#include "worker/api/handlers.h"
#include "worker/visit/visit.h"

#define CHECK "/v1/queues/concert/check"

static struct world_ticket numbered(struct world *world, uint64_t seq)
{
    return world_ticket(world, WORLD_GENERATION, tl_place_make(0, seq));
}

/* As if so many had come that none is allowed for the next minute. */
static void use_up(struct world *world, enum tl_limiter_kind kind, const struct tl_address *who,
                   uint64_t most)
{
    int64_t later_ms = tl_clock_ms() + 50000;
    while (tl_limiter_allow(world->limiter, kind, who, most, later_ms))
        ;
}

/* ---- forged tokens ---- */

struct bearer {
    char text[TL_PASS_MAX + 8];
};

/* A pass of bob for a place of lane 0, as of this event. */
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

/* Replaces a character of the signature. */
static struct bearer forge_pass(const struct bearer *pass)
{
    struct bearer forged = *pass;
    char *last = strrchr(forged.text, '.') + 10;
    *last = *last == 'A' ? 'B' : 'A';
    return forged;
}

static struct tl_request check_from(struct world *world, const char *peer, const char *bearer)
{
    struct tl_request request = {
        .method = "GET", .path = CHECK, .peer = peer, .headers = {{"Authorization", bearer}}};
    world_handle(world, &request);
    return request;
}

static void forged_passes_are_soon_refused_unread(void **state)
{
    struct world *world = *state;
    const struct bearer known = pass_of(world, WORLD_GENERATION, 1, 100);
    const struct bearer fresh = pass_of(world, WORLD_GENERATION, 1, 99);
    const struct bearer forged = forge_pass(&known);
    struct tl_request request = check_from(world, "192.0.2.1", known.text);
    assert_answer(&request, 204, "");
    unsigned tries = 0;
    do
        request = check_from(world, "192.0.2.1", forged.text);
    while (request.status == 401 && ++tries < 1000);
    assert_in_range(tries, 100, 200); /* more than 100 if that took so long */
    assert_problem(&request, 429, "too-many-forgeries");
    assert_non_null(fake_answer_header(&request, "Retry-After"));
    request = check_from(world, "192.0.2.1", fresh.text);
    if (request.status == 204) /* it did */
        return;
    assert_problem(&request, 429, "too-many-forgeries");
    request = check_from(world, "192.0.2.1", known.text); /* needs no verifying */
    assert_answer(&request, 204, "");
    const struct world_ticket ticket = numbered(world, 1);
    request = check_from(world, "192.0.2.1", ticket.text);
    assert_answer(&request, 204, "");
    request = check_from(world, "192.0.2.2", fresh.text);
    assert_answer(&request, 204, "");
}

static struct tl_request check_with_ticket(struct world *world, const char *pass,
                                           const struct world_ticket *ticket)
{
    struct tl_request request = {
        .method = "GET",
        .path = CHECK,
        .peer = "192.0.2.1",
        .headers = {{"Authorization", pass}},
        .cookies = {{"tellerline_concert", ticket->text + strlen("Bearer ")}}};
    world_handle(world, &request);
    return request;
}

/* A client that forges passes is the neighbour of others: not of who brings a ticket, too. And who
 * forges with a ticket shuts out nobody else. */
static void forged_passes_do_not_shut_out_who_has_a_ticket(void **state)
{
    struct world *world = *state;
    const struct bearer genuine = pass_of(world, WORLD_GENERATION, 1, 100);
    const struct world_ticket alice = numbered(world, 4);
    const struct tl_address stands_for_alice = tl_visitor_stand_in("concert", "alice");
    struct tl_address shared;
    use_up(world, TL_LIMITER_PASSES, &stands_for_alice, 100);
    struct tl_request request = check_with_ticket(world, genuine.text, &alice);
    assert_problem(&request, 429, "too-many-forgeries");
    request = check_from(world, "192.0.2.1", genuine.text);
    assert_answer(&request, 204, "");
    const struct world_ticket anna =
        world_signed(world, &(struct tl_ticket){.visitor = "anna",
                                                .generation = WORLD_GENERATION,
                                                .place = tl_place_make(0, 5)});
    const struct bearer other = pass_of(world, WORLD_GENERATION, 1, 99);
    assert_true(tl_address_parse("192.0.2.1", &shared));
    use_up(world, TL_LIMITER_PASSES, &shared, 100);
    request = check_from(world, "192.0.2.1", other.text);
    assert_problem(&request, 429, "too-many-forgeries");
    request = check_with_ticket(world, other.text, &anna);
    assert_answer(&request, 204, "");
}

/* Tokens that cost little are verified, however many were not genuine. */
static void cheap_tokens_are_always_verified(void **state)
{
    struct world *world = *state;
    char body[] = "{\"invite\":\"eyJhbGciOiJIUzI1NiIsImtpZCI6InNob3AifQ.e30.AAAA\"}";
    for (unsigned i = 0; i < 300; i++) {
        struct tl_request request = {.method = "POST",
                                     .path = "/v1/queues/concert/join",
                                     .peer = "192.0.2.1",
                                     .headers = {{"Content-Type", "application/json"}},
                                     .body = body};
        world_handle(world, &request);
        assert_problem(&request, 403, "bad-invite");
        request = check_from(world, "192.0.2.1", "Bearer header.claims.signature");
        assert_answer(&request, 401, "");
    }
}

static void genuine_passes_do_not_count_as_forged(void **state)
{
    struct world *world = *state;
    const struct bearer expired = pass_of(world, WORLD_GENERATION, 1, 98);
    struct tl_request request = check_from(world, "192.0.2.3", expired.text);
    assert_answer(&request, 204, "");
    world->env.store_offset_ms += 640000;
    for (unsigned i = 0; i < 200; i++) {
        request = check_from(world, "192.0.2.3", expired.text);
        assert_answer(&request, 401, "");
    }
    const struct bearer next = pass_of(world, WORLD_GENERATION, 1, 97);
    request = check_from(world, "192.0.2.3", next.text);
    assert_answer(&request, 401, "");
}

/* ---- pages ---- */

static struct tl_request page_from(struct world *world, const char *peer,
                                   const struct world_ticket *ticket)
{
    struct tl_request request = {.method = "GET",
                                 .path = "/q/concert",
                                 .peer = peer,
                                 .headers = {{"Authorization", ticket->text}}};
    world_handle(world, &request);
    return request;
}

static void an_address_has_its_share_of_pages(void **state)
{
    struct world *world = *state;
    const struct world_ticket ticket = numbered(world, 4);
    struct tl_address address;
    assert_true(tl_address_parse("192.0.2.1", &address));
    struct tl_request request = page_from(world, "192.0.2.1", &ticket);
    assert_answer(&request, 200, "data-state=\"waiting\"");
    use_up(world, TL_LIMITER_VIEWS, &address, (uint64_t)4 * 9); /* the world allows nine joins */
    request = page_from(world, "192.0.2.1", &ticket);
    assert_answer(&request, 429, "Please try again");
    assert_non_null(strstr(fake_answer_header(&request, "Refresh"), "; url=/q/concert"));
    assert_non_null(fake_answer_header(&request, "Retry-After"));
    request = page_from(world, "192.0.2.2", &ticket);
    assert_answer(&request, 200, "data-state=\"waiting\"");
}

/* ---- commands ---- */

static struct tl_request post(const struct world_ticket *ticket, const char *path)
{
    return (struct tl_request){
        .method = "POST", .path = path, .headers = {{"Authorization", ticket->text}}};
}

/* Asked too often, the answer is what is known, without the store. */
static void one_ticket_sends_so_many_commands(void **state)
{
    struct world *world = *state;
    const struct tl_address alice = tl_visitor_stand_in("concert", "alice");
    const struct world_ticket active = numbered(world, 1), waits = numbered(world, 4),
                              pending = world_ticket(world, 0, tl_place_make(0, 0));
    const struct world_ticket *const tickets[] = {&waits, &waits, &waits, &pending};
    static const char *const paths[] = {"/v1/queues/concert/renew", "/v1/queues/concert/extend",
                                        "/v1/queues/concert/join", "/v1/queues/concert/join"};
    use_up(world, TL_LIMITER_REPEATS, &alice, 120);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct tl_request request = post(tickets[i], paths[i]);
        world_handle(world, &request);
        assert_answer(&request, i < 3 ? 200 : 202, "\"visitor\":\"alice\"");
    }
    assert_int_equal(tl_queues_in_flight(&world->worker->queues), 0);
    struct tl_request request = post(&active, "/v1/queues/concert/complete");
    world_handle(world, &request); /* it ends the place, so it is sent */
    assert_waits(&request);
    world_applied(world, world_batch(world, true), 0);
}

/* ---- what operators are told ---- */

/* The data of a queue in trouble is damaged, and nothing is added to it. */
static void signs_of_misuse_are_noted_of_sound_queues(void **state)
{
    struct world *world = *state;
    const struct bearer known = pass_of(world, WORLD_GENERATION, 1, 100);
    const struct bearer forged = forge_pass(&known);
    int64_t now_ms = tl_clock_ms();
    for (unsigned turn = 1; turn <= 3; turn++) {
        if (turn > 1)
            world_take(world,
                       (struct tl_change){.kind = turn == 2 ? TL_CHANGE_TROUBLE : TL_CHANGE_SOUND});
        const struct tl_request failed = check_from(world, "192.0.2.1", forged.text);
        assert_answer(&failed, 401, "");
        tl_misuse_tick(world->worker, now_ms += TL_SIGNS_PERIOD_MS);
        assert_int_equal(world->noted, turn - turn / 2);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(forged_passes_are_soon_refused_unread),
        TEST(forged_passes_do_not_shut_out_who_has_a_ticket),
        TEST(cheap_tokens_are_always_verified),
        TEST(genuine_passes_do_not_count_as_forged),
        TEST(an_address_has_its_share_of_pages),
        TEST(one_ticket_sends_so_many_commands),
        TEST(signs_of_misuse_are_noted_of_sound_queues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
