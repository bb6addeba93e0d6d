/* SPDX-License-Identifier: Apache-2.0 */
/* The restore function: whom the archive knows gets back the place or session of a lost generation.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/reply.h"
#include "ingest.h"

#define FIRST 1000 /* the seqs of the lost generation lie below those of the present one */
#define EVENT 77   /* the last one that the archive has */

static uint64_t lost_queue(struct test_store *store, const char *settings)
{
    test_store_queue(store, settings);
    long long now = test_redis_ms(store->redis);
    test_redis_ask(store->redis, "HSET %s seq %d recover_since %lld recover_until %lld",
                   store->keys.names[TL_KEY_STATE], FIRST, now, now + 60000);
    return (uint64_t)test_state(store, "generation") - 5;
}

/* Calls it with these words; its cursor, or -1 where there is nothing (more) to do. */
static long long call(struct test_store *store, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static long long call(struct test_store *store, const char *format, ...)
{
    char words[1024] = "1000 ";
    va_list list;
    va_start(list, format);
    vsnprintf(words + 5, sizeof(words) - 5, format, list);
    va_end(list);
    struct tl_reply *reply = test_function(store->redis, TL_FN_RESTORE, &store->keys, words, NULL);
    long long cursor = tl_reply_signed(reply, TL_RESTORE_IS_NEXT) == 1
                           ? tl_reply_signed(reply, TL_RESTORE_CURSOR)
                           : -1;
    tl_reply_free(reply);
    return cursor;
}

static long long begin(struct test_store *store, uint64_t generation)
{
    return call(store, "begin %" PRIu64 " %d 900 10", generation, EVENT);
}

static void worker_remembers(struct test_store *store, uint64_t generation, uint64_t event,
                             tl_place front, tl_place called, uint64_t deadline)
{
    test_add(store,
             &(struct tl_command){.kind = TL_COMMAND_LOST, .numbers = {generation, event, 0, 9}});
    test_add(store, &(struct tl_command){.kind = TL_COMMAND_CALLED,
                                         .numbers = {generation, event, front, 0}});
    test_add(store, &(struct tl_command){.kind = TL_COMMAND_CALLED,
                                         .numbers = {generation, event, called, deadline}});
    test_batch(store);
}

static void the_line_comes_back(void **state)
{
    struct test_store *store = *state;
    struct test_entry last;
    const uint64_t lost = lost_queue(store, "capacity=2 lanes=vip,normal");
    const long long now = test_redis_ms(store->redis);
    test_join(store, "new", 0);
    test_batch(store);
    assert_int_equal(begin(store, lost), 0);
    assert_int_equal(test_admit(store, 10), 0);
    assert_int_equal(
        call(store, "rows %" PRIu64 " 0 20 in 20 %lld %lld 1 0", lost, now + 60000, now - 5000),
        20);
    assert_int_equal(
        call(store, "rows %" PRIu64 " 20 500 a 30 0 0 0 0 b 31 0 0 0 0 c 40 0 0 0 3", lost), 500);
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_JOINED, 0), "30+2 40+1");
    test_entry_free(&last);
    assert_int_equal(
        call(store, "rows %" PRIu64 " 500 600 v %" PRIu64 " 0 0 0 0", lost, tl_place_make(1, 35)),
        600);
    assert_int_equal(test_deadline(store, "in"), now + 60000);
    assert_int_equal(test_waiting_place(store, "a"), 30);
    assert_int_equal(test_waiting_place(store, "b"), 31);
    assert_int_equal(test_waiting_place(store, "v"), (long long)tl_place_make(1, 35));
    assert_int_equal(test_redis_ask(store->redis, "HSTRLEN tl:{q}:serials 40") > 0, 1);
    assert_int_equal(test_waiting_place(store, "new"), FIRST + 1);
    /* Totals: completed, left, expired, unclaimed, absent, removed, admitted. */
    assert_int_equal(call(store, "done %" PRIu64 " 5 4 3 2 1 0 7 0 29", lost), 5);
    assert_int_equal(test_state(store, "joined"), 1 + 5 + 12);
    assert_int_equal(test_state(store, "admitted"), 1 + 7);
    assert_int_equal(test_state(store, "restored"), 5);
    assert_int_equal(test_state(store, "lost_generation"), (long long)lost);
    test_invariants(store->redis, &store->keys);
    assert_int_equal(begin(store, lost), -1); /* nothing is counted twice */
}

