/* SPDX-License-Identifier: Apache-2.0 */
/* A draw, and a store that comes back without the end of its history; and who leaves meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/auth/draw.h"
#include "common/base/units.h"
#include "common/config/queue_settings.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/state.h"
#include "ingest.h"

/* RETURN_MS: in which visitors come back whose joins were lost, and one more (admitter/draw.lua).
 */
enum { TURN_MS = 1000, RETURN_MS = 5001, MANY = 8000 };

static char key_path[64];

static int open_all(void **state)
{
    snprintf(key_path, sizeof(key_path), "/tmp/test_draw_lost.%d", (int)getpid());
    return test_store_open_kept(state);
}

static int close_all(void **state)
{
    (void)unlink(key_path);
    return test_store_close(state);
}

static void make_queue(struct test_store *store)
{
    char settings[128], opens_at[TL_UNITS_TEXT_MAX];
    tl_time_format(test_redis_ms(store->redis) + 3600000, opens_at, sizeof(opens_at));
    snprintf(settings, sizeof(settings), "lanes=only capacity=5 order=draw opens_at=%s", opens_at);
    test_store_queue(store, settings);
}

static void open_at(struct test_store *store, struct tl_drawer *drawer, int64_t opens_at_ms)
{
    struct tl_error err = {0};
    test_redis_ask(store->redis, "HSET %s opens_at %lld", store->keys.names[TL_KEY_CONFIG],
                   (long long)opens_at_ms);
    if (!tl_drawer_announce(drawer, test_held(store, 0), opens_at_ms, &err))
        fail_msg("%s", err.text);
}

/* What has joined by now has joined before. */
static int64_t open_queue(struct test_store *store, struct tl_drawer *drawer)
{
    int64_t opens_at_ms = test_redis_ms(store->redis) + 1;
    open_at(store, drawer, opens_at_ms);
    return opens_at_ms;
}

static struct tl_drawer *new_drawer(void)
{
    struct tl_drawer *drawer = tl_drawer_new(key_path, 1000, &test_actor);
    assert_non_null(drawer);
    return drawer;
}

static void draw_all(struct test_store *store, struct tl_drawer *drawer, int64_t opens_at_ms)
{
    struct tl_draw *draw = NULL;
    enum tl_draw_state state;
    test_redis_pass_time(store->redis, 2);
    while ((state = test_hold_draw(store, drawer, opens_at_ms, TURN_MS, &draw)) == TL_DRAW_GOES_ON)
        continue;
    assert_int_equal(state, TL_DRAW_OVER);
}

/* The store loses all that was done since its history had this length, but not the opening, and a
 * new incarnation begins. */
static void lose_tail(struct test_store *store, struct tl_drawer *drawer, long long history,
                      int64_t opens_at_ms)
{
    test_redis_lose_tail(store->server, history);
    tl_redis_free(&store->redis);
    store->redis = test_redis_connect(store->server);
    tl_apply_free(&store->apply); /* with the functions that the former server knew */
    store->apply = tl_apply_new(10000);
    assert_non_null(store->apply);
    open_at(store, drawer, opens_at_ms);
    test_redis_ask(store->redis, "HSET %s fence 1", store->keys.names[TL_KEY_STATE]);
}

static void restore(struct test_store *store, const char *visitor, long long place)
{
    const struct tl_command command = {
        .kind = TL_COMMAND_RESTORE,
        .visitor = visitor,
        .visitor_length = strlen(visitor),
        .numbers = {(tl_place)place, (uint64_t)test_state(store, "generation")}};
    test_add(store, &command);
}

/* The answer to a RESTORE of this place is that the visitor waits at that one. */
static void leads_to(struct test_store *store, const char *visitor, long long place,
                     long long found)
{
    char expected[64];
    restore(store, visitor, place);
    test_batch(store);
    snprintf(expected, sizeof(expected), "0:1:%lld", found);
    test_exceptions_are(store, expected);
    assert_int_equal(test_waiting_place(store, visitor), found);
}

/* The line, as text: visitors separated by spaces. Freed by the caller. */
static char *line(struct test_store *store)
{
    struct tl_reply *reply = test_redis_call(store->redis, "ZRANGE tl:{q}:waiting 0 -1");
    size_t n = tl_reply_count(reply), at = 0;
    char *text = calloc(n * 65 + 1, 1);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        at += (size_t)sprintf(text + at, "%s ", tl_reply_string(tl_reply_at(reply, i), NULL));
    tl_reply_free(reply);
    return text;
}

