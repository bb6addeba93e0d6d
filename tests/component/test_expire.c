/* The expire script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/reply.h"
#include "generated/expirer_scripts.h"
#include "ingest.h"

#define ENDED_MAX 500000 /* prelude.ended.lua */

struct expired {
    long long n, next_ms, now_ms, forgotten;
};

static struct expired expire(struct test_store *store, unsigned most)
{
    char arguments[64];
    snprintf(arguments, sizeof(arguments), "%u 1000", most);
    struct tl_reply *reply =
        test_script(store->redis, tl_script_expire, &store->keys, arguments, NULL);
    assert_int_equal(tl_reply_count(reply), 5);
    struct expired result = {.n = tl_reply_integer(tl_reply_at(reply, 0)),
                             .next_ms = tl_reply_integer(tl_reply_at(reply, 1)),
                             .now_ms = tl_reply_integer(tl_reply_at(reply, 2)),
                             .forgotten = tl_reply_integer(tl_reply_at(reply, 3))};
    tl_reply_free(reply);
    test_invariants(store->redis, &store->keys);
    return result;
}

/* n active visitors v1 to vN of queue "q". */
static void admit_many(struct test_store *store, const char *settings, unsigned n)
{
    test_store_queue(store, settings);
    test_join_many(store, "v", n, 0);
    assert_int_equal(test_admit(store, n), n);
}

static void set_deadline(struct test_store *store, const char *visitor, long long deadline_ms)
{
    test_redis_ask(store->redis, "ZADD %s XX %lld %s", store->keys.names[TL_KEY_ACTIVE],
                   deadline_ms, visitor);
}

static void only_what_is_due_ends(void **state)
{
    struct test_store *store = *state;
    admit_many(store, "lanes=only capacity=9 claim_ttl=1h session_ttl=1h", 3);
    long long later = test_deadline(store, "v1");
    struct expired none = expire(store, 10);
    assert_int_equal(none.n, 0);
    assert_int_equal(none.next_ms, later);
    assert_int_equal(test_state(store, "event"), 2);
    set_deadline(store, "v2", test_redis_ms(store->redis));
    struct expired one = expire(store, 10);
    assert_int_equal(one.n, 1);
    assert_int_equal(one.next_ms, later);
    assert_int_equal(test_deadline(store, "v2"), -1);
    assert_int_equal(test_deadline(store, "v1"), later);
    assert_int_equal(test_end_reason(store, "v2"), TL_REASON_UNCLAIMED);
    struct test_entry last;
    test_entry_read(store, &last);
    assert_int_equal(last.entry.n_events, 1);
    test_runs_are(test_event(&last, TL_EVENT_FREED, TL_REASON_UNCLAIMED), "2+1");
    assert_int_equal(last.entry.active, 2);
    test_entry_free(&last);
}

static void a_deadline_in_the_future_is_not_due(void **state)
{
    struct test_store *store = *state;
    admit_many(store, "lanes=only capacity=9", 1);
    long long deadline = test_redis_ms(store->redis) + 60;
    set_deadline(store, "v1", deadline);
    struct expired result;
    do {
        result = expire(store, 10);
        if (result.n == 0)
            assert_int_equal(result.next_ms, deadline);
    } while (result.n == 0 && result.now_ms < deadline + 1000);
    assert_int_equal(result.n, 1);
    assert_true(result.now_ms >= deadline);
    assert_int_equal(result.next_ms, 0);
}

/* Retries until the script runs in exactly the millisecond of a deadline. */
static void at_its_deadline_a_session_is_due(void **state)
{
    struct test_store *store = *state;
    admit_many(store, "lanes=only capacity=999", 500);
    for (unsigned i = 1; i <= 500; i++) {
        char visitor[8];
        snprintf(visitor, sizeof(visitor), "v%u", i);
        long long deadline = test_redis_ms(store->redis) + 2;
        set_deadline(store, visitor, deadline);
        struct expired result;
        do {
            result = expire(store, 1);
        } while (result.now_ms < deadline);
        if (result.now_ms != deadline)
            continue;
        assert_int_equal(result.n, 1);
        return;
    }
    fail_msg("the script never ran at a deadline");
}

