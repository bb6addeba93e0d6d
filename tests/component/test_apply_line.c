/* SPDX-License-Identifier: Apache-2.0 */
/* The apply function: joining and leaving. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ingest.h"

#define LANE1 (UINT64_C(1) << TL_PLACE_SEQ_BITS)

static void joins_stand_in_the_order_they_came(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join(store, "anna", 0);
    test_join(store, "bert", 0);
    test_batch(store);
    test_join(store, "carl", 0);
    test_batch(store);
    assert_int_equal(test_waiting_place(store, "anna"), 1);
    assert_int_equal(test_waiting_place(store, "bert"), 2);
    assert_int_equal(test_waiting_place(store, "carl"), 3);
    assert_int_equal(test_state(store, "joined"), 3);
    assert_int_equal(test_state(store, "event"), 2);
    test_invariants(store->redis, &store->keys);
}

static void an_event_has_the_first_seq_of_the_batch_and_the_places(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=vip,normal,late");
    test_join_many(store, "early", 4, 1);
    test_join(store, "normal", 1);
    test_join(store, "vip", 0);
    test_join(store, "normal2", 1);
    test_join(store, "late", 2);
    test_join(store, "vip2", 0);
    test_batch(store);
    struct test_entry last;
    test_entry_read(store, &last);
    assert_int_equal(last.entry.n_events, 2);
    const struct tl_event *applied = test_event(&last, TL_EVENT_APPLIED, 0);
    assert_string_equal(applied->worker, "w");
    assert_int_equal(applied->batch, store->number);
    assert_int_equal(applied->first_seq, 5);
    assert_int_equal(applied->n_exceptions, 0);
    char runs[128];
    snprintf(runs, sizeof(runs), "6+1 9+1 %llu+1 %llu+1 %llu+1", (unsigned long long)LANE1 + 5,
             (unsigned long long)LANE1 + 7, (unsigned long long)(2 * LANE1) + 8);
    test_runs_are(test_event(&last, TL_EVENT_JOINED, 0), runs);
    test_entry_free(&last);
    assert_int_equal(test_waiting_place(store, "late"), 2 * LANE1 + 8);
    test_invariants(store->redis, &store->keys);
}

static void the_highest_lane_is_exact(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "capacity=5");
    test_redis_ask(store->redis, "HSET %s seq 281474976710000", store->keys.names[TL_KEY_STATE]);
    test_join(store, "a", TL_LANES_MAX - 1);
    test_join(store, "b", TL_LANES_MAX - 1);
    test_batch(store);
    tl_place place = tl_place_make(TL_LANES_MAX - 1, 281474976710001);
    assert_int_equal(test_waiting_place(store, "a"), place);
    assert_int_equal(test_waiting_place(store, "b"), place + 1);
    char runs[64];
    snprintf(runs, sizeof(runs), "%llu+2", (unsigned long long)place);
    struct test_entry last;
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_JOINED, 0), runs);
    test_entry_free(&last);
    assert_int_equal(test_admit(store, 5), 2);
    test_command(store, TL_COMMAND_COMPLETE, "b", place + 1);
    test_batch(store);
    assert_int_equal(test_end_reason(store, "b"), TL_REASON_COMPLETED);
}

static void a_full_batch_is_one_run(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join_many(store, "v", TL_BATCH_COMMANDS_MAX, 0);
    assert_int_equal(test_state(store, "event"), 1);
    struct test_entry last;
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_JOINED, 0), "1+1000");
    test_entry_free(&last);
    assert_int_equal(test_waiting_place(store, "v1000"), 1000);
    test_invariants(store->redis, &store->keys);
}

static void a_full_batch_of_known_visitors_adds_no_visitor(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=500");
    test_join_many(store, "v", TL_BATCH_COMMANDS_MAX, 0);
    assert_int_equal(test_admit(store, 500), 500);
    test_join_many(store, "v", TL_BATCH_COMMANDS_MAX, 0);
    struct test_entry last;
    test_entry_read(store, &last);
    assert_int_equal(last.entry.n_events, 1);
    const struct tl_event *applied = test_event(&last, TL_EVENT_APPLIED, 0);
    assert_int_equal(applied->n_exceptions, TL_BATCH_COMMANDS_MAX);
    bool found[TL_BATCH_COMMANDS_MAX] = {false};
    for (size_t i = 0; i < applied->n_exceptions; i++) {
        const struct tl_exception *exception = &applied->exceptions[i];
        assert_false(found[exception->index]);
        found[exception->index] = true;
        assert_int_equal(exception->place, exception->index + 1);
        bool active = exception->index < 500;
        assert_int_equal(exception->outcome, active ? TL_OUTCOME_ACTIVE : TL_OUTCOME_WAITING);
        assert_true((exception->deadline_ms > 0) == active);
    }
    test_entry_free(&last);
    assert_int_equal(test_state(store, "joined"), TL_BATCH_COMMANDS_MAX);
    test_invariants(store->redis, &store->keys);
}

static void twice_in_one_batch_is_one_place(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=vip,normal");
    test_join(store, "anna", 1);
    test_join(store, "bert", 1);
    test_join(store, "anna", 0);
    test_join(store, "carl", 1);
    test_batch(store);
    assert_int_equal(test_waiting_place(store, "anna"), LANE1 + 1);
    assert_int_equal(test_waiting_place(store, "carl"), LANE1 + 4);
    assert_int_equal(test_state(store, "joined"), 3);
    char exceptions[64];
    snprintf(exceptions, sizeof(exceptions), "2:1:%llu", (unsigned long long)LANE1 + 1);
    test_exceptions_are(store, exceptions);
    test_invariants(store->redis, &store->keys);
}

static void who_waits_keeps_the_place(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join(store, "anna", 0);
    test_batch(store);
    test_join(store, "bert", 0);
    test_join(store, "anna", 0);
    test_join(store, "carl", 0);
    test_batch(store);
    test_exceptions_are(store, "1:1:1");
    assert_int_equal(test_waiting_place(store, "anna"), 1);
    assert_int_equal(test_waiting_place(store, "carl"), 4); /* each JOIN uses up a seq */
    test_join(store, "anna", 0);
    test_batch(store);
    struct test_entry last;
    test_entry_read(store, &last);
    assert_null(test_event(&last, TL_EVENT_JOINED, 0));
    assert_int_equal(test_event(&last, TL_EVENT_APPLIED, 0)->first_seq, 5);
    test_entry_free(&last);
    test_invariants(store->redis, &store->keys);
}