static void a_step_that_comes_twice_changes_nothing(void **state)
{
    struct test_store *store = *state;
    const uint64_t lost = lost_queue(store, "");
    begin(store, lost);
    call(store, "rows %" PRIu64 " 0 30 a 30 0 0 0 0", lost);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_int_equal(call(store, "rows %" PRIu64 " 0 30 a 30 0 0 0 0", lost), -1);
    assert_int_equal(call(store, "rows %" PRIu64 " 30 40 b 40 0 0 0 0", lost - 1), -1);
    assert_int_equal(call(store, "done %" PRIu64 " 5 4 3 2 1 0 7", lost - 1), -1);
    assert_true(before == test_redis_fingerprint(store->redis));
    assert_int_equal(begin(store, lost), 30); /* another archiver goes on from there */
}

/* Who came back alone, or joined again, has one place: the older one. */
static void who_is_back_stays(void **state)
{
    struct test_store *store = *state;
    const uint64_t lost = lost_queue(store, "capacity=1");
    begin(store, lost);
    test_join(store, "again", 0);
    test_add(store, &(struct tl_command){.kind = TL_COMMAND_RESTORE,
                                         .visitor = "back",
                                         .visitor_length = 4,
                                         .numbers = {30, lost}});
    test_add(store, &(struct tl_command){.kind = TL_COMMAND_RESTORE,
                                         .visitor = "gone",
                                         .visitor_length = 4,
                                         .numbers = {31, lost}});
    test_command(store, TL_COMMAND_LEAVE, "gone", 31);
    test_batch(store);
    call(store, "rows %" PRIu64 " 0 50 back 30 0 0 0 0 gone 31 0 0 0 0 again 32 0 0 0 0", lost);
    assert_int_equal(test_waiting_place(store, "back"), 30);
    assert_int_equal(test_waiting_place(store, "gone"), -1);
    assert_int_equal(test_waiting_place(store, "again"), 32);
    assert_int_equal(test_state(store, "waiting"), 2);
    test_invariants(store->redis, &store->keys);
}

static void a_worker_that_knows_more_is_believed(void **state)
{
    struct test_store *store = *state;
    const uint64_t lost = lost_queue(store, "capacity=3");
    const long long now = test_redis_ms(store->redis);
    worker_remembers(store, lost, EVENT + 5, 30, 30, (uint64_t)now + 30000);
    begin(store, lost);
    call(store,
         "rows %" PRIu64 " 0 50 over 20 %lld %lld 1 0 called 30 0 0 0 0 left 29 0 0 0 0 "
         "waits 31 0 0 0 0",
         lost, now + 60000, now - 5000);
    assert_int_equal(test_deadline(store, "over"), -1);
    assert_int_equal(test_deadline(store, "called"), now + 30000);
    assert_int_equal(test_waiting_place(store, "left"), -1);
    assert_int_equal(test_waiting_place(store, "waits"), 31);
    assert_int_equal(test_state(store, "expired"), 2);
    test_invariants(store->redis, &store->keys);
}

