/* SPDX-License-Identifier: Apache-2.0 */
/* The apply function: places that go to another device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "admitter/draw.h"
#include "common/store/snapshot.h"
#include "common/store/tail.h"
#include "ingest.h"

#define SERIALS "tl:{q}:serials"

static void hand_over(struct test_store *store, const char *visitor, tl_place place,
                      uint64_t serial, uint64_t device)
{
    const struct tl_command command = {.kind = TL_COMMAND_HAND_OVER,
                                       .visitor = visitor,
                                       .visitor_length = strlen(visitor),
                                       .numbers = {place, serial, device}};
    test_add(store, &command);
}

/* The serial that the last entry tells of, or 0. */
static uint32_t told(struct test_store *store, const char *runs)
{
    struct test_entry last;
    test_entry_read(store, &last);
    const struct tl_event *event = test_event(&last, TL_EVENT_HANDED, 0);
    uint32_t serial = event != NULL ? event->serial : 0;
    if (event != NULL)
        test_runs_are(event, runs);
    test_entry_free(&last);
    return serial;
}

static void anna_and_bob_wait(struct test_store *store, const char *settings)
{
    test_store_queue(store, settings);
    test_join(store, "anna", 0);
    test_join(store, "bob", 0);
    test_batch(store);
}

static void the_first_code_of_a_serial_wins(void **state)
{
    struct test_store *store = *state;
    anna_and_bob_wait(store, "lanes=only");
    hand_over(store, "anna", 1, 1, 77);
    hand_over(store, "anna", 1, 1, 88);
    test_batch(store);
    test_exceptions_are(store, "1:1:1");
    assert_int_equal(told(store, "1+1"), 1);
    hand_over(store, "anna", 1, 1, 88);
    test_batch(store);
    test_exceptions_are(store, "0:1:1");
    assert_int_equal(told(store, ""), 0);
    hand_over(store, "anna", 1, 1, 77); /* the winner repeats it: the first answer was lost */
    test_batch(store);
    test_exceptions_are(store, "");
    assert_int_equal(told(store, ""), 0);
    hand_over(store, "anna", 1, 2, 88);
    test_batch(store);
    test_exceptions_are(store, "");
    assert_int_equal(told(store, "1+1"), 2);
    hand_over(store, "anna", 1, 1, 77);
    test_batch(store);
    test_exceptions_are(store, "0:1:1");
    test_invariants(store->redis, &store->keys);
}

static void only_places_that_wait_are_handed_over(void **state)
{
    struct test_store *store = *state;
    anna_and_bob_wait(store, "lanes=only capacity=1");
    assert_int_equal(test_admit(store, 1), 1);
    hand_over(store, "anna", 1, 1, 77);   /* is active */
    hand_over(store, "bob", 1, 1, 77);    /* holds another place */
    hand_over(store, "nobody", 3, 1, 77); /* holds none */
    test_batch(store);
    test_exceptions_are(store, "0:2:1 1:3:1 2:3:3");
    assert_int_equal(test_redis_ask(store->redis, "EXISTS " SERIALS), 0);
    hand_over(store, "anna", 1, 1, 0); /* a ticket proves it */
    hand_over(store, "bob", 2, 3, 0);
    test_batch(store);
    test_exceptions_are(store, "");
    hand_over(store, "bob", 2, 2, 0); /* an older one */
    hand_over(store, "bob", 2, 3, 9);
    test_batch(store);
    test_exceptions_are(store, "1:1:2");
    test_invariants(store->redis, &store->keys);
}

static void a_serial_ends_with_its_place(void **state)
{
    struct test_store *store = *state;
    anna_and_bob_wait(store, "lanes=only capacity=1");
    hand_over(store, "anna", 1, 1, 77);
    hand_over(store, "bob", 2, 1, 77);
    test_batch(store);
    assert_int_equal(test_redis_ask(store->redis, "HLEN " SERIALS), 2);
    test_command(store, TL_COMMAND_LEAVE, "bob", 2);
    test_batch(store);
    assert_int_equal(test_redis_ask(store->redis, "HLEN " SERIALS), 1);
    assert_int_equal(test_redis_ask(store->redis, "HEXISTS " SERIALS " 1"), 1);
    assert_int_equal(test_admit(store, 1), 1); /* an admission is no end */
    assert_int_equal(test_redis_ask(store->redis, "HLEN " SERIALS), 1);
    test_command(store, TL_COMMAND_COMPLETE, "anna", 1);
    test_batch(store);
    assert_int_equal(test_redis_ask(store->redis, "EXISTS " SERIALS), 0);
    hand_over(store, "anna", 1, 2, 77);
    test_batch(store);
    test_exceptions_are(store, "0:3:1");
    test_invariants(store->redis, &store->keys);
}

static void places_of_another_generation_are_nobodys(void **state)
{
    struct test_store *store = *state;
    anna_and_bob_wait(store, "lanes=only");
    store->writer.generation = 7;
    hand_over(store, "anna", 1, 1, 77);
    test_batch(store);
    store->writer.generation = 0;
    test_exceptions_are(store, "0:3:0");
    assert_int_equal(test_redis_ask(store->redis, "EXISTS " SERIALS), 0);
}

