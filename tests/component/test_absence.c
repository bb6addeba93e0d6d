/* SPDX-License-Identifier: Apache-2.0 */
/* Absence: the presence and absent functions, and expirer/absence.c with a line built from the
 * store.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/store/reply.h"
#include "common/store/snapshot.h"
#include "common/store/tail.h"
#include "expirer/absence.h"
#include "ingest.h"
#include "side_by_side.h"

/* waiting_ttl 4 s gives buckets of 1 s: a shorter stall of the machine drops no visitor too many.
 */
#define SETTINGS   "lanes=vip,normal capacity=9999 waiting_ttl=4s"
#define BUCKET_MS  1000
#define GIVE_UP_MS 80000
#define POLL_MS    20
#define LANE1      (UINT64_C(1) << TL_PLACE_SEQ_BITS)

struct judgement {
    long long bucket, length_ms, observed, before, again_ms;
};

static struct judgement judge(struct test_store *store)
{
    struct tl_reply *reply = test_function(store->redis, TL_FN_PRESENCE, &store->keys, "", NULL);
    assert_int_equal(tl_reply_count(reply), 5);
    struct judgement result = {.bucket = tl_reply_integer(tl_reply_at(reply, 0)),
                               .length_ms = tl_reply_integer(tl_reply_at(reply, 1)),
                               .observed = tl_reply_integer(tl_reply_at(reply, 2)),
                               .before = tl_reply_integer(tl_reply_at(reply, 3)),
                               .again_ms = tl_reply_integer(tl_reply_at(reply, 4))};
    tl_reply_free(reply);
    return result;
}

/* One pass over a line fresh from the store. Returns how many it dropped. */
static uint64_t pass(struct test_store *store)
{
    struct tl_error err = {0};
    struct tl_tail_head head;
    uint64_t dropped;
    int64_t again_ms;
    struct tl_line *line = tl_snapshot(store->redis, &store->keys, &head, &err);
    struct tl_absence *absence = tl_absence_new(1000);
    assert_non_null(line);
    assert_non_null(absence);
    if (!tl_absence_pass(absence, test_held(store, 0), line, &dropped, &again_ms, &err))
        fail_msg("%s", err.text);
    assert_in_range(again_ms, 1, BUCKET_MS);
    tl_absence_free(&absence);
    tl_line_free(&line);
    test_invariants(store->redis, &store->keys);
    return dropped;
}

/* Makes all buckets around now observed. */
static void pretend_buckets(struct test_store *store)
{
    long long bucket = judge(store).bucket;
    for (long long b = bucket - 4; b < bucket + GIVE_UP_MS / BUCKET_MS; b++)
        test_redis_ask(store->redis, "SETBIT tl:{q}:seen:%lld 0 0", b);
}

/* The same, and all joins are old, while no visitor was seen. */
static void pretend_observed(struct test_store *store)
{
    pretend_buckets(store);
    struct tl_args args = {0};
    tl_args_strs(&args, "HSET", store->keys.names[TL_KEY_STATE], "marks", "", NULL);
    assert_true(tl_redis_do(store->redis, &args, NULL));
    tl_args_free(&args);
    assert_int_equal(judge(store).observed, 1);
}

/* Calls the absent function until a call falls into the bucket that it was given. */
static long long drop(struct test_store *store, const char *places)
{
    char arguments[256];
    long long dropped = 0;
    long long bucket, now_ms;
    do {
        bucket = judge(store).bucket;
        snprintf(arguments, sizeof(arguments), "%lld 1000 %s", bucket, places);
        struct tl_reply *reply =
            test_function(store->redis, TL_FN_ABSENT, &store->keys, arguments, NULL);
        dropped = tl_reply_integer(tl_reply_at(reply, 0));
        now_ms = tl_reply_integer(tl_reply_at(reply, 1));
        tl_reply_free(reply);
    } while (dropped == 0 && now_ms / BUCKET_MS != bucket);
    test_invariants(store->redis, &store->keys);
    return dropped;
}