static void the_archive_knows_more_than_a_worker(void **state)
{
    struct test_store *store = *state;
    const uint64_t lost = lost_queue(store, "capacity=3");
    const long long now = test_redis_ms(store->redis);
    worker_remembers(store, lost, EVENT - 5, 20, 20, (uint64_t)now + 30000);
    begin(store, lost);
    call(store, "rows %" PRIu64 " 0 50 in 20 %lld %lld 1 0 past 21 %lld 5 0 0 ended 33 -1 0 0 0",
         lost, now + 60000, now - 5000, now - 1);
    assert_int_equal(test_deadline(store, "in"), now + 60000);
    assert_int_equal(test_deadline(store, "past"), -1);
    assert_int_equal(test_state(store, "unclaimed"), 1);
    /* No ticket brings back a place that has ended. */
    test_add(store, &(struct tl_command){.kind = TL_COMMAND_RESTORE,
                                         .visitor = "ended",
                                         .visitor_length = 5,
                                         .numbers = {33, lost}});
    test_batch(store);
    test_exceptions_are(store, "0:3:33");
    test_invariants(store->redis, &store->keys);
}

/* The visitor of this place asks, with a pass until then or a ticket (0). */
static void returns(struct test_store *store, const char *visitor, uint64_t generation,
                    tl_place place, uint64_t deadline)
{
    test_add(store, &(struct tl_command){.kind = TL_COMMAND_RESTORE,
                                         .visitor = visitor,
                                         .visitor_length = strlen(visitor),
                                         .numbers = {place, generation, deadline}});
    test_batch(store);
}

/* Whatever workers tell later, also one that knows more in general and connects again. */
static void a_place_that_has_ended_stays_so(void **state)
{
    struct test_store *store = *state;
    const uint64_t lost = lost_queue(store, "capacity=3");
    const uint64_t till = (uint64_t)test_redis_ms(store->redis) + 30000;
    worker_remembers(store, lost, EVENT - 5, 20, 20, till);
    begin(store, lost);
    call(store, "rows %" PRIu64 " 0 50 ended 33 -1 0 0 0 gone 34 -1 0 0 0", lost);
    worker_remembers(store, lost, EVENT - 5, 20, 33, till);
    returns(store, "ended", lost, 33, 0);
    test_exceptions_are(store, "0:3:33");
    worker_remembers(store, lost, EVENT + 5, 20, 34, till);
    returns(store, "gone", lost, 34, 0);
    test_exceptions_are(store, "0:3:34");
    assert_int_equal(test_state(store, "active"), 0);
    test_invariants(store->redis, &store->keys);
}

/* What a worker told as of an earlier event counts no more once another knows a later one. */
static void the_worker_that_knows_most_is_believed(void **state)
{
    struct test_store *store = *state;
    const uint64_t lost = lost_queue(store, "capacity=3");
    const long long now = test_redis_ms(store->redis);
    worker_remembers(store, lost, EVENT + 1, 20, 20, (uint64_t)now + 30000);
    worker_remembers(store, lost, EVENT + 2, 21, 21, (uint64_t)now + 30000);
    begin(store, lost);
    call(store, "rows %" PRIu64 " 0 50 over 20 %lld %lld 1 0 in 21 %lld %lld 1 0", lost,
         now + 60000, now - 5000, now + 60000, now - 5000);
    assert_int_equal(test_deadline(store, "over"), -1);
    assert_int_equal(test_deadline(store, "in"), now + 30000);
    test_invariants(store->redis, &store->keys);
}

/* Nobody is admitted while they come back, even if workers say that everybody is there. */
static void the_recovery_lasts_until_all_are_back(void **state)
{
    struct test_store *store = *state;
    const uint64_t lost = lost_queue(store, "recovery_window=1s capacity=5");
    const char *key = store->keys.names[TL_KEY_STATE];
    test_add(store, &(struct tl_command){.kind = TL_COMMAND_LOST, .numbers = {lost, 1, 0, 1}});
    test_batch(store);
    test_redis_ask(store->redis, "HSET %s recover_since 1 recover_until %lld", key,
                   test_redis_ms(store->redis) + 200);
    begin(store, lost);
    call(store, "rows %" PRIu64 " 0 30 a 30 0 0 0 0", lost);
    test_redis_pass_time(store->redis, 300);
    assert_int_equal(test_admit(store, 10), 0);
    assert_int_equal(test_waiting_place(store, "a"), 30);
    call(store, "done %" PRIu64 " 0 0 0 0 0 0 0 0 29", lost);
    test_redis_pass_time(store->redis, 20);
    for (int i = 0; i < 3 && test_deadline(store, "a") < 0; i++)
        (void)test_admit(store, 10);
    assert_true(test_deadline(store, "a") > 0);
}

