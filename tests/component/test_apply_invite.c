/* SPDX-License-Identifier: Apache-2.0 */
/* The apply function: joins that spend an invite. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "ingest.h"

static void an_invite_joins_once(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join_invited(store, "anna", 0, "invite-1");
    test_batch(store);
    assert_int_equal(test_waiting_place(store, "anna"), 1);
    test_exceptions_are(store, "");
    test_join_invited(store, "mallory", 0, "invite-1");
    test_batch(store);
    test_exceptions_are(store, "0:4:0");
    assert_int_equal(test_waiting_place(store, "mallory"), -1);
    assert_int_equal(test_state(store, "joined"), 1);
    test_invariants(store->redis, &store->keys);
}

static void the_visitor_who_spent_it_gets_the_place_again(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join_invited(store, "anna", 0, "invite-1");
    test_join_invited(store, "anna", 0, "invite-1");
    test_join_invited(store, "anna", 0, "invite-2");
    test_batch(store);
    test_exceptions_are(store, "1:1:1 2:1:1");
    assert_int_equal(test_state(store, "joined"), 1);
    test_invariants(store->redis, &store->keys);
}

/* Holding a place does not make another visitor's invite one's own. */
static void the_invite_of_another_is_refused_with_a_place_too(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join_invited(store, "anna", 0, "invite-1");
    test_join_invited(store, "ben", 0, "invite-2");
    test_batch(store);
    test_join_invited(store, "ben", 0, "invite-1");
    test_batch(store);
    test_exceptions_are(store, "0:4:0");
    assert_int_equal(test_waiting_place(store, "ben"), 2);
    test_invariants(store->redis, &store->keys);
}

static void but_not_after_the_place_has_ended(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join_invited(store, "anna", 0, "invite-1");
    test_batch(store);
    test_command(store, TL_COMMAND_LEAVE, "anna", 1);
    test_join_invited(store, "anna", 0, "invite-1");
    test_batch(store);
    test_exceptions_are(store, "1:4:0");
    assert_int_equal(test_waiting_place(store, "anna"), -1);
    test_invariants(store->redis, &store->keys);
}

/* Whether it was spent is not known any more. */
static void an_invite_whose_key_is_damaged_is_spent(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_redis_ask(store->redis, "RPUSH tl:{q}:spent:invite-1 damaged");
    test_join(store, "one", 0);
    test_join_invited(store, "anna", 0, "invite-1");
    test_join(store, "three", 0);
    test_batch(store);
    test_exceptions_are(store, "1:4:0");
    assert_int_equal(test_waiting_place(store, "three"), 3);
    test_invariants(store->redis, &store->keys);
}

/* Each JOIN uses one seq, whatever its outcome, so that the k-th has first_seq + k. */
static void among_other_joins_each_visitor_gets_the_right_place(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join(store, "one", 0);
    test_join_invited(store, "two", 0, "a");
    test_join(store, "three", 0);
    test_join_invited(store, "four", 0, "a");
    test_join(store, "five", 0);
    test_batch(store);
    assert_int_equal(test_waiting_place(store, "one"), 1);
    assert_int_equal(test_waiting_place(store, "two"), 2);
    assert_int_equal(test_waiting_place(store, "three"), 3);
    assert_int_equal(test_waiting_place(store, "four"), -1);
    assert_int_equal(test_waiting_place(store, "five"), 5);
    test_exceptions_are(store, "3:4:0");
    test_invariants(store->redis, &store->keys);
}

static void a_spent_invite_is_forgotten_after_its_end(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join_invited(store, "anna", 0, "invite-1");
    test_batch(store);
    long long ttl = test_redis_number(store->redis, "PTTL tl:{q}:spent:invite-1");
    assert_true(ttl > 0);
    assert_true((uint64_t)ttl < TEST_INVITE_UNTIL_MS);
}

/* The digest of invite-1: the first 16 digits of `printf %s invite-1 | sha1sum`. */
#define DIGEST_1 "88d908dccfacbfe0"

/* What a worker sends for a pending ticket that was given at `seconds`. */
static void repeat(struct test_store *store, const char *visitor, long long seconds,
                   const char *digest)
{
    char id[TL_BATCH_INVITE_MAX];
    snprintf(id, sizeof(id), " %lld%s%s", seconds, digest[0] != '\0' ? " " : "", digest);
    test_join_invited(store, visitor, 0, id);
    test_batch(store);
}

