/* SPDX-License-Identifier: Apache-2.0 */
/* The list of a draw, page by page, with the test in the place of the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth/draw.h"
#include "common/base/clock.h"
#include "tests/unit/worker/api/world.h"
#include "worker/visit/visit.h"

#define DRAW  "/v1/queues/concert/draw"
#define HASH  "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define SEED  "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
#define DRAWN 2500

static void set_draw(struct world *world, enum tl_draw_phase phase, const char *hash)
{
    struct tl_recovery known = {.present = WORLD_GENERATION,
                                .draw = {.phase = phase,
                                         .opens_at_ms = WORLD_STORE_MS,
                                         .announced_for_ms = WORLD_STORE_MS,
                                         .drawn = DRAWN}};
    snprintf(known.draw.hash, sizeof(known.draw.hash), "%s", hash);
    if (phase == TL_DRAW_DONE)
        snprintf(known.draw.seed, sizeof(known.draw.seed), "%s", SEED);
    world->settings.order = TL_ORDER_DRAW;
    world->settings.opens_at_ms = WORLD_STORE_MS;
    world_load(world);
    world_take(world, (struct tl_change){.kind = TL_CHANGE_RECOVERY, .recovery = known});
}

static struct tl_request ask(const char *after, const char *limit)
{
    return (struct tl_request){.method = "GET",
                               .path = DRAW,
                               .queries = {{after != NULL ? "starting_after" : NULL, after},
                                           {limit != NULL ? "limit" : NULL, limit}}};
}

/* The store's answer to the last question: ids of zeros. */
static void read_ids(struct world *world, size_t n)
{
    static const unsigned char ids[1000 * TL_DRAW_ID_BYTES];
    tl_waits_drawn(world->worker, world->number, ids, n * TL_DRAW_ID_BYTES);
}

static void before_the_draw_there_is_the_hash_only(void **state)
{
    struct world *world = *state;
    set_draw(world, TL_DRAW_NONE, HASH);
    struct tl_request request = world_send(world, "GET", DRAW, NULL);
    assert_answer(&request, 200,
                  "\"phase\":\"none\",\"drawn\":0,\"hash\":\"" HASH "\",\"has_more\":false}");
    assert_string_equal(request.cache, "");
    assert_null(fake_answer_header(&request, "ETag"));
    assert_int_equal(world->asked, 0);
}

static void a_page_comes_from_the_store(void **state)
{
    struct world *world = *state;
    set_draw(world, TL_DRAW_DONE, HASH);
    struct tl_request request = ask("2498", "10");
    world_handle(world, &request);
    assert_waits(&request);
    assert_int_equal(world->worker->waits.lists[TL_WAIT_PAGE].count, 1);
    assert_int_equal(world->from, 2499);
    assert_int_equal(world->n, 2);
    read_ids(world, 2);
    assert_answer(&request, 200,
                  "\"drawn\":2500,\"hash\":\"" HASH "\",\"seed\":\"" SEED "\",\"ids\":["
                  "\"00000000000000000000000000000000\",\"00000000000000000000000000000000\"],"
                  "\"has_more\":false}");
    assert_string_equal(request.cache, "public, max-age=3600");
    assert_int_equal(world->worker->waits.lists[TL_WAIT_PAGE].count, 0);
}

static void a_whole_page_has_a_thousand(void **state)
{
    struct world *world = *state;
    set_draw(world, TL_DRAW_DONE, HASH);
    struct tl_request request = ask(NULL, NULL);
    world_handle(world, &request);
    assert_int_equal(world->from, 1);
    assert_int_equal(world->n, 1000);
    read_ids(world, 1000);
    assert_answer(&request, 200, "\"ids\":[\"00");
    assert_true(request.length > 35000);
}

static void a_known_page_is_not_asked_for_again(void **state)
{
    struct world *world = *state;
    set_draw(world, TL_DRAW_DONE, HASH);
    struct tl_request first = ask("0", "3");
    world_handle(world, &first);
    read_ids(world, 3);
    char tag[64];
    snprintf(tag, sizeof(tag), "%s", fake_answer_header(&first, "ETag"));
    struct tl_request again = ask("0", "3"), other = ask("0", "4");
    again.headers[0] = other.headers[0] = (struct fake_value){"If-None-Match", tag};
    world_handle(world, &again);
    assert_answer(&again, 304, "");
    assert_int_equal(world->asked, 1);
    world_handle(world, &other);
    assert_waits(&other);
    read_ids(world, 4);
    set_draw(world, TL_DRAW_DONE, SEED); /* another draw */
    struct tl_request changed = ask("0", "3");
    changed.headers[0] = again.headers[0];
    world_handle(world, &changed);
    assert_waits(&changed);
    read_ids(world, 3);
    assert_answer(&changed, 200, "");
}

