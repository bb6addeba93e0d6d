/* SPDX-License-Identifier: Apache-2.0 */
/* The expire function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/reply.h"
#include "ingest.h"

#define ENDED_MAX 500000 /* line/visitor.lua */

struct expired {
    long long n, next_ms, now_ms, forgotten;
};

static struct expired expire(struct test_store *store, unsigned most)
{
    char arguments[64];
    snprintf(arguments, sizeof(arguments), "%u 1000", most);
    struct tl_reply *reply =
        test_function(store->redis, TL_FN_EXPIRE, &store->keys, arguments, NULL);
    assert_int_equal(tl_reply_count(reply), TL_EXPIRE_BASE_SEQ + 1);
    assert_int_equal(tl_reply_number(reply, TL_EXPIRE_BASE_SEQ), test_state(store, "base_seq"));
    struct expired result = {.n = tl_reply_signed(reply, TL_EXPIRE_ENDED),
                             .next_ms = tl_reply_signed(reply, TL_EXPIRE_DEADLINE),
                             .now_ms = tl_reply_signed(reply, TL_EXPIRE_NOW),
                             .forgotten = tl_reply_signed(reply, TL_EXPIRE_FORGOTTEN)};
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

/* Retries until the function runs in exactly the millisecond of a deadline. */
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
    fail_msg("the function never ran at a deadline");
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

/* The function sorts close places differently from places far apart. */
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

static void leave(struct test_store *store, const char *visitor)
{
    long long place = test_redis_ask(store->redis, "ZSCORE tl:{q}:waiting %s", visitor);
    test_command(store, TL_COMMAND_LEAVE, visitor, (tl_place)place);
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
    /* Visitors who leave are bounded too, without the expirer: at once where several leave, and
     * within a hundred steps where one by one does. */
    char name[24];
    for (int i = 0; i < 102; i++) {
        snprintf(name, sizeof(name), "leaver%d", i);
        test_join(store, name, 0);
    }
    test_batch(store);
    leave(store, "leaver0");
    leave(store, "leaver1");
    test_batch(store);
    assert_int_equal(test_end_reason(store, "leaver1"), TL_REASON_LEFT);
    assert_int_equal(test_redis_ask(store->redis, "ZCARD %s", ended), ENDED_MAX);
    int bounded = 0;
    for (int i = 2; i < 102; i++) {
        snprintf(name, sizeof(name), "leaver%d", i);
        leave(store, name);
        test_batch(store);
        assert_int_equal(test_end_reason(store, name), TL_REASON_LEFT);
        bounded += test_redis_ask(store->redis, "ZCARD %s", ended) == ENDED_MAX;
    }
    assert_int_equal(bounded, 1);
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
    assert_null(test_function(store->redis, TL_FN_EXPIRE, &store->keys, "10 100", error));
    assert_non_null(strstr(error, "NOQUEUE"));
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

/* Nothing undoes a function that fails half-way. */
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
        assert_null(test_function(store->redis, TL_FN_EXPIRE, &store->keys, "10 1000", error));
        assert_non_null(strstr(error, "WRONGTYPE"));
        assert_int_equal(test_redis_fingerprint(store->redis), before);
    }
}

enum { DAY_MS = 86400000 };

static void set_session(struct test_store *store, const char *visitor, long long place,
                        long long admitted_ms, bool claimed)
{
    test_redis_ask(store->redis, "HSET %s %s %lld:%lld:%d", store->keys.names[TL_KEY_SESSIONS],
                   visitor, place, admitted_ms, claimed ? 1 : 0);
}

/* The server's clock was a day ahead for a moment. */
static void a_session_of_a_clock_that_was_ahead_begins_now(void **state)
{
    struct test_store *store = *state;
    struct test_entry last;
    admit_many(store, "lanes=only capacity=9 session_ttl=10m claim_ttl=2m", 4);
    long long now = test_redis_ms(store->redis), usual = test_deadline(store, "v1"),
              ahead = now + DAY_MS;
    set_session(store, "v2", 2, ahead, false);
    set_deadline(store, "v2", ahead + 120000);
    set_session(store, "v3", 3, ahead, true);
    set_deadline(store, "v3", ahead + 600000);
    set_session(store, "v4", 4, now, true); /* from before session_ttl was lowered */
    set_deadline(store, "v4", now + 7200000);
    struct expired result = expire(store, 10);
    assert_int_equal(result.n, 0);
    assert_int_equal(test_deadline(store, "v1"), usual);
    assert_in_range(test_deadline(store, "v2"), now + 120000, result.now_ms + 120000);
    assert_in_range(test_deadline(store, "v3"), now + 600000, result.now_ms + 600000);
    assert_int_equal(test_deadline(store, "v4"), now + 7200000);
    test_entry_read(store, &last);
    assert_int_equal(last.entry.n_events, 2); /* readers learn of both */
    assert_int_equal(last.entry.events[0].kind, TL_EVENT_RENEWED);
    assert_int_equal(last.entry.events[0].places.runs[0].first, 3);
    assert_int_equal(last.entry.events[1].kind, TL_EVENT_EXTENDED);
    assert_int_equal(last.entry.events[1].places.runs[0].first, 2);
    test_entry_free(&last);
    long long event = test_state(store, "event");
    (void)expire(store, 10);
    assert_int_equal(test_state(store, "event"), event);
}