static void who_is_active_keeps_the_session(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join(store, "anna", 0);
    test_batch(store);
    assert_int_equal(test_admit(store, 1), 1);
    long long deadline = test_deadline(store, "anna");
    test_join(store, "bert", 0);
    test_join(store, "anna", 0);
    test_batch(store);
    struct test_entry last;
    test_entry_read(store, &last);
    const struct tl_event *applied = test_event(&last, TL_EVENT_APPLIED, 0);
    assert_int_equal(applied->n_exceptions, 1);
    assert_int_equal(applied->exceptions[0].index, 1);
    assert_int_equal(applied->exceptions[0].outcome, TL_OUTCOME_ACTIVE);
    assert_int_equal(applied->exceptions[0].place, 1);
    assert_int_equal(applied->exceptions[0].deadline_ms, deadline);
    test_runs_are(test_event(&last, TL_EVENT_JOINED, 0), "2+1");
    test_entry_free(&last);
    assert_int_equal(test_waiting_place(store, "anna"), -1);
    test_invariants(store->redis, &store->keys);
}

static void leaving_before_joining_is_gone(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_command(store, TL_COMMAND_LEAVE, "anna", 1);
    test_join(store, "anna", 0);
    test_batch(store);
    test_exceptions_are(store, "0:3:1");
    assert_int_equal(test_waiting_place(store, "anna"), 1);
    assert_int_equal(test_state(store, "left"), 0);
    test_invariants(store->redis, &store->keys);
}

static void leaving_gives_the_place_up(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join_many(store, "v", 5, 0);
    test_command(store, TL_COMMAND_LEAVE, "v4", 4);
    test_command(store, TL_COMMAND_LEAVE, "v2", 3); /* not the place v2 holds */
    test_command(store, TL_COMMAND_LEAVE, "v3", 3);
    test_command(store, TL_COMMAND_LEAVE, "v3", 3);
    test_batch(store);
    struct test_entry last;
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_REMOVED, TL_REASON_LEFT), "3+2");
    assert_null(test_event(&last, TL_EVENT_FREED, 0));
    test_entry_free(&last);
    test_exceptions_are(store, "1:3:3 3:3:3");
    assert_int_equal(test_end_reason(store, "v3"), TL_REASON_LEFT);
    assert_int_equal(test_waiting_place(store, "v2"), 2);
    assert_int_equal(test_state(store, "waiting"), 3);
    assert_int_equal(test_state(store, "left"), 2);
    test_invariants(store->redis, &store->keys);
}