static void not_every_generation_comes_back(void **state)
{
    struct test_store *store = *state;
    char error[320];
    const uint64_t lost = lost_queue(store, "");
    const char *key = store->keys.names[TL_KEY_STATE];
    test_redis_ask(store->redis, "HSET %s lost_generation %" PRIu64 " lost_by 1", key, lost);
    assert_int_equal(begin(store, lost - 1), -1); /* a worker named a later one */
    assert_int_equal(begin(store, lost + 5), -1);
    /* The operator ended the recovery; asked, it begins again, but not over visitors. */
    test_redis_ask(store->redis, "HSET %s recover_until 0 lost_generation %lld lost_by 3", key,
                   test_state(store, "generation"));
    assert_int_equal(begin(store, lost), -1);
    assert_int_equal(call(store, "ask tester test 1000"), 0);
    call(store, "none old"); /* an archiver looked before that */
    assert_int_equal(test_redis_ask(store->redis, "HSTRLEN %s restore", key), 5);
    assert_int_equal(begin(store, lost), 0);
    call(store, "done %" PRIu64 " 0 0 0 0 0 0 0", lost);
    assert_null(test_function(store->redis, TL_FN_RESTORE, &store->keys,
                              "1000 ask tester test 1000", error));
    assert_non_null(strstr(error, "already"));
    test_redis_ask(store->redis, "HSET %s recover_until 0 restore x", key);
    test_join(store, "new", 0);
    test_batch(store);
    assert_null(test_function(store->redis, TL_FN_RESTORE, &store->keys,
                              "1000 ask tester test 1000", error));
    assert_non_null(strstr(error, "has visitors"));
}

/* Of an operator, or because its time was over while nothing came: visitors are admitted. */
static void a_recovery_that_has_ended_stays_so(void **state)
{
    struct test_store *store = *state;
    const uint64_t lost = lost_queue(store, "");
    const char *key = store->keys.names[TL_KEY_STATE];
    test_redis_ask(store->redis, "HSET %s recover_until %lld", key,
                   test_redis_ms(store->redis) + 1000);
    begin(store, lost);
    const long long until = test_state(store, "recover_until");
    test_redis_pass_time(store->redis, 20);
    assert_int_equal(begin(store, lost), 0);
    assert_int_equal(test_state(store, "recover_until"), until); /* to begin again holds nobody */
    assert_int_equal(call(store, "rows %" PRIu64 " 0 30 a 30 0 0 0 0", lost), 30);
    test_redis_ask(store->redis, "HSET %s recover_until 0", key);
    assert_int_equal(call(store, "rows %" PRIu64 " 30 40 b 40 0 0 0 0", lost), -1);
    assert_int_equal(call(store, "done %" PRIu64 " 5 4 3 2 1 0 7", lost), -1);
    assert_int_equal(test_state(store, "recover_until"), 0);
    assert_int_equal(test_state(store, "joined"), 1);
    assert_int_equal(test_waiting_place(store, "b"), -1);
}

static void a_deleted_line_stays_away(void **state)
{
    struct test_store *store = *state;
    char error[320];
    lost_queue(store, "");
    test_redis_ask(store->redis, "HSET %s lost_generation %lld lost_by 3",
                   store->keys.names[TL_KEY_STATE], test_state(store, "generation"));
    test_redis_ask(store->redis, "HSET tl:{q}:retired generation 5");
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_null(test_function(store->redis, TL_FN_RESTORE, &store->keys,
                              "1000 ask tester test 1000", error));
    assert_non_null(strstr(error, "deleted the queue"));
    assert_true(before == test_redis_fingerprint(store->redis));
}