/* Nothing undoes a function that fails half-way. */
static void a_key_of_another_type_stops_nothing_half_way(void **state)
{
    struct test_store *store = *state;
    struct tl_apply_counts counts = {0};
    struct tl_error err = {0};
    anna_and_bob_wait(store, "lanes=only");
    test_redis_ask(store->redis, "LPUSH " SERIALS " x");
    hand_over(store, "anna", 1, 1, 77);
    test_send(store, "w", ++store->number, NULL);
    assert_int_equal(test_deliver(store), 1);
    assert_false(test_apply_pending(store, 1, &counts, &err));
    test_redis_ask(store->redis, "DEL " SERIALS);
    assert_true(test_apply_pending(store, 1, &counts, &err));
    assert_int_equal(counts.applied, 1);
    test_redis_ask(store->redis, "DEL " SERIALS);
    test_redis_ask(store->redis, "LPUSH " SERIALS " x");
    test_command(store, TL_COMMAND_LEAVE, "anna", 1); /* an end goes on */
    test_batch(store);
    test_exceptions_are(store, "");
    test_invariants(store->redis, &store->keys);
}

static void a_snapshot_has_the_serials(void **state)
{
    struct test_store *store = *state;
    struct tl_tail_head head;
    struct tl_error err = {0};
    anna_and_bob_wait(store, "lanes=only");
    hand_over(store, "bob", 2, 5, 77);
    test_batch(store);
    test_redis_ask(store->redis, "HSET " SERIALS " x 1:1:x 9 damaged 99999999999999999999 1:1:x");
    struct tl_line *line = tl_snapshot(store->redis, &store->keys, &head, &err);
    assert_non_null(line);
    assert_int_equal(tl_line_serial(line, 2), 5);
    assert_int_equal(tl_line_serial(line, tl_place_make(3, 2)), 5); /* in any lane */
    assert_int_equal(tl_line_serial(line, 1), 0);
    tl_line_free(&line);
}

/* The operator sets a draw late: one who waits before it was on another device. */
static void a_draw_takes_the_serials_along(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    struct tl_draw *draw = NULL;
    struct tl_tail_head head;
    enum tl_draw_state is = TL_DRAW_GOES_ON;
    char path[64];
    snprintf(path, sizeof(path), "/tmp/test_apply_handover.%d", (int)getpid());
    anna_and_bob_wait(store, "lanes=only");
    test_join(store, "zoe", 0);
    test_batch(store);
    hand_over(store, "anna", 1, 3, 77);
    hand_over(store, "zoe", 3, 1, 88);
    test_batch(store);
    int64_t opens_at_ms = test_redis_ms(store->redis);
    test_redis_ask(store->redis, "HSET %s order draw opens_at %lld",
                   store->keys.names[TL_KEY_CONFIG], (long long)opens_at_ms);
    struct tl_drawer *drawer = tl_drawer_new(path, 1000, &test_actor);
    assert_true(tl_drawer_announce(drawer, test_held(store, 0), opens_at_ms, &err));
    /* A key of another type stops the step before it has numbered anybody. */
    test_redis_ask(store->redis, "RENAME " SERIALS " tl:{q}:aside");
    test_redis_ask(store->redis, "LPUSH " SERIALS " x");
    assert_false(tl_drawer_hold(drawer, test_held(store, 0), opens_at_ms, 1000, &draw, &is, &err));
    assert_int_equal(test_waiting_place(store, "anna"), 1);
    test_redis_ask(store->redis, "RENAME tl:{q}:aside " SERIALS);
    while (is != TL_DRAW_OVER)
        assert_true(
            tl_drawer_hold(drawer, test_held(store, 0), opens_at_ms, 1000, &draw, &is, &err));
    tl_drawer_free(&drawer);
    (void)unlink(path);

    tl_place anna = (tl_place)test_waiting_place(store, "anna");
    tl_place zoe = (tl_place)test_waiting_place(store, "zoe");
    assert_true(anna > 3);
    assert_int_equal(test_redis_ask(store->redis, "HLEN " SERIALS), 2); /* none of before */
    struct tl_line *line = tl_snapshot(store->redis, &store->keys, &head, &err);
    assert_non_null(line);
    assert_int_equal(tl_line_serial(line, anna), 3);
    assert_int_equal(tl_line_serial(line, zoe), 1);
    assert_int_equal(tl_line_serial(line, (tl_place)test_waiting_place(store, "bob")), 0);
    tl_line_free(&line);
    char expected[64];
    snprintf(expected, sizeof(expected), "0:1:%llu", (unsigned long long)anna);
    hand_over(store, "anna", anna, 3, 99); /* a code of before the last hand-over */
    hand_over(store, "anna", anna, 3, 77); /* the winner repeats it */
    test_batch(store);
    test_exceptions_are(store, expected);
    test_command(store, TL_COMMAND_LEAVE, "anna", anna);
    test_batch(store);
    assert_int_equal(test_redis_ask(store->redis, "HLEN " SERIALS), 1);
    test_invariants(store->redis, &store->keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_first_code_of_a_serial_wins, test_store_clean),
        cmocka_unit_test_setup(only_places_that_wait_are_handed_over, test_store_clean),
        cmocka_unit_test_setup(a_serial_ends_with_its_place, test_store_clean),
        cmocka_unit_test_setup(places_of_another_generation_are_nobodys, test_store_clean),
        cmocka_unit_test_setup(a_key_of_another_type_stops_nothing_half_way, test_store_clean),
        cmocka_unit_test_setup(a_snapshot_has_the_serials, test_store_clean),
        cmocka_unit_test_setup(a_draw_takes_the_serials_along, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
