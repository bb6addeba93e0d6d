/* SPDX-License-Identifier: Apache-2.0 */
/* The move function: a visitor changes the lane and keeps the seq; what readers and later commands
 * make of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/line/line.h"
#include "common/store/reply.h"
#include "common/store/snapshot.h"
#include "ingest.h"

enum { FOUND_NONE, FOUND_MOVED, FOUND_ACTIVE, FOUND_ENDED, FOUND_THERE, FOUND_NO_LANE };

#define LANE1 (UINT64_C(1) << TL_PLACE_SEQ_BITS)

static long long move(struct test_store *store, const char *visitor, const char *lane)
{
    char arguments[128];
    char error[320];
    snprintf(arguments, sizeof(arguments), "1000 %s %s", visitor, lane);
    struct tl_reply *reply =
        test_function(store->redis, TL_FN_MOVE, &store->keys, arguments, error);
    if (reply == NULL)
        fail_msg("%s", error);
    long long found = (long long)tl_reply_integer(tl_reply_at(reply, 0));
    tl_reply_free(reply);
    test_invariants(store->redis, &store->keys);
    return found;
}

/* a1 is active; a2 to a4 wait in the first lane, b5 to b8 in the second. */
static int setup(void **state)
{
    struct test_store *store;
    (void)test_store_clean(state);
    store = *state;
    test_store_queue(store, "lanes=vip,normal capacity=1 session_ttl=1h waiting_ttl=1h");
    test_join_many(store, "a", 4, 0);
    test_join_many(store, "b", 4, 1);
    assert_int_equal(test_admit(store, 1), 1);
    return 0;
}

static void the_seq_stays(void **state)
{
    struct test_store *store = *state;
    struct test_entry last;
    char runs[64];
    long long joined = test_state(store, "joined");
    assert_int_equal(move(store, "b2", "vip"), FOUND_MOVED);
    assert_int_equal(test_waiting_place(store, "b2"), 6);
    assert_int_equal(test_state(store, "joined"), joined);
    assert_int_equal(test_state(store, "waiting"), 7);
    test_entry_read(store, &last);
    snprintf(runs, sizeof(runs), "%llu+1", (unsigned long long)LANE1 + 6);
    test_runs_are(test_event(&last, TL_EVENT_REMOVED, TL_REASON_MOVED), runs);
    test_runs_are(test_event(&last, TL_EVENT_JOINED, 0), "6+1");
    test_entry_free(&last);
    assert_int_equal(move(store, "a2", "normal"), FOUND_MOVED);
    assert_int_equal(test_waiting_place(store, "a2"), LANE1 + 2); /* before b1 */
    assert_int_equal(move(store, "a2", "vip"), FOUND_MOVED);
    assert_int_equal(test_waiting_place(store, "a2"), 2);
}

static void a_reader_follows(void **state)
{
    struct test_store *store = *state;
    struct tl_tail_head head;
    struct tl_error err = {0};
    struct test_entry last;
    struct tl_line *line = tl_snapshot(store->redis, &store->keys, &head, &err);
    assert_non_null(line);
    assert_int_equal(tl_line_look(line, LANE1 + 6).ahead, 4);
    assert_int_equal(move(store, "b2", "vip"), FOUND_MOVED);
    test_entry_read(store, &last);
    assert_int_equal(tl_line_apply(line, &last.entry, 1), TL_LINE_APPLIED);
    test_entry_free(&last);
    assert_int_equal(tl_line_look(line, LANE1 + 6).status, TL_LINE_UNKNOWN);
    assert_int_equal(tl_line_find(line, LANE1 + 6), 6);
    assert_int_equal(tl_line_look(line, 6).status, TL_LINE_WAITING);
    assert_int_equal(tl_line_look(line, 6).ahead, 3);
    assert_int_equal(tl_line_find(line, 3), 3);
    assert_int_equal(tl_line_find(line, LANE1 + 999), LANE1 + 999);
    assert_int_equal(line->last_seq, 8);
    tl_line_free(&line);
    line = tl_snapshot(store->redis, &store->keys, &head, &err); /* one that missed the move */
    assert_int_equal(tl_line_find(line, LANE1 + 6), 6);
    tl_line_free(&line);
}