/* It is honest, and would be kept for a day longer than others. */
static void an_end_of_a_clock_that_was_ahead_is_of_now(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    long long now = test_redis_ms(store->redis);
    test_redis_ask(store->redis, "ZADD %s %lld before %lld ahead", store->keys.names[TL_KEY_ENDED],
                   (now - 5000) * 8 + TL_REASON_LEFT, (now + DAY_MS) * 8 + TL_REASON_COMPLETED);
    struct expired result = expire(store, 10);
    assert_int_equal(test_end_reason(store, "ahead"), TL_REASON_COMPLETED);
    assert_in_range(
        test_redis_ask(store->redis, "ZSCORE %s ahead", store->keys.names[TL_KEY_ENDED]), now * 8,
        result.now_ms * 8 + 7);
    assert_int_equal(
        test_redis_ask(store->redis, "ZSCORE %s before", store->keys.names[TL_KEY_ENDED]),
        (now - 5000) * 8 + TL_REASON_LEFT);
}

static void a_line_that_was_full_in_the_future_is_full_now(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only recovery_window=60s");
    long long now = test_redis_ms(store->redis), ahead = now + DAY_MS;
    test_redis_ask(store->redis,
                   "HSET %s full_since %lld recover_since %lld started %lld recover_until %lld",
                   store->keys.names[TL_KEY_STATE], ahead, ahead, ahead, ahead + 60000);
    struct expired result = expire(store, 10);
    static const char *const fields[] = {"full_since", "recover_since", "started"};
    for (size_t i = 0; i < 3; i++)
        assert_in_range(test_state(store, fields[i]), now, result.now_ms);
    assert_in_range(test_state(store, "recover_until"), now + 60000, result.now_ms + 60000);
    struct test_entry last;
    test_entry_read(store, &last);
    assert_non_null(test_event(&last, TL_EVENT_CONFIG, 0));
    test_entry_free(&last);
}

/* ---- what Redis does not know yet, or no more ---- */

/* No dispatcher runs. A renewal that was written before the deadline is worth a session. */
static void no_session_ends_before_its_renewal_is_applied(void **state)
{
    struct test_store *store = *state;
    admit_many(store, "lanes=only capacity=9 claim_ttl=1h session_ttl=1h", 3);
    set_deadline(store, "v3", test_redis_ms(store->redis) - 1); /* before the entry */
    test_command(store, TL_COMMAND_CLAIM, "v1", 1);
    test_command(store, TL_COMMAND_RENEW, "v2", 2);
    test_send(store, "w", ++store->number, NULL);
    set_deadline(store, "v1", test_redis_ms(store->redis));
    set_deadline(store, "v2", test_redis_ms(store->redis));
    struct expired unread = expire(store, 10);
    assert_int_equal(unread.n, 1);
    assert_int_equal(test_end_reason(store, "v3"), TL_REASON_UNCLAIMED);
    assert_in_range(unread.next_ms, unread.now_ms + 1, unread.now_ms + 500);
    assert_int_equal(test_deliver(store), 1);
    assert_int_equal(expire(store, 10).n, 0);
    struct tl_apply_counts counts = {0};
    assert_true(test_apply_pending(store, 1, &counts, NULL));
    assert_int_equal(expire(store, 10).n, 0);
    assert_true(test_deadline(store, "v1") > unread.now_ms + 3000000);
    assert_true(test_deadline(store, "v2") > unread.now_ms + 3000000);
}

/* A stream that nobody reads must not hold places for ever. */
static void an_entry_holds_sessions_for_some_minutes(void **state)
{
    struct test_store *store = *state;
    const char *ingest = store->keys.names[TL_KEY_INGEST];
    admit_many(store, "lanes=only capacity=9", 2);
    long long now = test_redis_ms(store->redis);
    test_redis_ask(store->redis, "DEL %s", ingest);
    test_redis_ask(store->redis, "XADD %s 1000-0 d x", ingest);
    test_redis_ask(store->redis, "XGROUP CREATE %s dispatchers 0", ingest);
    set_deadline(store, "v1", now - 300001);
    set_deadline(store, "v2", now - 200000);
    assert_int_equal(expire(store, 10).n, 1);
    assert_true(test_end_reason(store, "v1") != 0);
    test_redis_ask(store->redis, "DEL %s", ingest);
    test_redis_ask(store->redis, "SET %s x", ingest); /* nor one that cannot be read */
    assert_int_equal(expire(store, 10).n, 1);
}