static void seen_visitors_stay_and_absent_ones_are_dropped(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, SETTINGS);
    long long joined_ms = test_redis_ms(store->redis); /* not before */
    test_join_many(store, "v", 4, 0);
    test_join_many(store, "n", 3, 1);
    char young[TL_VISITOR_MAX];
    uint64_t dropped = 0;
    /* On a slow machine the first and the last of these joined in different buckets, and are
     * dropped in different passes. */
    for (int i = 0; test_end_reason(store, "n3") != TL_REASON_ABSENT; i++) {
        assert_true(test_redis_ms(store->redis) < joined_ms + GIVE_UP_MS);
        test_redis_pass_time(store->redis, 40);
        snprintf(young, sizeof(young), "young%d", i);
        test_seen(store, 2, 1);
        test_seen(store, 6, 1);
        test_join(store, young, 1);
        test_batch(store);
        dropped += pass(store);
    }
    /* Four whole buckets must have gone by since they joined. */
    assert_true(test_redis_ms(store->redis) >= joined_ms + 4 * BUCKET_MS);
    assert_int_equal(test_waiting_place(store, "v2"), 2);
    assert_int_equal(test_waiting_place(store, "n2"), LANE1 + 6);
    assert_int_equal(test_waiting_place(store, "v1"), -1);
    assert_int_equal(test_end_reason(store, "v1"), TL_REASON_ABSENT);
    assert_int_equal(test_end_reason(store, "v4"), TL_REASON_ABSENT);
    assert_int_equal(test_end_reason(store, "n3"), TL_REASON_ABSENT);
    assert_true(test_waiting_place(store, young) > 0); /* joined a moment ago, never seen since */
    assert_int_equal(test_state(store, "absent"), dropped);
    assert_int_equal(test_state(store, "expired"), dropped);
}

static void without_observation_no_visitor_is_dropped(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, SETTINGS);
    test_join_many(store, "v", 3, 0);
    test_seen(store, TL_SEEN_FAREWELL_SEQ, TL_SEEN_FAREWELL_COUNT); /* no worker is silent */
    test_batch(store);
    test_redis_pass_time(store->redis, 6 * BUCKET_MS);
    assert_int_equal(judge(store).observed, 0);
    assert_int_equal(pass(store), 0);
    pretend_observed(store);
    long long bucket = judge(store).bucket;
    test_redis_ask(store->redis, "DEL tl:{q}:seen:%lld", bucket - 1);
    assert_int_equal(pass(store), 0); /* one bucket without is enough */
    assert_int_equal(test_state(store, "waiting"), 3);
}

static void while_a_worker_is_silent_no_visitor_is_dropped(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, SETTINGS);
    test_join_many(store, "v", 3, 0);
    test_seen(store, 0, 0);
    test_batch(store);
    pretend_observed(store); /* the worker has reported a moment ago */
    test_redis_pass_time(store->redis, 3 * BUCKET_MS);
    pretend_buckets(store);
    assert_int_equal(judge(store).observed, 0);
    assert_int_equal(pass(store), 0);
    test_seen(store, TL_SEEN_FAREWELL_SEQ, TL_SEEN_FAREWELL_COUNT);
    test_batch(store);
    assert_int_equal(judge(store).observed, 1);
    assert_int_equal(pass(store), 3);
}

static void a_worker_that_never_returns_holds_for_one_waiting_ttl_more(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, SETTINGS);
    test_join_many(store, "v", 1, 0); /* its first batch counts as a report */
    long long reported_ms = test_redis_ms(store->redis);
    long long silent_for_ms;
    do {
        test_redis_pass_time(store->redis, POLL_MS);
        pretend_buckets(store);
        silent_for_ms = test_redis_ms(store->redis) - reported_ms;
        assert_true(silent_for_ms < GIVE_UP_MS);
    } while (silent_for_ms < 2 * BUCKET_MS + 50 || judge(store).observed == 0);
    assert_true(silent_for_ms >= 2 * 4 * BUCKET_MS);
}

/* Its visitors, who could not be seen meanwhile, have the same time to ask again. */
static void a_worker_that_returns_holds_as_long(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, SETTINGS);
    test_join_many(store, "v", 1, 0);
    long long reported_ms = test_redis_ms(store->redis);
    long long since_ms;
    test_redis_pass_time(store->redis, 3 * BUCKET_MS);
    do {
        test_redis_pass_time(store->redis, POLL_MS);
        test_seen(store, 0, 0);
        test_batch(store);
        pretend_buckets(store);
        since_ms = test_redis_ms(store->redis) - reported_ms;
        assert_true(since_ms < GIVE_UP_MS);
    } while (judge(store).observed == 0);
    assert_true(since_ms >= 2 * 4 * BUCKET_MS);
}

static void the_line_after_a_pass_is_what_events_say(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, SETTINGS);
    test_join_many(store, "v", 5, 0);
    pretend_observed(store);
    test_redis_ask(store->redis, "SETBIT tl:{q}:seen:%lld 4 1", judge(store).bucket);
    assert_int_equal(pass(store), 4);
    struct test_entry last;
    test_entry_read(store, &last);
    assert_int_equal(last.entry.n_events, 1);
    test_runs_are(test_event(&last, TL_EVENT_REMOVED, TL_REASON_ABSENT), "1+3 5+1");
    test_entry_free(&last);
    assert_int_equal(pass(store), 0);
    assert_int_equal(test_waiting_place(store, "v4"), 4);
}