/* A ticket, or a pass from before it was renewed, comes before the archive. */
static void a_session_comes_back_to_who_waits(void **state)
{
    struct test_store *store = *state;
    const uint64_t lost = lost_queue(store, "capacity=2");
    const long long now = test_redis_ms(store->redis);
    returns(store, "in", lost, 20, 0);
    returns(store, "renewed", lost, 21, (uint64_t)now + 20000);
    returns(store, "over", lost, 22, 0);
    assert_int_equal(test_waiting_place(store, "in"), 20);
    begin(store, lost);
    call(store,
         "rows %" PRIu64 " 0 50 in 20 %lld %lld 1 0 renewed 21 %lld %lld 1 0 over 22 %lld 5 0 0",
         lost, now + 60000, now - 5000, now + 50000, now - 5000, now - 1);
    assert_int_equal(test_deadline(store, "in"), now + 60000);
    assert_int_equal(test_deadline(store, "renewed"), now + 50000);
    assert_int_equal(test_waiting_place(store, "over"), -1);
    assert_int_equal(test_state(store, "waiting"), 0);
    call(store, "done %" PRIu64 " 0 0 0 0 0 0 0 0 22", lost);
    assert_int_equal(test_state(store, "joined"), 3);
    assert_int_equal(test_state(store, "admitted"), 3);
    assert_int_equal(test_state(store, "unclaimed"), 1);
    test_invariants(store->redis, &store->keys);
}

/* Who has ended, and came back before the archive, goes again, is counted once, and stays away. */
static void who_has_ended_goes_again(void **state)
{
    struct test_store *store = *state;
    const uint64_t lost = lost_queue(store, "capacity=1 lanes=vip,normal");
    const long long now = test_redis_ms(store->redis);
    returns(store, "over", lost, 20, (uint64_t)now + 60000);
    returns(store, "left", lost, 31, 0);
    assert_int_equal(test_deadline(store, "over"), now + 60000);
    begin(store, lost);
    call(store,
         "rows %" PRIu64 " 0 50 in 21 %lld %lld 1 0 over 20 -1 5 1 0 left 31 -2 0 0 0 "
         "moved %" PRIu64 " -2 0 0 0",
         lost, now + 60000, now - 5000, tl_place_make(1, 32));
    call(store, "done %" PRIu64 " 1 2 0 0 0 0 1 0 22", lost);
    assert_int_equal(test_state(store, "active"), 1);
    assert_int_equal(test_state(store, "admit_capacity"), 1);
    assert_int_equal(test_state(store, "waiting"), 0);
    assert_int_equal(test_state(store, "joined"), 4);
    assert_int_equal(test_state(store, "admitted"), 2);
    assert_int_equal(test_state(store, "completed"), 1);
    assert_int_equal(test_state(store, "left"), 2);
    test_invariants(store->redis, &store->keys);
    returns(store, "over", lost, 20, (uint64_t)now + 60000);
    test_exceptions_are(store, "0:3:20");
    returns(store, "moved", lost, 32, 0); /* by a ticket from before the move */
    test_exceptions_are(store, "0:3:32");
}