/* The store was restarted just now, and knows the deadlines of before the lost end of its history.
 */
static void lose_end(struct test_store *store, long long began_ms)
{
    test_redis_ask(store->redis, "HSET %s base_ms %lld found_event 100 event 1000",
                   store->keys.names[TL_KEY_STATE], began_ms);
}

static void remember(struct test_store *store, tl_place place, uint64_t event, uint64_t deadline_ms)
{
    const uint64_t generation = (uint64_t)test_state(store, "generation");
    const struct tl_command command = {.kind = TL_COMMAND_CALLED,
                                       .numbers = {generation, event, place, deadline_ms}};
    test_add(store, &command);
}

static void sessions_last_as_long_as_workers_remember(void **state)
{
    struct test_store *store = *state;
    admit_many(store,
               "lanes=only capacity=9 claim_ttl=1m session_ttl=5m session_max=1h "
               "session_sliding=true",
               5);
    const long long now = test_redis_ms(store->redis),
                    admitted = test_deadline(store, "v1") - 60000;
    lose_end(store, now);
    remember(store, 1, 101, (uint64_t)now + 200000);      /* claimed */
    remember(store, 1, 102, (uint64_t)now + 100000);      /* as a worker knew that lags */
    remember(store, 2, 101, (uint64_t)admitted + 120000); /* an EXTEND */
    remember(store, 3, 100, (uint64_t)now + 200000);      /* not in the lost end */
    remember(store, 4, 101, (uint64_t)now + 86400000);    /* longer than there are sessions */
    test_batch(store);
    all_due(store, 5);
    struct expired held = expire(store, 10);
    assert_int_equal(held.n, 0);
    assert_in_range(held.next_ms, now + 5000, now + 5000);
    lose_end(store, now - 5000);
    assert_int_equal(expire(store, 10).n, 2);
    assert_int_equal(test_end_reason(store, "v3"), TL_REASON_UNCLAIMED);
    assert_int_equal(test_end_reason(store, "v5"), TL_REASON_UNCLAIMED);
    assert_int_equal(test_deadline(store, "v1"), now + 200000);
    assert_int_equal(test_deadline(store, "v2"), admitted + 120000);
    assert_in_range(test_deadline(store, "v4"), admitted + 3600000, admitted + 3600000);
    assert_int_equal(test_state(store, "active"), 3);
    assert_int_equal(test_state(store, "expired"), 2);
    all_due(store, 5);
    assert_int_equal(expire(store, 10).n, 3); /* told once */
    assert_int_equal(test_end_reason(store, "v1"), TL_REASON_EXPIRED);
    assert_int_equal(test_end_reason(store, "v2"), TL_REASON_UNCLAIMED);
}

/* The later end of one session has passed as well, before the other was due. */
static void a_remembered_end_that_has_passed_keeps_nobody_else(void **state)
{
    struct test_store *store = *state;
    admit_many(store, "lanes=only capacity=9 claim_ttl=1m session_ttl=5m", 2);
    const long long now = test_redis_ms(store->redis);
    lose_end(store, now - 5000);
    remember(store, 1, 101, (uint64_t)now - 2000);
    test_batch(store);
    set_deadline(store, "v1", now - 3000);
    set_deadline(store, "v2", now - 1000);
    assert_int_equal(expire(store, 10).n, 1);
    assert_int_equal(test_end_reason(store, "v2"), TL_REASON_UNCLAIMED);
    assert_int_equal(test_deadline(store, "v1"), now - 2000);
    assert_int_equal(expire(store, 10).n, 1);
    assert_int_equal(test_end_reason(store, "v1"), TL_REASON_EXPIRED);
    assert_int_equal(test_state(store, "active"), 0);
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
        cmocka_unit_test_setup(a_session_of_a_clock_that_was_ahead_begins_now, test_store_clean),
        cmocka_unit_test_setup(an_end_of_a_clock_that_was_ahead_is_of_now, test_store_clean),
        cmocka_unit_test_setup(a_line_that_was_full_in_the_future_is_full_now, test_store_clean),
        cmocka_unit_test_setup(no_session_ends_before_its_renewal_is_applied, test_store_clean),
        cmocka_unit_test_setup(an_entry_holds_sessions_for_some_minutes, test_store_clean),
        cmocka_unit_test_setup(sessions_last_as_long_as_workers_remember, test_store_clean),
        cmocka_unit_test_setup(a_remembered_end_that_has_passed_keeps_nobody_else,
                               test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