static void leaving_ends_the_session(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=2");
    test_join_many(store, "v", 3, 0);
    assert_int_equal(test_admit(store, 10), 2);
    test_command(store, TL_COMMAND_LEAVE, "v2", 2);
    test_command(store, TL_COMMAND_LEAVE, "v3", 3);
    test_batch(store);
    struct test_entry last;
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_FREED, TL_REASON_LEFT), "2+1");
    test_runs_are(test_event(&last, TL_EVENT_REMOVED, TL_REASON_LEFT), "3+1");
    assert_int_equal(last.entry.active, 1);
    assert_int_equal(last.entry.waiting, 0);
    test_entry_free(&last);
    assert_int_equal(test_state(store, "left"), 2);
    assert_int_equal(test_deadline(store, "v2"), -1);
    test_invariants(store->redis, &store->keys);
}

static void join_leave_join_in_one_batch_is_a_new_place(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join(store, "anna", 0);
    test_command(store, TL_COMMAND_LEAVE, "anna", 1);
    test_join(store, "anna", 0);
    test_batch(store);
    struct test_entry last;
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_JOINED, 0), "1+2");
    test_runs_are(test_event(&last, TL_EVENT_REMOVED, TL_REASON_LEFT), "1+1");
    assert_int_equal(last.entry.waiting, 1);
    test_entry_free(&last);
    assert_int_equal(test_waiting_place(store, "anna"), 2);
    assert_int_equal(test_state(store, "joined"), 2);
    test_invariants(store->redis, &store->keys);
}

/* One batch with everything that a JOIN can meet: visitors who wait, who are active, who come twice
 * in the batch (in other lanes), an invite, and new visitors before, between and behind them. */
static void each_visitor_in_one_batch_gets_the_right_answer(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=vip,normal capacity=2");
    test_join(store, "active0", 0);
    test_join(store, "active1", 1);
    test_join(store, "waits0", 0);
    test_join(store, "waits1", 1);
    test_batch(store);
    test_command(store, TL_COMMAND_LEAVE, "waits0", 3);
    test_batch(store);
    assert_int_equal(test_admit(store, 2), 2); /* active0 and active1 */
    test_join(store, "waits0", 0);
    test_batch(store);                        /* 5 */
    test_join(store, "new0", 1);              /*  0: 6 */
    test_join(store, "active1", 1);           /*  1: active */
    test_join(store, "waits1", 0);            /*  2: waits at lane 1, 4 */
    test_join(store, "new1", 0);              /*  3: 9 */
    test_join(store, "new0", 0);              /*  4: waits at lane 1, 6 */
    test_join(store, "active0", 0);           /*  5: active */
    test_join(store, "new2", 0);              /*  6: 12 */
    test_join(store, "waits0", 1);            /*  7: waits at 5 */
    test_join_invited(store, "new3", 1, "i"); /*  8: 14 */
    test_join(store, "new4", 1);              /*  9: 15 */
    test_join(store, "new3", 1);              /* 10: waits at lane 1, 14 */
    test_command(store, TL_COMMAND_LEAVE, "waits0", 5);
    test_join(store, "waits0", 1); /* 12: 17, a new place */
    test_batch(store);
    char expected[256];
    const unsigned long long lane1 = LANE1;
    snprintf(expected, sizeof(expected), "1:2:%llu 2:1:%llu 4:1:%llu 5:2:1 7:1:5 10:1:%llu",
             lane1 + 2, lane1 + 4, lane1 + 6, lane1 + 14);
    test_exceptions_are(store, expected);
    struct test_entry last;
    test_entry_read(store, &last);
    assert_int_equal(test_event(&last, TL_EVENT_APPLIED, 0)->first_seq, 6);
    snprintf(expected, sizeof(expected), "9+1 12+1 %llu+1 %llu+2 %llu+1", lane1 + 6, lane1 + 14,
             lane1 + 17);
    test_runs_are(test_event(&last, TL_EVENT_JOINED, 0), expected);
    test_entry_free(&last);
    assert_int_equal(test_waiting_place(store, "new2"), 12);
    assert_int_equal(test_waiting_place(store, "new4"), lane1 + 15);
    assert_int_equal(test_waiting_place(store, "waits0"), lane1 + 17);
    assert_int_equal(test_waiting_place(store, "active0"), -1);
    assert_int_equal(test_waiting_place(store, "active1"), -1);
    assert_int_equal(test_state(store, "seq"), 17);
    assert_int_equal(test_state(store, "joined"), 11);
    test_invariants(store->redis, &store->keys);
}