/* By a ticket from before that, or a pass of a session before it. */
static void the_later_place_counts(void **state)
{
    struct test_store *store = *state;
    const uint64_t lost = lost_queue(store, "capacity=3");
    const long long now = test_redis_ms(store->redis);
    returns(store, "waits", lost, 30, 0);
    returns(store, "again", lost, 20, (uint64_t)now + 60000);
    returns(store, "in", lost, 21, 0);
    begin(store, lost);
    call(store, "rows %" PRIu64 " 0 50 in 41 %lld %lld 1 0", lost, now + 60000, now - 5000);
    call(store,
         "rows %" PRIu64 " 50 99 again 20 -1 5 1 0 waits 30 -2 0 0 0 again 40 0 0 0 0 "
         "waits 42 0 0 0 0",
         lost);
    assert_int_equal(test_waiting_place(store, "waits"), 42);
    assert_int_equal(test_waiting_place(store, "again"), 40);
    assert_int_equal(test_deadline(store, "in"), now + 60000);
    call(store, "done %" PRIu64 " 1 2 0 0 0 0 1", lost);
    assert_int_equal(test_state(store, "joined"), 6);
    assert_int_equal(test_state(store, "admitted"), 2);
    test_invariants(store->redis, &store->keys);
}

/* Where the archive knows of the move, and where an operator has moved the visitor since. */
static void the_later_lane_counts(void **state)
{
    struct test_store *store = *state;
    const uint64_t lost = lost_queue(store, "lanes=vip,normal");
    returns(store, "moved", lost, 30, 0);
    returns(store, "since", lost, 31, 0);
    tl_reply_free(test_function(store->redis, TL_FN_MOVE, &store->keys,
                                "1000 since normal me cli 100", NULL));
    begin(store, lost);
    call(store, "rows %" PRIu64 " 0 50 moved %" PRIu64 " 0 0 0 0 since 31 0 0 0 0", lost,
         tl_place_make(1, 30));
    assert_int_equal(test_waiting_place(store, "moved"), (long long)tl_place_make(1, 30));
    assert_int_equal(test_waiting_place(store, "since"), (long long)tl_place_make(1, 31));
    assert_int_equal(test_state(store, "joined"), 2);
    test_invariants(store->redis, &store->keys);
}

/* The archive was being told again when the store lost everything. */
static void a_visitor_in_two_rows_has_one_place(void **state)
{
    struct test_store *store = *state;
    const uint64_t lost = lost_queue(store, "");
    begin(store, lost);
    call(store, "rows %" PRIu64 " 0 50 b 20 0 0 0 0 a 30 0 0 0 0 a 40 0 0 0 0", lost);
    call(store, "rows %" PRIu64 " 50 99 b 50 0 0 0 0", lost);
    assert_int_equal(test_waiting_place(store, "a"), 40);
    assert_int_equal(test_waiting_place(store, "b"), 50);
    assert_int_equal(test_state(store, "waiting"), 2);
    test_invariants(store->redis, &store->keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_line_comes_back, test_store_clean),
        cmocka_unit_test_setup(a_step_that_comes_twice_changes_nothing, test_store_clean),
        cmocka_unit_test_setup(who_is_back_stays, test_store_clean),
        cmocka_unit_test_setup(a_worker_that_knows_more_is_believed, test_store_clean),
        cmocka_unit_test_setup(the_archive_knows_more_than_a_worker, test_store_clean),
        cmocka_unit_test_setup(a_place_that_has_ended_stays_so, test_store_clean),
        cmocka_unit_test_setup(the_worker_that_knows_most_is_believed, test_store_clean),
        cmocka_unit_test_setup(the_recovery_lasts_until_all_are_back, test_store_clean),
        cmocka_unit_test_setup(not_every_generation_comes_back, test_store_clean),
        cmocka_unit_test_setup(a_recovery_that_has_ended_stays_so, test_store_clean),
        cmocka_unit_test_setup(a_deleted_line_stays_away, test_store_clean),
        cmocka_unit_test_setup(a_session_comes_back_to_who_waits, test_store_clean),
        cmocka_unit_test_setup(who_has_ended_goes_again, test_store_clean),
        cmocka_unit_test_setup(the_later_place_counts, test_store_clean),
        cmocka_unit_test_setup(the_later_lane_counts, test_store_clean),
        cmocka_unit_test_setup(a_visitor_in_two_rows_has_one_place, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
