/* SPDX-License-Identifier: Apache-2.0 */
/* The remove function: what the operator's word does to the queue, and what later commands find. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/reply.h"
#include "ingest.h"

enum { FOUND_NONE, FOUND_WAITING, FOUND_ACTIVE, FOUND_ENDED };

static long long take_out(struct test_store *store, const char *visitor)
{
    char arguments[128];
    char error[320];
    snprintf(arguments, sizeof(arguments), "1000 %s", visitor);
    struct tl_reply *reply =
        test_function(store->redis, TL_FN_REMOVE, &store->keys, arguments, error);
    if (reply == NULL)
        fail_msg("%s", error);
    long long found = (long long)tl_reply_integer(tl_reply_at(reply, 0));
    tl_reply_free(reply);
    test_invariants(store->redis, &store->keys);
    return found;
}

/* v1 is active, v2 to v4 wait. */
static int setup(void **state)
{
    struct test_store *store;
    (void)test_store_clean(state);
    store = *state;
    test_store_queue(store, "lanes=only capacity=1 session_ttl=1h waiting_ttl=1h");
    test_join_many(store, "v", 4, 0);
    assert_int_equal(test_admit(store, 1), 1);
    return 0;
}

static void a_waiting_visitor_leaves_the_line(void **state)
{
    struct test_store *store = *state;
    struct test_entry last;
    assert_int_equal(take_out(store, "v3"), FOUND_WAITING);
    assert_int_equal(test_waiting_place(store, "v3"), -1);
    assert_int_equal(test_end_reason(store, "v3"), TL_REASON_REMOVED);
    assert_int_equal(test_state(store, "removed"), 1);
    assert_int_equal(test_state(store, "expired"), 1);
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_REMOVED, TL_REASON_REMOVED), "3+1");
    test_entry_free(&last);
}

static void a_session_ends_and_its_capacity_is_free(void **state)
{
    struct test_store *store = *state;
    struct test_entry last;
    assert_int_equal(take_out(store, "v1"), FOUND_ACTIVE);
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_FREED, TL_REASON_REMOVED), "1+1");
    test_entry_free(&last);
    assert_int_equal(test_deadline(store, "v1"), -1);
    assert_int_equal(test_end_reason(store, "v1"), TL_REASON_REMOVED);
    assert_int_equal(test_admit(store, 5), 1);
    test_invariants(store->redis, &store->keys);
}

static void a_session_that_is_damaged_ends_too(void **state)
{
    struct test_store *store = *state;
    test_redis_ask(store->redis, "HSET %s v1 nonsense", store->keys.names[TL_KEY_SESSIONS]);
    assert_int_equal(take_out(store, "v1"), FOUND_ACTIVE);
    assert_int_equal(test_state(store, "active"), 0);
}

/* Who is gone, or was never there, changes nothing. */
static void once_is_enough(void **state)
{
    struct test_store *store = *state;
    assert_int_equal(take_out(store, "v2"), FOUND_WAITING);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_int_equal(take_out(store, "v2"), FOUND_ENDED);
    assert_int_equal(take_out(store, "nobody"), FOUND_NONE);
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

/* Commands with the old place find nothing; nor does a restored place come back. */
static void commands_of_the_removed_do_nothing(void **state)
{
    struct test_store *store = *state;
    assert_int_equal(take_out(store, "v1"), FOUND_ACTIVE);
    assert_int_equal(take_out(store, "v2"), FOUND_WAITING);
    test_command(store, TL_COMMAND_RENEW, "v1", 1);
    test_command(store, TL_COMMAND_COMPLETE, "v1", 1);
    test_command(store, TL_COMMAND_LEAVE, "v2", 2);
    test_batch(store);
    test_exceptions_are(store, "0:3:1 1:3:1 2:3:2");
    test_invariants(store->redis, &store->keys);
    assert_int_equal(test_state(store, "active"), 0);
    assert_int_equal(test_state(store, "waiting"), 2);
}

static void a_state_without_the_counter_gets_one(void **state)
{
    struct test_store *store = *state;
    test_redis_ask(store->redis, "HDEL %s removed", store->keys.names[TL_KEY_STATE]);
    assert_int_equal(take_out(store, "v4"), FOUND_WAITING);
    assert_int_equal(test_state(store, "removed"), 1);
}

static void without_a_queue_it_says_so(void **state)
{
    struct test_store *store = *state;
    char error[320];
    test_redis_ask(store->redis, "DEL %s", store->keys.names[TL_KEY_STATE]);
    assert_null(test_function(store->redis, TL_FN_REMOVE, &store->keys, "1000 v1", error));
    assert_non_null(strstr(error, "the queue does not exist"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_waiting_visitor_leaves_the_line, setup),
        cmocka_unit_test_setup(a_session_ends_and_its_capacity_is_free, setup),
        cmocka_unit_test_setup(a_session_that_is_damaged_ends_too, setup),
        cmocka_unit_test_setup(once_is_enough, setup),
        cmocka_unit_test_setup(commands_of_the_removed_do_nothing, setup),
        cmocka_unit_test_setup(a_state_without_the_counter_gets_one, setup),
        cmocka_unit_test_setup(without_a_queue_it_says_so, setup),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
