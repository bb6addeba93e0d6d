/* SPDX-License-Identifier: Apache-2.0 */
/* Every function that changes a queue commits once: one event number, one entry with the sizes of
 * the sets, and the counters to match. A function that changes nothing commits nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/queue.h"
#include "common/store/reply.h"
#include "ingest.h"

/* The queue before each step: v1 to v3 are active (v3 has not claimed), v4 to v6 wait. */
static void fill(struct test_store *store)
{
    test_store_queue(store, "lanes=only capacity=3 waiting_ttl=1h session_sliding=true");
    test_join_many(store, "v", 6, 0);
    assert_int_equal(test_admit(store, 3), 3);
    test_command(store, TL_COMMAND_RENEW, "v1", 1);
    test_command(store, TL_COMMAND_RENEW, "v2", 2);
    test_batch(store);
}

static void run(struct test_store *store, const char *source, const char *arguments)
{
    char error[320];
    struct tl_reply *reply = test_function(store->redis, source, &store->keys, arguments, error);
    if (reply == NULL)
        fail_msg("%s", error);
    tl_reply_free(reply);
}

static void join(struct test_store *store)
{
    test_join(store, "v7", 0);
    test_batch(store);
}

static void join_again(struct test_store *store)
{
    test_join(store, "v4", 0);
    test_batch(store);
}

static void leave(struct test_store *store)
{
    test_command(store, TL_COMMAND_LEAVE, "v1", 1);
    test_command(store, TL_COMMAND_LEAVE, "v4", 4);
    test_batch(store);
}

static void complete(struct test_store *store)
{
    test_command(store, TL_COMMAND_COMPLETE, "v2", 2);
    test_batch(store);
}

static void renew(struct test_store *store)
{
    test_command(store, TL_COMMAND_RENEW, "v3", 3);
    test_batch(store);
}

static void seen(struct test_store *store)
{
    test_seen(store, 4, 3);
    test_batch(store);
}

static void two_batches_in_one_call(struct test_store *store)
{
    struct tl_apply_counts counts = {0};
    struct tl_error err = {0};
    test_join(store, "v7", 0);
    test_send(store, "other", 1, NULL);
    test_join(store, "v8", 0);
    test_send(store, "another", 1, NULL);
    assert_int_equal(test_deliver(store), 2);
    assert_true(test_apply_pending(store, 1, &counts, &err));
    assert_int_equal(counts.applied, 2);
}

static void admit(struct test_store *store)
{
    test_redis_ask(store->redis, "HSET %s capacity 5", store->keys.names[TL_KEY_CONFIG]);
    assert_int_equal(test_admit(store, 10), 2);
}

static void expire(struct test_store *store)
{
    test_redis_ask(store->redis, "ZADD %s XX 5 v2 6 v3", store->keys.names[TL_KEY_ACTIVE]);
    run(store, TL_FN_EXPIRE, "10 1000");
}

static void drop_absent(struct test_store *store)
{
    struct tl_reply *reply = test_function(store->redis, TL_FN_PRESENCE, &store->keys, "", NULL);
    char arguments[64];
    snprintf(arguments, sizeof(arguments), "%lld 1000 4 6",
             (long long)tl_reply_integer(tl_reply_at(reply, 0)));
    tl_reply_free(reply);
    run(store, TL_FN_ABSENT, arguments);
}

static void remove_waiting(struct test_store *store)
{
    run(store, TL_FN_REMOVE, "1000 v5");
}

static void revoke(struct test_store *store)
{
    run(store, TL_FN_REMOVE, "1000 v2");
}

static void configure(struct test_store *store)
{
    struct tl_error err = {0};
    if (!test_queue_set(store->redis, &store->keys, "capacity", "7", &err))
        fail_msg("%s", err.text);
}

static void notice(struct test_store *store)
{
    run(store, TL_FN_CONFIGURE, "1000 notice soon");
}

/* A field of the state and by how much the step changes it. */
struct change {
    const char *field;
    int by;
};

static const struct {
    const char *name;
    void (*step)(struct test_store *store);
    struct change changes[4]; /* besides event; no other counter changes */
} steps[] = {
    {"join", join, {{"seq", 1}, {"joined", 1}, {"waiting", 1}}},
    {"join again", join_again, {{"seq", 1}}},
    {"leave", leave, {{"waiting", -1}, {"active", -1}, {"left", 2}}},
    {"complete", complete, {{"active", -1}, {"completed", 1}}},
    {"renew", renew, {{NULL, 0}}},
    {"seen", seen, {{NULL, 0}}},
    {"two batches", two_batches_in_one_call, {{"seq", 2}, {"joined", 2}, {"waiting", 2}}},
    {"admit", admit, {{"waiting", -2}, {"active", 2}, {"admitted", 2}, {"admit_capacity", 2}}},
    {"expire", expire, {{"active", -2}, {"expired", 2}, {"unclaimed", 1}}},
    {"absent", drop_absent, {{"waiting", -2}, {"expired", 2}, {"absent", 2}}},
    {"remove", remove_waiting, {{"waiting", -1}, {"expired", 1}, {"removed", 1}}},
    {"revoke", revoke, {{"active", -1}, {"expired", 1}, {"removed", 1}}},
    {"configure", configure, {{NULL, 0}}},
    {"notice", notice, {{NULL, 0}}},
};