static void behind_the_last_place_there_is_nothing(void **state)
{
    struct world *world = *state;
    set_draw(world, TL_DRAW_DONE, HASH);
    struct tl_request behind = ask("2500", NULL), none = ask("0", "0");
    world_handle(world, &behind);
    assert_answer(&behind, 200, "\"ids\":[],\"has_more\":false}");
    world_handle(world, &none);
    assert_answer(&none, 200, "\"ids\":[],\"has_more\":true}");
    assert_int_equal(world->asked, 0);
}

static void what_is_no_place_is_refused(void **state)
{
    struct world *world = *state;
    static const char *const wrong[] = {"", "1.5", "x", "1x", "-1", " 1", "99999999999999"};
    set_draw(world, TL_DRAW_DONE, HASH);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct tl_request request = ask(wrong[i], NULL);
        world_handle(world, &request);
        assert_problem(&request, 400, "bad-query");
    }
    struct tl_request request = ask("0", "1001");
    world_handle(world, &request);
    assert_problem(&request, 400, "bad-query");
    request = world_send(world, "GET", "/v1/queues/nowhere/draw", NULL);
    assert_problem(&request, 404, "no-such-queue");
}

static void a_lost_list_is_not_found(void **state)
{
    struct world *world = *state;
    set_draw(world, TL_DRAW_DONE, HASH);
    struct tl_request request = ask("0", "3");
    world_handle(world, &request);
    read_ids(world, 2);
    assert_problem(&request, 404, "not-found");
}

static void without_the_store_it_is_refused(void **state)
{
    struct world *world = *state;
    set_draw(world, TL_DRAW_DONE, HASH);
    world->deaf = true;
    struct tl_request request = ask("0", "3");
    world_handle(world, &request);
    assert_problem(&request, 503, "store-unavailable");
    world->deaf = false;
    struct tl_request silent = ask("0", "3"), failed = ask("0", "3"), changed = ask("0", "3");
    world_handle(world, &failed);
    tl_waits_drawn(world->worker, world->number, NULL, 0);
    assert_problem(&failed, 503, "store-unavailable");
    world_handle(world, &changed);
    set_draw(world, TL_DRAW_DONE, SEED); /* meanwhile */
    read_ids(world, 3);
    assert_problem(&changed, 503, "store-unavailable");
    world_handle(world, &silent);
    tl_worker_tick(world->worker, tl_clock_ms() + 1000);
    assert_waits(&silent);
    tl_worker_tick(world->worker, tl_clock_ms() + 60000);
    assert_problem(&silent, 503, "store-unavailable");
    read_ids(world, 3); /* too late */
    world->env.ingest_up = false;
    request = ask("0", "3");
    world_handle(world, &request);
    assert_problem(&request, 503, "store-unavailable");
    assert_int_equal(world->worker->waits.lists[TL_WAIT_PAGE].count, 0);
}

static void many_at_once_are_refused(void **state)
{
    struct world *world = *state;
    struct tl_request requests[16], more = ask("0", "3");
    set_draw(world, TL_DRAW_DONE, HASH);
    for (size_t i = 0; i < 16; i++) {
        requests[i] = ask("0", "3");
        world_handle(world, &requests[i]);
        assert_waits(&requests[i]);
    }
    world_handle(world, &more);
    assert_problem(&more, 503, "busy");
    world->env.draining = true;
    tl_worker_stop(world->worker);
    for (size_t i = 0; i < 16; i++)
        assert_problem(&requests[i], 503, "stopping");
}

static void an_address_has_so_many_a_second(void **state)
{
    struct world *world = *state;
    bool limited = false;
    set_draw(world, TL_DRAW_DONE, HASH);
    for (int i = 0; i < 60 && !limited; i++) {
        struct tl_request request = ask("0", "0");
        request.peer = "192.0.2.1";
        world_handle(world, &request);
        limited = request.status == 429;
        assert_true(limited || request.status == 200);
        assert_true(!limited || i >= 20);
    }
    assert_true(limited);
    struct tl_request other = ask("0", "0");
    other.peer = "192.0.2.2";
    world_handle(world, &other);
    assert_answer(&other, 200, "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(before_the_draw_there_is_the_hash_only),
        CASE(a_page_comes_from_the_store),
        CASE(a_whole_page_has_a_thousand),
        CASE(a_known_page_is_not_asked_for_again),
        CASE(behind_the_last_place_there_is_nothing),
        CASE(what_is_no_place_is_refused),
        CASE(a_lost_list_is_not_found),
        CASE(without_the_store_it_is_refused),
        CASE(many_at_once_are_refused),
        CASE(an_address_has_so_many_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