static void unclaimed_and_expired_have_reasons_of_their_own(void **state)
{
    struct test_store *store = *state;
    admit_many(store, "lanes=only capacity=9", 5);
    test_command(store, TL_COMMAND_RENEW, "v2", 2);
    test_command(store, TL_COMMAND_RENEW, "v4", 4);
    test_batch(store);
    for (unsigned i = 1; i <= 4; i++) {
        char visitor[8];
        snprintf(visitor, sizeof(visitor), "v%u", i);
        set_deadline(store, visitor, 5 - i); /* not in the order of places */
    }
    assert_int_equal(expire(store, 10).n, 4);
    struct test_entry last;
    test_entry_read(store, &last);
    assert_int_equal(last.entry.n_events, 2);
    test_runs_are(test_event(&last, TL_EVENT_FREED, TL_REASON_UNCLAIMED), "1+1 3+1");
    test_runs_are(test_event(&last, TL_EVENT_FREED, TL_REASON_EXPIRED), "2+1 4+1");
    test_entry_free(&last);
    assert_int_equal(test_end_reason(store, "v1"), TL_REASON_UNCLAIMED);
    assert_int_equal(test_end_reason(store, "v4"), TL_REASON_EXPIRED);
    assert_int_equal(test_state(store, "expired"), 4);
    assert_int_equal(test_state(store, "unclaimed"), 2);
    assert_int_equal(expire(store, 10).n, 0);
    assert_int_equal(test_state(store, "expired"), 4);
}

static void a_step_is_bounded_and_takes_the_oldest(void **state)
{
    struct test_store *store = *state;
    admit_many(store, "lanes=only capacity=9", 5);
    static const unsigned deadlines[] = {30, 10, 50, 20, 40};
    for (unsigned i = 0; i < 5; i++) {
        char visitor[8];
        snprintf(visitor, sizeof(visitor), "v%u", i + 1);
        set_deadline(store, visitor, deadlines[i]);
    }
    struct expired first = expire(store, 2);
    assert_int_equal(first.n, 2);
    assert_int_equal(first.next_ms, 30);
    assert_int_equal(test_end_reason(store, "v2"), TL_REASON_UNCLAIMED);
    assert_int_equal(test_end_reason(store, "v4"), TL_REASON_UNCLAIMED);
    assert_int_equal(test_end_reason(store, "v1"), 0);
    assert_int_equal(expire(store, 2).n, 2);
    assert_int_equal(expire(store, 2).n, 1);
}

static void all_due(struct test_store *store, unsigned n)
{
    for (unsigned i = 1; i <= n; i++) {
        char visitor[8];
        snprintf(visitor, sizeof(visitor), "v%u", i);
        set_deadline(store, visitor, 1000 + (i * 7919) % n); /* a shuffled order */
    }
}

static void many_due_at_once_end_batch_by_batch(void **state)
{
    struct test_store *store = *state;
    admit_many(store, "lanes=only capacity=9999", 2500);
    all_due(store, 2500);
    assert_int_equal(expire(store, 1000).n, 1000);
    assert_int_equal(test_state(store, "active"), 1500);
    assert_int_equal(expire(store, 1000).n, 1000);
    assert_int_equal(expire(store, 1000).n, 500);
    assert_int_equal(test_state(store, "expired"), 2500);
}

static void many_due_at_once_end_in_one_step(void **state)
{
    struct test_store *store = *state;
    admit_many(store, "lanes=only capacity=9999", 2500);
    all_due(store, 2500);
    struct expired result = expire(store, 2500);
    assert_int_equal(result.n, 2500);
    assert_int_equal(result.next_ms, 0);
    struct test_entry last;
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_FREED, TL_REASON_UNCLAIMED), "1+2500");
    test_entry_free(&last);
    assert_int_equal(test_redis_ask(store->redis, "ZCARD %s", store->keys.names[TL_KEY_ENDED]),
                     2500);
}

/* Lets these visitors end in one step, in this order, and reads the event. */
static void assert_freed(struct test_store *store, const unsigned *seqs, size_t n, const char *runs)
{
    for (size_t i = 0; i < n; i++) {
        char visitor[8];
        snprintf(visitor, sizeof(visitor), "v%u", seqs[i]);
        set_deadline(store, visitor, 1000 + (long long)i);
    }
    assert_int_equal(expire(store, 1000).n, n);
    struct test_entry last;
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_FREED, TL_REASON_UNCLAIMED), runs);
    test_entry_free(&last);
}