/* The function composes the text of places from parts: each must equal the number itself. */
static void places_are_exact_wherever_a_batch_begins(void **state)
{
    static const uint64_t seqs[] = {0, 1, 98, 99, 100, 899, 900, 9999, 123456, 281474976709000};
    struct test_store *store = *state;
    for (size_t i = 0; i < sizeof(seqs) / sizeof(seqs[0]); i++) {
        for (unsigned lane = 0; lane < TL_LANES_MAX; lane += 5) {
            test_store_clean(state);
            test_store_queue(store, "lanes=only");
            test_redis_ask(store->redis, "HSET %s seq %llu", store->keys.names[TL_KEY_STATE],
                           (unsigned long long)seqs[i]);
            test_join_many(store, "v", 301, lane);
            for (unsigned k = 1; k <= 301; k++) {
                char visitor[8];
                snprintf(visitor, sizeof(visitor), "v%u", k);
                assert_int_equal(test_waiting_place(store, visitor),
                                 tl_place_make(lane, seqs[i] + k));
            }
        }
    }
}

/* A batch reached the store so long after it was made. */
static void send_late(struct test_store *store, long long made_ms)
{
    store->writer.made_ms = (uint64_t)made_ms;
    test_batch(store);
    store->writer.made_ms = 0;
}

/* The visitor was placed through another worker meanwhile, and has gone: nobody would claim a
 * second place. */
static void a_late_join_gives_no_second_place(void **state)
{
    struct test_store *store = *state;
    char expected[64];
    test_store_queue(store, "lanes=only");
    long long made = test_redis_ms(store->redis);
    test_redis_pass_time(store->redis, 2100);
    test_join_many(store, "v", 3, 0);
    test_command(store, TL_COMMAND_LEAVE, "v2", 2);
    test_batch(store);
    test_join(store, "a", 0);
    test_join(store, "v2", 0);
    test_join(store, "v3", 0);
    test_join(store, "b", 0);
    send_late(store, made);
    test_exceptions_are(store, "1:4:0 2:1:3");
    assert_int_equal(test_waiting_place(store, "a"), 4);
    assert_int_equal(test_waiting_place(store, "b"), 7);
    assert_int_equal(test_waiting_place(store, "v2"), -1);
    test_invariants(store->redis, &store->keys);

    /* Who has joined again holds that place. */
    test_join(store, "v2", 0);
    test_batch(store);
    long long again = test_waiting_place(store, "v2");
    test_join(store, "v2", 0);
    send_late(store, made);
    snprintf(expected, sizeof(expected), "0:1:%lld", again);
    test_exceptions_are(store, expected);

    /* Made after the end, or by a clock that is no worker's. */
    test_command(store, TL_COMMAND_LEAVE, "v2", (tl_place)again);
    test_batch(store);
    test_redis_pass_time(store->redis, 1);
    made = test_redis_ms(store->redis);
    test_redis_pass_time(store->redis, 2100);
    test_join(store, "v2", 0);
    send_late(store, made);
    test_exceptions_are(store, "");
    test_command(store, TL_COMMAND_LEAVE, "v3", 3);
    test_batch(store);
    test_join(store, "v3", 0);
    send_late(store, made - 3600000);
    test_exceptions_are(store, "");
    test_invariants(store->redis, &store->keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(joins_stand_in_the_order_they_came, test_store_clean),
        cmocka_unit_test_setup(an_event_has_the_first_seq_of_the_batch_and_the_places,
                               test_store_clean),
        cmocka_unit_test_setup(the_highest_lane_is_exact, test_store_clean),
        cmocka_unit_test_setup(a_full_batch_is_one_run, test_store_clean),
        cmocka_unit_test_setup(a_full_batch_of_known_visitors_adds_no_visitor, test_store_clean),
        cmocka_unit_test_setup(twice_in_one_batch_is_one_place, test_store_clean),
        cmocka_unit_test_setup(who_waits_keeps_the_place, test_store_clean),
        cmocka_unit_test_setup(who_is_active_keeps_the_session, test_store_clean),
        cmocka_unit_test_setup(leaving_before_joining_is_gone, test_store_clean),
        cmocka_unit_test_setup(leaving_gives_the_place_up, test_store_clean),
        cmocka_unit_test_setup(leaving_ends_the_session, test_store_clean),
        cmocka_unit_test_setup(join_leave_join_in_one_batch_is_a_new_place, test_store_clean),
        cmocka_unit_test_setup(each_visitor_in_one_batch_gets_the_right_answer, test_store_clean),
        cmocka_unit_test_setup(places_are_exact_wherever_a_batch_begins, test_store_clean),
        cmocka_unit_test_setup(a_late_join_gives_no_second_place, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