/* Visitors on both sides of a border between two chunks, and two from before the seqs jumped. */
static void presence_is_kept_in_chunks(void **state)
{
    struct test_store *store = *state;
    const uint64_t border = (UINT64_C(1) << 44) + TL_PRESENCE_CHUNK;
    test_store_queue(store, SETTINGS);
    test_join_many(store, "old", 2, 0);
    test_redis_ask(store->redis, "HSET %s seq %" PRIu64, store->keys.names[TL_KEY_STATE],
                   border - 21);
    test_join_many(store, "v", 40, 0); /* the 21st has the first seq behind the border */
    pretend_observed(store);
    test_seen(store, 2, 1);
    test_seen(store, border - 18, 30);
    test_batch(store);
    assert_int_equal(pass(store), 11);
    for (int i = 1; i <= 40; i++) {
        char visitor[TL_VISITOR_MAX];
        snprintf(visitor, sizeof(visitor), "v%d", i);
        assert_int_equal(test_waiting_place(store, visitor) > 0, i >= 3 && i <= 32);
    }
    assert_int_equal(test_waiting_place(store, "old1"), -1);
    assert_int_equal(test_waiting_place(store, "old2"), 2);
    struct tl_reply *keys = test_redis_call(store->redis, "KEYS *:seen:*:*");
    assert_in_range(tl_reply_count(keys), 2, 4); /* two a bucket, and a bucket may have ended */
    for (size_t i = 0; i < tl_reply_count(keys); i++) {
        const char *key = tl_reply_string(tl_reply_at(keys, i), NULL);
        assert_in_range(test_redis_ask(store->redis, "STRLEN %s", key), 1, TL_PRESENCE_CHUNK / 8);
        assert_in_range(test_redis_ask(store->redis, "PTTL %s", key), 1, 8 * BUCKET_MS);
    }
    tl_reply_free(keys);
}

/* A worker that says more than it can know does not make the function work for minutes. */
static void no_more_are_marked_than_ever_joined(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, SETTINGS);
    test_redis_ask(store->redis, "HSET %s seq %llu", store->keys.names[TL_KEY_STATE], 1ULL << 44);
    test_join_many(store, "v", 100, 0);
    test_seen(store, 1, TL_PLACE_SEQ_MAX);
    test_seen(store, 1ULL << 43, TL_PLACE_SEQ_MAX);
    test_batch(store);
    struct tl_reply *keys = test_redis_call(store->redis, "KEYS *:seen:*");
    for (size_t i = 0; i < tl_reply_count(keys); i++)
        assert_in_range(
            test_redis_ask(store->redis, "STRLEN %s", tl_reply_string(tl_reply_at(keys, i), NULL)),
            1, 13);
    tl_reply_free(keys);
}

static void more_than_one_portion_goes_in_one_pass(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, SETTINGS " lanes=only");
    test_join_many(store, "v", 1200, 0);
    test_redis_ask(store->redis, "DEL tl:{q}:reports"); /* no worker is silent if this is slow */
    pretend_observed(store);
    uint64_t dropped = 0;
    for (int64_t start = tl_clock_ms(); dropped < 1200;) { /* a portion may miss its bucket */
        assert_true(tl_clock_ms() - start < GIVE_UP_MS);
        dropped += pass(store);
    }
    assert_int_equal(dropped, 1200);
    assert_int_equal(test_state(store, "absent"), 1200);
}

static void seen_since_the_judgement_stays(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, SETTINGS);
    test_join_many(store, "v", 3, 0);
    pretend_observed(store);
    test_seen(store, 2, 1);
    test_batch(store);
    assert_int_equal(drop(store, "1 2"), 1);
    assert_int_equal(test_waiting_place(store, "v2"), 2);
    assert_int_equal(test_end_reason(store, "v1"), TL_REASON_ABSENT);
    test_redis_ask(store->redis, "SETBIT tl:{q}:seen:%lld 3 1",
                   judge(store).bucket - 3); /* seen long ago, but within waiting_ttl */
    assert_int_equal(drop(store, "3"), 0);
}