/* The script sorts close places differently from places far apart. */
static void events_have_places_in_order_however_far_apart(void **state)
{
    struct test_store *store = *state;
    static const unsigned far[] = {900, 3, 901, 1, 2, 500};
    static const unsigned close[] = {22, 12, 10, 11, 21, 13};
    static const unsigned two[] = {41, 40};
    admit_many(store, "lanes=only capacity=9999 claim_ttl=1h session_ttl=1h", 1000);
    assert_freed(store, far, 6, "1+3 500+1 900+2");
    assert_freed(store, close, 6, "10+4 21+2");
    assert_freed(store, two, 2, "40+2");
}

static void ends_are_forgotten_after_an_hour(void **state)
{
    struct test_store *store = *state;
    admit_many(store, "lanes=only capacity=9", 1);
    const char *ended = store->keys.names[TL_KEY_ENDED];
    long long hour_ago = test_redis_ms(store->redis) - 3600000;
    for (int i = 0; i < 5; i++)
        test_redis_ask(store->redis, "ZADD %s %lld old%d", ended, (hour_ago - 1 - i) * 8 + 1, i);
    test_redis_ask(store->redis, "ZADD %s %lld young", ended, (hour_ago + 60000) * 8 + 2);
    struct expired first = expire(store, 3);
    assert_int_equal(first.n, 0);
    assert_int_equal(first.forgotten, 3);
    assert_int_equal(test_end_reason(store, "old4"), 0); /* the oldest went first */
    assert_int_equal(test_end_reason(store, "old0"), 1);
    assert_int_equal(expire(store, 3).forgotten, 2);
    assert_int_equal(expire(store, 3).forgotten, 0);
    assert_int_equal(test_end_reason(store, "young"), TL_REASON_LEFT);
    assert_int_equal(test_state(store, "event"), 2); /* no event */
}

/* Adds `n` ends of now, in calls that a busy machine finishes within the time limit of one. */
static void add_ends(struct test_store *store, int n)
{
    enum { PORTION = 20000 };
    int64_t now_ms = test_redis_ms(store->redis);
    for (int from = 1; from <= n; from += PORTION) {
        struct tl_args args = {0};
        tl_args_strs(&args, "EVAL",
                     "for i = ARGV[2], ARGV[3] do"
                     " redis.call('ZADD', KEYS[1], ARGV[1] + i, 'v' .. i) end",
                     "1", store->keys.names[TL_KEY_ENDED], NULL);
        tl_args_int(&args, now_ms * 8);
        tl_args_int(&args, from);
        tl_args_int(&args, n < from + PORTION - 1 ? n : from + PORTION - 1);
        assert_true(tl_redis_do(store->redis, &args, NULL));
        tl_args_free(&args);
    }
}

static void ends_beyond_the_most_are_forgotten_oldest_first(void **state)
{
    struct test_store *store = *state;
    const char *ended = store->keys.names[TL_KEY_ENDED];
    admit_many(store, "lanes=only capacity=9", 2);
    add_ends(store, ENDED_MAX + 5);
    assert_int_equal(expire(store, 3).forgotten, 3);
    assert_int_equal(test_redis_ask(store->redis, "ZSCORE %s v3", ended), -1);
    assert_int_equal(expire(store, 3).forgotten, 2);
    assert_int_equal(expire(store, 3).forgotten, 0);
    assert_int_equal(test_redis_ask(store->redis, "ZCARD %s", ended), ENDED_MAX);
    /* Visitors who leave are bounded too, without the expirer. */
    test_join(store, "leaver", 0);
    test_batch(store);
    test_command(store, TL_COMMAND_LEAVE, "leaver",
                 (tl_place)test_redis_ask(store->redis, "ZSCORE %s leaver",
                                          store->keys.names[TL_KEY_WAITING]));
    test_batch(store);
    assert_int_equal(test_end_reason(store, "leaver"), TL_REASON_LEFT);
    assert_int_equal(test_redis_ask(store->redis, "ZCARD %s", ended), ENDED_MAX);
}