/* Who cannot be moved is left alone. */
static void the_rest_stays(void **state)
{
    struct test_store *store = *state;
    test_command(store, TL_COMMAND_LEAVE, "b1", LANE1 + 5);
    test_batch(store);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_int_equal(move(store, "a1", "normal"), FOUND_ACTIVE);
    assert_int_equal(move(store, "a2", "vip"), FOUND_THERE);
    assert_int_equal(move(store, "a2", "gold"), FOUND_NO_LANE);
    assert_int_equal(move(store, "b1", "vip"), FOUND_ENDED);
    assert_int_equal(move(store, "nobody", "vip"), FOUND_NONE);
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

/* A worker may not know of the move yet, or it sends what the old ticket names. */
static void commands_with_the_old_place_are_done(void **state)
{
    struct test_store *store = *state;
    struct test_entry last;
    assert_int_equal(move(store, "b1", "vip"), FOUND_MOVED);
    assert_int_equal(move(store, "b2", "vip"), FOUND_MOVED);
    test_command(store, TL_COMMAND_LEAVE, "b1", LANE1 + 5);
    test_batch(store);
    test_exceptions_are(store, "");
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_REMOVED, TL_REASON_LEFT), "5+1");
    test_entry_free(&last);
    assert_int_equal(test_end_reason(store, "b1"), TL_REASON_LEFT);
    test_command(store, TL_COMMAND_COMPLETE, "b2", LANE1 + 6);
    test_command(store, TL_COMMAND_COMPLETE, "b2", LANE1 + 7); /* not this visitor's */
    test_batch(store);
    char exceptions[96];
    snprintf(exceptions, sizeof(exceptions), "0:1:%llu 1:3:%llu", (unsigned long long)LANE1 + 6,
             (unsigned long long)LANE1 + 7);
    test_exceptions_are(store, exceptions);
    test_command(store, TL_COMMAND_COMPLETE, "a1", 1);
    for (unsigned seq = 2; seq <= 4; seq++) {
        char visitor[8];
        snprintf(visitor, sizeof(visitor), "a%u", seq);
        test_command(store, TL_COMMAND_LEAVE, visitor, seq);
    }
    test_batch(store);
    assert_int_equal(test_admit(store, 1), 1); /* b2, before those of the second lane */
    assert_true(test_deadline(store, "b2") > 0);
    test_command(store, TL_COMMAND_RENEW, "b2", LANE1 + 6);
    test_batch(store);
    test_exceptions_are(store, "");
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_RENEWED, 0), "6+1");
    test_entry_free(&last);
    test_command(store, TL_COMMAND_COMPLETE, "b2", LANE1 + 6);
    test_batch(store);
    test_exceptions_are(store, "");
    assert_int_equal(test_end_reason(store, "b2"), TL_REASON_COMPLETED);
    test_invariants(store->redis, &store->keys);
}

static void a_join_finds_the_new_place(void **state)
{
    struct test_store *store = *state;
    assert_int_equal(move(store, "b3", "vip"), FOUND_MOVED);
    test_join(store, "b3", 1);
    test_batch(store);
    test_exceptions_are(store, "0:1:7");
}

static void without_a_queue_it_says_so(void **state)
{
    struct test_store *store = *state;
    char error[320];
    test_redis_ask(store->redis, "DEL %s", store->keys.names[TL_KEY_STATE]);
    assert_null(test_function(store->redis, TL_FN_MOVE, &store->keys, "1000 b1 vip", error));
    assert_non_null(strstr(error, "the queue does not exist"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_seq_stays, setup),
        cmocka_unit_test_setup(a_reader_follows, setup),
        cmocka_unit_test_setup(the_rest_stays, setup),
        cmocka_unit_test_setup(commands_with_the_old_place_are_done, setup),
        cmocka_unit_test_setup(a_join_finds_the_new_place, setup),
        cmocka_unit_test_setup(without_a_queue_it_says_so, setup),
    };
    return cmocka_run_group_tests_name("ctl_move", tests, test_store_open, test_store_close);
}