static const char *const counters[] = {
    "generation", "fence",   "seq",  "waiting",   "active", "joined",  "admitted",
    "completed",  "expired", "left", "unclaimed", "absent", "removed", "admit_capacity"};
#define N_COUNTERS (sizeof(counters) / sizeof(counters[0]))

static int expected_change(const struct change changes[4], const char *field)
{
    for (size_t i = 0; i < 4; i++)
        if (changes[i].field != NULL && strcmp(changes[i].field, field) == 0)
            return changes[i].by;
    return 0;
}

static long long n_entries(struct test_store *store)
{
    return test_redis_ask(store->redis, "XLEN %s", store->keys.names[TL_KEY_EVENTS]);
}

static void every_step_commits_once(void **state)
{
    struct test_store *store = *state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        test_store_clean(state);
        fill(store);
        long long before[N_COUNTERS];
        for (size_t k = 0; k < N_COUNTERS; k++)
            before[k] = test_state(store, counters[k]);
        long long event = test_state(store, "event"), entries = n_entries(store);
        steps[i].step(store);
        test_invariants(store->redis, &store->keys);
        for (size_t k = 0; k < N_COUNTERS; k++) {
            long long expected = before[k] + expected_change(steps[i].changes, counters[k]);
            if (test_state(store, counters[k]) != expected)
                fail_msg("%s: %s is %lld instead of %lld", steps[i].name, counters[k],
                         test_state(store, counters[k]), expected);
        }
        if (test_state(store, "event") != event + 1 || n_entries(store) != entries + 1)
            fail_msg("%s: %lld events and %lld entries more", steps[i].name,
                     test_state(store, "event") - event, n_entries(store) - entries);
        struct test_entry last; /* its number and sizes are those of the state, or this fails */
        test_entry_read(store, &last);
        assert_true(last.entry.n_events > 0);
        test_entry_free(&last);
    }
}

static void a_step_that_changes_nothing_commits_nothing(void **state)
{
    struct test_store *store = *state;
    static const struct {
        const char *source, *arguments;
    } calls[] = {
        {TL_FN_ADMIT, "10 1000"},
        {TL_FN_ADAPT, "1000"},
        {TL_FN_EXPIRE, "10 1000"},
        {TL_FN_ABSENT, "0 1000 4"}, /* judged in an earlier bucket */
        {TL_FN_HEAD, ""},
        {TL_FN_SNAPSHOT_ACTIVE, "0 100"},
        {TL_FN_PRESENCE, ""},
        {TL_FN_AUDIT_STATE, "60000"},
        {TL_FN_AUDIT_ACTIVE, "- 2 604800000"},
        {TL_FN_AUDIT_WAITING, "- 2"},
        {TL_FN_AUDIT_SERIALS, "- 2"},
        {TL_FN_REMOVE, "1000 nobody"},
    };
    fill(store);
    uint64_t before = test_redis_fingerprint(store->redis);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        run(store, calls[i].source, calls[i].arguments);
        assert_int_equal(test_redis_fingerprint(store->redis), before);
    }
}

/* Redis 7.2 and Valkey write the number 100000000 as 1e+8, which other programs do not expect. */
static void large_counters_are_written_as_digits(void **state)
{
    struct test_store *store = *state;
    fill(store);
    test_redis_ask(store->redis,
                   "HSET %s seq 99999999 joined 99999999 event 99999999 completed 99999993",
                   store->keys.names[TL_KEY_STATE]);
    test_join(store, "v7", 0);
    test_batch(store);
    assert_int_equal(test_state(store, "seq"), 100000000);
    assert_int_equal(test_state(store, "joined"), 100000000);
    assert_int_equal(test_state(store, "event"), 100000000);
    test_redis_ask(store->redis, "HSET %s capacity 9", store->keys.names[TL_KEY_CONFIG]);
    assert_int_equal(test_admit(store, 4), 4);
    struct tl_reply *session = test_redis_call(store->redis, "HGET tl:{q}:sessions v7");
    assert_int_equal(strncmp(tl_reply_string(session, NULL), "100000000:", 10), 0);
    tl_reply_free(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_step_commits_once, test_store_clean),
        cmocka_unit_test_setup(a_step_that_changes_nothing_commits_nothing, test_store_clean),
        cmocka_unit_test_setup(large_counters_are_written_as_digits, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