static void a_judgement_of_an_earlier_bucket_drops_no_visitor(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, SETTINGS);
    test_join_many(store, "v", 1, 0);
    pretend_observed(store);
    char arguments[64];
    snprintf(arguments, sizeof(arguments), "%lld 1000 1", judge(store).bucket - 1);
    struct tl_reply *reply =
        test_function(store->redis, TL_FN_ABSENT, &store->keys, arguments, NULL);
    assert_int_equal(tl_reply_integer(tl_reply_at(reply, 0)), 0);
    tl_reply_free(reply);
    assert_int_equal(test_waiting_place(store, "v1"), 1);
}

static void who_moved_on_is_left_alone(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, SETTINGS);
    test_join_many(store, "v", 3, 0);
    pretend_observed(store);
    assert_int_equal(test_admit(store, 1), 1);
    test_command(store, TL_COMMAND_LEAVE, "v2", 2);
    test_join(store, "v2", 0);
    test_batch(store);
    assert_int_equal(drop(store, "1 2 99"), 0);
    assert_true(test_deadline(store, "v1") > 0);
    assert_int_equal(test_waiting_place(store, "v2"), 4);
    assert_int_equal(test_state(store, "absent"), 0);
}

static void marks_tell_who_joined_before_the_oldest_bucket(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, SETTINGS);
    assert_int_equal(judge(store).before, 0);
    test_join_many(store, "v", 3, 0);
    struct judgement first = judge(store);
    assert_int_equal(first.before, 0); /* all joined within the time */
    assert_int_equal(first.length_ms, BUCKET_MS);
    test_redis_pass_time(store->redis, first.again_ms);
    long long second_ms = test_redis_ms(store->redis);
    test_join_many(store, "w", 2, 0);
    struct judgement now;
    long long seen_between = -1;
    do {
        test_redis_pass_time(store->redis, POLL_MS);
        now = judge(store);
        assert_true(test_redis_ms(store->redis) < second_ms + GIVE_UP_MS);
        /* 0: none are old; 3: the v are; 5: all are */
        assert_true(now.before == 0 || now.before == 3 || now.before == 5);
        if (now.before == 3)
            seen_between = now.bucket;
        if (now.before == 5)
            assert_true(now.bucket - 4 > second_ms / BUCKET_MS);
    } while (now.before != 5);
    assert_true(seen_between > 0);
}

static void only_the_last_six_marks_are_kept(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, SETTINGS);
    for (unsigned i = 0; i < 9; i++) {
        char visitor[8];
        snprintf(visitor, sizeof(visitor), "v%u", i);
        test_join(store, visitor, 0);
        test_batch(store);
        test_redis_pass_time(store->redis, judge(store).again_ms);
    }
    struct tl_reply *marks = test_redis_call(store->redis, "HGET tl:{q}:state marks");
    const char *text = tl_reply_string(marks, NULL);
    unsigned commas = 0;
    for (const char *c = text; *c != '\0'; c++)
        commas += *c == ',' ? 1 : 0;
    assert_int_equal(commas, 5);
    const char *colon = strchr(text, ':');
    assert_non_null(colon);
    /* the last seq before the newest bucket's first join */
    assert_int_equal(strtoll(colon + 1, NULL, 10), 8);
    tl_reply_free(marks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(seen_visitors_stay_and_absent_ones_are_dropped, test_store_clean),
        cmocka_unit_test_setup(without_observation_no_visitor_is_dropped, test_store_clean),
        cmocka_unit_test_setup(while_a_worker_is_silent_no_visitor_is_dropped, test_store_clean),
        cmocka_unit_test_setup(a_worker_that_never_returns_holds_for_one_waiting_ttl_more,
                               test_store_clean),
        cmocka_unit_test_setup(a_worker_that_returns_holds_as_long, test_store_clean),
        cmocka_unit_test_setup(the_line_after_a_pass_is_what_events_say, test_store_clean),
        cmocka_unit_test_setup(presence_is_kept_in_chunks, test_store_clean),
        cmocka_unit_test_setup(no_more_are_marked_than_ever_joined, test_store_clean),
        cmocka_unit_test_setup(more_than_one_portion_goes_in_one_pass, test_store_clean),
        cmocka_unit_test_setup(seen_since_the_judgement_stays, test_store_clean),
        cmocka_unit_test_setup(a_judgement_of_an_earlier_bucket_drops_no_visitor, test_store_clean),
        cmocka_unit_test_setup(who_moved_on_is_left_alone, test_store_clean),
        cmocka_unit_test_setup(marks_tell_who_joined_before_the_oldest_bucket, test_store_clean),
        cmocka_unit_test_setup(only_the_last_six_marks_are_kept, test_store_clean),
    };
    return test_side_by_side(tests, test_store_open, test_store_close);
}