/* A session whose record is lost or damaged must not block the others, nor be retried for ever. */
static void damaged_sessions_end_all_the_same(void **state)
{
    struct test_store *store = *state;
    const char *sessions = store->keys.names[TL_KEY_SESSIONS];
    admit_many(store, "lanes=only capacity=9", 8);
    all_due(store, 8);
    test_redis_ask(store->redis, "HSET %s v2 nonsense0", sessions);
    test_redis_ask(store->redis, "HDEL %s v4", sessions);
    test_redis_ask(store->redis, "HSET %s v6 6:17", sessions);
    test_redis_ask(store->redis, "HSET %s v7 nan:1763717000123:0", sessions);
    test_redis_ask(store->redis, "HSET %s v8 -8:1763717000123:0", sessions);
    struct expired result = expire(store, 10);
    assert_int_equal(result.n, 8);
    assert_int_equal(result.next_ms, 0);
    assert_int_equal(test_end_reason(store, "v2"), TL_REASON_EXPIRED);
    assert_int_equal(test_end_reason(store, "v4"), TL_REASON_EXPIRED);
    assert_int_equal(test_end_reason(store, "v5"), TL_REASON_UNCLAIMED);
    assert_int_equal(test_end_reason(store, "v7"), TL_REASON_EXPIRED);
    assert_int_equal(test_state(store, "expired"), 8);
    assert_int_equal(test_state(store, "unclaimed"), 3);
    struct test_entry last;
    test_entry_read(store, &last);
    assert_int_equal(last.entry.n_events, 1); /* the other places are not known */
    test_runs_are(test_event(&last, TL_EVENT_FREED, TL_REASON_UNCLAIMED), "1+1 3+1 5+1");
    test_entry_free(&last);
}

static void without_a_queue_nothing_expires(void **state)
{
    struct test_store *store = *state;
    char error[320];
    admit_many(store, "lanes=only capacity=9", 1);
    set_deadline(store, "v1", 1);
    test_redis_ask(store->redis, "DEL %s", store->keys.names[TL_KEY_STATE]);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_null(test_script(store->redis, tl_script_expire, &store->keys, "10 100", error));
    assert_non_null(strstr(error, "NOQUEUE"));
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

/* Nothing undoes a script that fails half-way. */
static void a_key_of_the_wrong_type_fails_the_step_before_it_writes(void **state)
{
    struct test_store *store = *state;
    const enum tl_key keys[] = {TL_KEY_ACTIVE, TL_KEY_SESSIONS, TL_KEY_ENDED, TL_KEY_EVENTS};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char error[320];
        const char *name = store->keys.names[keys[i]];
        test_store_clean(state);
        admit_many(store, "lanes=only capacity=9 claim_ttl=1h session_ttl=1h", 2);
        set_deadline(store, "v1", test_redis_ms(store->redis));
        test_redis_ask(store->redis, "DEL %s", name);
        test_redis_ask(store->redis, "SET %s x", name);
        uint64_t before = test_redis_fingerprint(store->redis);
        assert_null(test_script(store->redis, tl_script_expire, &store->keys, "10 1000", error));
        assert_non_null(strstr(error, "WRONGTYPE"));
        assert_int_equal(test_redis_fingerprint(store->redis), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(only_what_is_due_ends, test_store_clean),
        cmocka_unit_test_setup(a_deadline_in_the_future_is_not_due, test_store_clean),
        cmocka_unit_test_setup(at_its_deadline_a_session_is_due, test_store_clean),
        cmocka_unit_test_setup(unclaimed_and_expired_have_reasons_of_their_own, test_store_clean),
        cmocka_unit_test_setup(a_step_is_bounded_and_takes_the_oldest, test_store_clean),
        cmocka_unit_test_setup(many_due_at_once_end_batch_by_batch, test_store_clean),
        cmocka_unit_test_setup(many_due_at_once_end_in_one_step, test_store_clean),
        cmocka_unit_test_setup(events_have_places_in_order_however_far_apart, test_store_clean),
        cmocka_unit_test_setup(ends_are_forgotten_after_an_hour, test_store_clean),
        cmocka_unit_test_setup(ends_beyond_the_most_are_forgotten_oldest_first, test_store_clean),
        cmocka_unit_test_setup(damaged_sessions_end_all_the_same, test_store_clean),
        cmocka_unit_test_setup(without_a_queue_nothing_expires, test_store_clean),
        cmocka_unit_test_setup(a_key_of_the_wrong_type_fails_the_step_before_it_writes,
                               test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