/* Who came after the opening stands behind the drawn, in whichever history; and those stand in
 * the order of the draw, also those who had heard of the lost one. */
static void an_opening_in_the_lost_end_comes_again(void **state)
{
    struct test_store *store = *state;
    struct tl_drawer *drawer = new_drawer();
    long long late[4], heard[31];
    char visitor[16];
    make_queue(store);
    test_join_many(store, "v", 30, 0);
    int64_t opens_at_ms = open_queue(store, drawer);
    long long history = test_redis_history(store->server);
    draw_all(store, drawer, opens_at_ms);
    test_join_many(store, "late", 3, 0);
    char *before = line(store);
    for (int i = 1; i <= 30; i++) {
        snprintf(visitor, sizeof(visitor), "v%d", i);
        heard[i] = test_waiting_place(store, visitor);
    }
    for (int i = 1; i <= 3; i++) {
        snprintf(visitor, sizeof(visitor), "late%d", i);
        late[i] = test_waiting_place(store, visitor);
    }
    lose_tail(store, drawer, history, opens_at_ms);
    assert_int_equal(test_state(store, "waiting"), 30);

    test_join_many(store, "new", 3, 0);
    for (int i = 3; i >= 1; i--) {
        snprintf(visitor, sizeof(visitor), "late%d", i);
        restore(store, visitor, late[i]);
    }
    test_batch(store);
    test_exceptions_are(store, "");
    leads_to(store, "v7", heard[7], test_waiting_place(store, "v7"));
    struct tl_draw *draw = NULL;
    assert_int_equal(test_hold_draw(store, drawer, opens_at_ms, TURN_MS, &draw), TL_DRAW_WAITS);
    test_redis_pass_time(store->redis, RETURN_MS);
    draw_all(store, drawer, opens_at_ms);
    char *after = line(store);
    size_t length = strlen(before);
    assert_memory_equal(after, before, length);
    assert_string_equal(after + length, "new1 new2 new3 ");
    for (int i = 1; i <= 30; i++) {
        snprintf(visitor, sizeof(visitor), "v%d", i);
        long long now = test_waiting_place(store, visitor);
        for (int j = 1; j <= 30; j++)
            assert_int_not_equal(now, heard[j]); /* told to somebody else, perhaps */
        leads_to(store, visitor, heard[i], now);
    }
    test_invariants(store->redis, &store->keys);
    free(before);
    free(after);
    tl_drawer_free(&drawer);
}

/* Of a join that was lost with the opening: drawn again, also with the place to which the lost draw
 * had led. */
static void a_lost_join_takes_part(void **state)
{
    struct test_store *store = *state;
    struct tl_drawer *drawer = new_drawer();
    char expected[64];
    make_queue(store);
    test_join_many(store, "v", 20, 0);
    long long history = test_redis_history(store->server);
    test_join_many(store, "w", 3, 0);
    long long first = test_waiting_place(store, "w1");
    int64_t opens_at_ms = open_queue(store, drawer);
    draw_all(store, drawer, opens_at_ms);
    long long heard = test_waiting_place(store, "w2");
    char *before = line(store);
    lose_tail(store, drawer, history, opens_at_ms);
    restore(store, "w1", first);
    restore(store, "w2", heard);
    restore(store, "w3", first + 2);
    test_batch(store);
    long long found = test_waiting_place(store, "w2");
    assert_true(found > 0 && found < heard);
    snprintf(expected, sizeof(expected), "1:1:%lld", found);
    test_exceptions_are(store, expected);
    test_redis_pass_time(store->redis, RETURN_MS);
    draw_all(store, drawer, opens_at_ms);
    char *after = line(store);
    assert_string_equal(after, before);
    leads_to(store, "w2", heard, test_waiting_place(store, "w2"));
    test_invariants(store->redis, &store->keys);
    free(before);
    free(after);
    tl_drawer_free(&drawer);
}