static void a_repeated_join_finds_the_place_of_the_first(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    long long now = (long long)time(NULL);
    test_join_invited(store, "anna", 0, "invite-1");
    test_batch(store);
    repeat(store, "anna", now, DIGEST_1);
    test_exceptions_are(store, "0:1:1");
    test_join(store, "bert", 0);
    test_batch(store);
    repeat(store, "bert", now, "");
    test_exceptions_are(store, "0:1:3");
    assert_int_equal(test_state(store, "joined"), 2);
    test_invariants(store->redis, &store->keys);
}

static void a_repeated_join_spends_the_invite_if_the_first_was_lost(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    repeat(store, "anna", (long long)time(NULL), DIGEST_1);
    test_exceptions_are(store, "");
    assert_int_equal(test_waiting_place(store, "anna"), 1);
    test_join_invited(store, "anna", 0, "invite-1"); /* while the place is held */
    test_batch(store);
    test_exceptions_are(store, "0:1:1");
    test_command(store, TL_COMMAND_LEAVE, "anna", 1);
    test_join_invited(store, "anna", 0, "invite-1");
    test_batch(store);
    test_exceptions_are(store, "1:4:0");
    repeat(store, "mallory", (long long)time(NULL), DIGEST_1);
    test_exceptions_are(store, "0:4:0");
    assert_int_equal(test_state(store, "joined"), 1);
    test_invariants(store->redis, &store->keys);
}

static void a_repeated_join_with_a_spent_invite_gets_nothing(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join_invited(store, "anna", 0, "invite-1");
    test_batch(store);
    test_command(store, TL_COMMAND_LEAVE, "anna", 1);
    test_batch(store);
    /* Given long after the place had ended. */
    repeat(store, "anna", (long long)time(NULL) + 60, DIGEST_1);
    test_exceptions_are(store, "0:4:0");
    assert_int_equal(test_waiting_place(store, "anna"), -1);
}

static void a_repeated_join_ends_with_the_place(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    long long now = (long long)time(NULL);
    test_join(store, "anna", 0);
    test_batch(store);
    test_command(store, TL_COMMAND_LEAVE, "anna", 1);
    test_batch(store);
    repeat(store, "anna", now - 2, "");
    test_exceptions_are(store, "0:4:0");
    repeat(store, "anna", (long long)time(NULL), ""); /* given when the place ended */
    test_exceptions_are(store, "0:4:0");
    repeat(store, "anna", (long long)time(NULL) + 1, ""); /* the worker's clock is ahead */
    test_exceptions_are(store, "0:4:0");
    repeat(store, "anna", now + 60, ""); /* of a later join: what ended was an earlier place */
    test_exceptions_are(store, "");
    assert_int_equal(test_state(store, "joined"), 2);
    test_invariants(store->redis, &store->keys);
}

/* What has ended is an earlier place of the visitor. */
static void a_repeated_join_after_an_earlier_end_finds_the_place(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join(store, "anna", 0);
    test_batch(store);
    test_command(store, TL_COMMAND_LEAVE, "anna", 1);
    test_join(store, "anna", 0);
    test_batch(store);
    repeat(store, "anna", (long long)time(NULL), "");
    test_exceptions_are(store, "0:1:2");
    assert_int_equal(test_state(store, "joined"), 2);
    test_invariants(store->redis, &store->keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_invite_joins_once, test_store_clean),
        cmocka_unit_test_setup(the_visitor_who_spent_it_gets_the_place_again, test_store_clean),
        cmocka_unit_test_setup(the_invite_of_another_is_refused_with_a_place_too, test_store_clean),
        cmocka_unit_test_setup(but_not_after_the_place_has_ended, test_store_clean),
        cmocka_unit_test_setup(an_invite_whose_key_is_damaged_is_spent, test_store_clean),
        cmocka_unit_test_setup(among_other_joins_each_visitor_gets_the_right_place,
                               test_store_clean),
        cmocka_unit_test_setup(a_spent_invite_is_forgotten_after_its_end, test_store_clean),
        cmocka_unit_test_setup(a_repeated_join_finds_the_place_of_the_first, test_store_clean),
        cmocka_unit_test_setup(a_repeated_join_spends_the_invite_if_the_first_was_lost,
                               test_store_clean),
        cmocka_unit_test_setup(a_repeated_join_with_a_spent_invite_gets_nothing, test_store_clean),
        cmocka_unit_test_setup(a_repeated_join_ends_with_the_place, test_store_clean),
        cmocka_unit_test_setup(a_repeated_join_after_an_earlier_end_finds_the_place,
                               test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