/* Who has the ticket of a lost step waits as the store says. */
static void a_lost_step_is_done_again(void **state)
{
    struct test_store *store = *state;
    struct tl_drawer *drawer = new_drawer();
    struct tl_draw *draw = NULL;
    make_queue(store);
    test_join_many(store, "v", MANY, 0);
    int64_t opens_at_ms = open_queue(store, drawer);
    test_redis_pass_time(store->redis, 2);
    while (test_redis_ask(store->redis, "STRLEN tl:{q}:drawn") <= TL_DRAW_ID_BYTES)
        (void)test_hold_draw(store, drawer, opens_at_ms, 1, &draw);
    long long history = test_redis_history(store->server);
    draw_all(store, drawer, opens_at_ms);
    char *before = line(store);
    char *last = strrchr(before, 'v'), *end = strchr(last, ' ');
    char visitor[16];
    snprintf(visitor, sizeof(visitor), "%.*s", (int)(end - last), last);
    long long heard = test_waiting_place(store, visitor);
    tl_draw_free(&draw);
    lose_tail(store, drawer, history, opens_at_ms);
    long long waits = test_waiting_place(store, visitor);
    assert_true(waits < heard);
    leads_to(store, visitor, heard, waits);
    draw_all(store, drawer, opens_at_ms);
    char *after = line(store);
    assert_string_equal(after, before);
    assert_true(test_waiting_place(store, visitor) > heard);
    leads_to(store, visitor, heard, test_waiting_place(store, visitor));
    test_invariants(store->redis, &store->keys);
    free(before);
    free(after);
    tl_drawer_free(&drawer);
}

/* Lines of workers know the places of before until the draw is done. */
static void who_leaves_meanwhile_is_gone_under_both_places(void **state)
{
    struct test_store *store = *state;
    struct test_entry last;
    struct tl_drawer *drawer = new_drawer();
    char expected[64];
    make_queue(store);
    test_join_many(store, "v", 20, 0);
    long long before = test_waiting_place(store, "v4");
    draw_all(store, drawer, open_queue(store, drawer));
    long long after = test_waiting_place(store, "v4");
    assert_true(after > before);
    test_command(store, TL_COMMAND_LEAVE, "v4", (tl_place)before);
    test_batch(store);
    test_entry_read(store, &last);
    snprintf(expected, sizeof(expected), "%lld+1 %lld+1", before, after);
    test_runs_are(test_event(&last, TL_EVENT_REMOVED, TL_REASON_LEFT), expected);
    assert_int_equal(last.entry.waiting, 19);
    test_entry_free(&last);
    tl_drawer_free(&drawer);
    test_invariants(store->redis, &store->keys);
}

/* Seqs jump at the opening, so those of a lost end lie ahead of the time. */
static void numbers_after_a_lost_opening_are_not_given_again(void **state)
{
    struct test_store *store = *state;
    struct tl_drawer *drawer = new_drawer();
    make_queue(store);
    test_join_many(store, "v", 5, 0);
    int64_t opens_at_ms = open_queue(store, drawer);
    long long history = test_redis_history(store->server), last = 0;
    for (int round = 0; round < 3; round++) {
        test_redis_pass_time(store->redis, 2);
        test_join_many(store, "late", 100, 0);
        assert_true(test_waiting_place(store, "late1") > last);
        last = test_waiting_place(store, "late100");
        lose_tail(store, drawer, history, opens_at_ms);
        assert_int_equal(test_state(store, "waiting"), 5);
    }
    tl_drawer_free(&drawer);
}

/* The store lost everything: places of the lost generation must lie below new ones, also those that
 * were given after the opening. */
static void a_queue_made_after_the_opening_numbers_above_all_latecomers(void **state)
{
    struct test_store *store = *state;
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    settings.order = TL_ORDER_DRAW;
    settings.opens_at_ms = test_redis_ms(store->redis) - 1000;
    tl_keys_init(&store->keys, "tl:", "q");
    long long base =
        (long long)((double)(test_redis_ms(store->redis) - TL_SEQ_EPOCH_MS) * TL_SEQ_PER_MS);
    assert_true(
        tl_queue_ensure(TEST_SITE(store->redis), "tl:", "q", &settings, &test_actor, NULL, NULL));
    assert_true(test_state(store, "seq") >= base + TL_DRAW_ROOM);
    assert_int_equal(test_state(store, "base_seq"), test_state(store, "seq"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_opening_in_the_lost_end_comes_again, test_store_clean),
        cmocka_unit_test_setup(a_lost_join_takes_part, test_store_clean),
        cmocka_unit_test_setup(a_lost_step_is_done_again, test_store_clean),
        cmocka_unit_test_setup(who_leaves_meanwhile_is_gone_under_both_places, test_store_clean),
        cmocka_unit_test_setup(numbers_after_a_lost_opening_are_not_given_again, test_store_clean),
        cmocka_unit_test_setup(a_queue_made_after_the_opening_numbers_above_all_latecomers,
                               test_store_clean),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
