/* SPDX-License-Identifier: Apache-2.0 */
/* The admit function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/units.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "ingest.h"

#define LANE1 (UINT64_C(1) << TL_PLACE_SEQ_BITS)

struct admitted {
    long long n, room, waiting, now_ms, opens_in_ms;
};

static struct admitted admit(struct test_store *store, const char *most)
{
    char arguments[64];
    snprintf(arguments, sizeof(arguments), "%s 1000", most);
    struct tl_reply *reply =
        test_function(store->redis, TL_FN_ADMIT, &store->keys, arguments, NULL);
    assert_int_equal(tl_reply_count(reply), TL_ADMIT_STATE + 1);
    assert_int_equal(tl_reply_number(reply, TL_ADMIT_GENERATION), test_state(store, "generation"));
    assert_int_equal(tl_reply_number(reply, TL_ADMIT_ACTIVE), test_state(store, "active"));
    assert_true(*tl_reply_text(reply, TL_ADMIT_STATE) >= 'a');
    struct admitted result = {.n = tl_reply_signed(reply, TL_ADMIT_ADMITTED),
                              .room = tl_reply_signed(reply, TL_ADMIT_LEFT),
                              .waiting = tl_reply_signed(reply, TL_ADMIT_WAITING),
                              .now_ms = tl_reply_signed(reply, TL_ADMIT_NOW),
                              .opens_in_ms = tl_reply_signed(reply, TL_ADMIT_AGAIN)};
    tl_reply_free(reply);
    test_invariants(store->redis, &store->keys);
    return result;
}

static void configure(struct test_store *store, const char *name, const char *value)
{
    struct tl_error err = {0};
    if (!test_queue_set(store->redis, &store->keys, name, value, &err))
        fail_msg("%s", err.text);
}

static void admits_up_to_capacity(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=3");
    test_join_many(store, "v", 5, 0);
    struct admitted first = admit(store, "10");
    assert_int_equal(first.n, 3);
    assert_int_equal(first.room, 0);
    assert_int_equal(first.waiting, 2);
    assert_int_equal(first.opens_in_ms, 0);
    struct admitted second = admit(store, "10");
    assert_int_equal(second.n, 0);
    assert_int_equal(second.waiting, 2);
    assert_true(test_deadline(store, "v3") > 0);
    assert_int_equal(test_waiting_place(store, "v4"), 4);
    assert_int_equal(test_state(store, "admitted"), 3);
    assert_int_equal(test_state(store, "admit_capacity"), 3);
    test_command(store, TL_COMMAND_COMPLETE, "v2", 2);
    test_batch(store);
    assert_int_equal(admit(store, "10").n, 1);
    assert_true(test_deadline(store, "v4") > 0);
}

/* The set is gone, the state still counts its visitors. */
static void a_lost_line_is_counted_again(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=2");
    test_join_many(store, "v", 5, 0);
    assert_int_equal(admit(store, "10").n, 2);
    test_redis_ask(store->redis, "DEL %s", store->keys.names[TL_KEY_WAITING]);
    struct admitted counted = admit(store, "10"); /* checks the sizes and the sum of all outcomes */
    assert_int_equal(counted.n, 0);
    assert_true(counted.opens_in_ms > 0); /* call again */
    assert_int_equal(test_state(store, "waiting"), 0);
    assert_int_equal(test_state(store, "expired"), 3);
    long long event = test_state(store, "event");
    (void)admit(store, "10");
    assert_int_equal(test_state(store, "event"), event);
    test_redis_ask(store->redis, "ZADD %s 9 by-hand", store->keys.names[TL_KEY_WAITING]);
    (void)admit(store, "10");
    assert_int_equal(test_state(store, "waiting"), 1);
    assert_int_equal(test_state(store, "joined"), 6);
}

static void an_empty_line_admits_no_visitor(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=3");
    struct admitted result = admit(store, "10");
    assert_int_equal(result.n, 0);
    assert_int_equal(result.room, 3);
    assert_int_equal(test_state(store, "event"), 0);
    long long now_ms = test_redis_ms(store->redis);
    assert_in_range(result.now_ms, now_ms - 5000, now_ms);
}

/* The session that an admission stored. */
static void assert_session(struct test_store *store, const char *visitor, uint64_t place,
                           long long admitted_ms)
{
    char expected[64], words[256];
    snprintf(expected, sizeof(expected), "%llu:%lld:0", (unsigned long long)place, admitted_ms);
    snprintf(words, sizeof(words), "HGET %s %s", store->keys.names[TL_KEY_SESSIONS], visitor);
    struct tl_reply *session = test_redis_call(store->redis, words);
    assert_string_equal(tl_reply_string(session, NULL), expected);
    tl_reply_free(session);
}

static void earlier_lanes_go_first(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=vip,normal capacity=4");
    test_join(store, "n1", 1);
    test_join(store, "n2", 1);
    test_join(store, "vip1", 0);
    test_join(store, "n3", 1);
    test_join(store, "vip2", 0);
    test_batch(store);
    assert_int_equal(admit(store, "3").n, 3);
    struct test_entry last;
    test_entry_read(store, &last);
    char runs[64];
    snprintf(runs, sizeof(runs), "3+1 5+1 %llu+1", (unsigned long long)LANE1 + 1);
    test_runs_are(test_event(&last, TL_EVENT_ADMITTED, 0), runs);
    test_entry_free(&last);
    assert_int_equal(test_waiting_place(store, "n2"), LANE1 + 2);
    struct admitted next = admit(store, "3");
    assert_int_equal(next.n, 1);
    assert_session(store, "n2", LANE1 + 2, next.now_ms);
    assert_true(test_deadline(store, "n2") > 0);
}

static void a_step_is_bounded(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=100000");
    test_join_many(store, "v", 4000, 0);
    assert_int_equal(admit(store, "7").n, 7);
    struct admitted many = admit(store, "2500"); /* in more than one portion */
    assert_int_equal(many.n, 2500);
    assert_int_equal(many.room, 100000 - 2507);
    assert_int_equal(many.waiting, 4000 - 2507);
    struct test_entry last;
    test_entry_read(store, &last);
    const struct tl_event *admitted = test_event(&last, TL_EVENT_ADMITTED, 0);
    test_runs_are(admitted, "8+2500");
    for (unsigned i = 8; i <= 2507; i++) {
        char visitor[8];
        snprintf(visitor, sizeof(visitor), "v%u", i);
        assert_session(store, visitor, i, many.now_ms);
        assert_int_equal(test_deadline(store, visitor), admitted->deadline_ms);
    }
    test_entry_free(&last);
    assert_int_equal(admit(store, "10000").n, 4000 - 2507);
}

/* Visitors of this lane, by the seqs in gone[], leave. */
static void leave(struct test_store *store, uint64_t lane, const unsigned *gone, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char visitor[8];
        snprintf(visitor, sizeof(visitor), "v%u", gone[i]);
        test_command(store, TL_COMMAND_LEAVE, visitor, lane + gone[i]);
    }
    test_batch(store);
}

/* Visitors v1 to vN of this lane are active with their own places, except those who left. */
static void assert_sessions(struct test_store *store, uint64_t lane, unsigned n,
                            const unsigned *gone, size_t n_gone, long long admitted_ms)
{
    size_t past = 0;
    for (unsigned i = 1; i <= n; i++) {
        char visitor[8];
        snprintf(visitor, sizeof(visitor), "v%u", i);
        bool left = past < n_gone && gone[past] == i;
        past += left ? 1 : 0;
        assert_int_equal(test_deadline(store, visitor) > 0, !left);
        if (!left)
            assert_session(store, visitor, lane + i, admitted_ms);
    }
}

/* The function handles a portion without gaps differently from one with gaps. */
static void visitors_keep_their_places_whatever_gaps_the_line_has(void **state)
{
    struct test_store *store = *state;
    static const unsigned gone[] = {1, 100, 101, 599, 850, 1100};
    const size_t n_gone = sizeof(gone) / sizeof(gone[0]);
    for (uint64_t lane = 0; lane <= 1; lane++) {
        test_store_clean(state);
        test_store_queue(store, "lanes=vip,normal capacity=9999");
        test_join_many(store, "v", 1400, (unsigned)lane);
        leave(store, lane * LANE1, gone, n_gone);
        struct admitted result = admit(store, "1300");
        assert_int_equal(result.n, 1300);
        struct test_entry last;
        test_entry_read(store, &last);
        const unsigned long long base = lane * LANE1;
        char runs[256];
        snprintf(runs, sizeof(runs), "%llu+98 %llu+497 %llu+250 %llu+249 %llu+206", base + 2,
                 base + 102, base + 600, base + 851, base + 1101);
        test_runs_are(test_event(&last, TL_EVENT_ADMITTED, 0), runs);
        test_entry_free(&last);
        assert_sessions(store, lane * LANE1, 1306, gone, n_gone, result.now_ms);
        assert_int_equal(test_waiting_place(store, "v1307"), base + 1307);
        assert_int_equal(admit(store, "1300").n, 94);
    }
}

/* A portion holds the end of one lane and the beginning of the next. */
static void a_change_of_lane_is_a_gap(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=vip,normal capacity=9999");
    test_join_many(store, "a", 150, 0);
    test_join_many(store, "b", 300, 1);
    assert_int_equal(admit(store, "120").n, 120);
    struct admitted result = admit(store, "1000");
    assert_int_equal(result.n, 330);
    assert_session(store, "a150", 150, result.now_ms);
    assert_session(store, "b1", LANE1 + 151, result.now_ms);
    assert_session(store, "b300", LANE1 + 450, result.now_ms);
    struct test_entry last;
    test_entry_read(store, &last);
    char runs[64];
    snprintf(runs, sizeof(runs), "121+30 %llu+300", (unsigned long long)LANE1 + 151);
    test_runs_are(test_event(&last, TL_EVENT_ADMITTED, 0), runs);
    test_entry_free(&last);
}

static void the_event_is_what_was_done(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=9 claim_ttl=1500ms session_ttl=60s");
    test_join_many(store, "v", 3, 0);
    struct admitted result = admit(store, "2");
    struct test_entry last;
    test_entry_read(store, &last);
    assert_int_equal(last.entry.n_events, 1);
    assert_int_equal(last.entry.waiting, 1);
    assert_int_equal(last.entry.active, 2);
    const struct tl_event *admitted = test_event(&last, TL_EVENT_ADMITTED, 0);
    test_runs_are(admitted, "1+2");
    assert_int_equal(admitted->deadline_ms, result.now_ms + 1500);
    assert_int_equal(test_deadline(store, "v1"), admitted->deadline_ms);
    test_entry_free(&last);
    assert_session(store, "v2", 2, result.now_ms);
}

static void the_shorter_of_claim_and_session_counts(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=9 claim_ttl=2m session_ttl=30s");
    test_join_many(store, "v", 1, 0);
    struct admitted result = admit(store, "1");
    assert_int_equal(test_deadline(store, "v1"), result.now_ms + 30000);
}

static void lowering_capacity_evicts_no_visitor(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=4");
    test_join_many(store, "v", 9, 0);
    assert_int_equal(admit(store, "10").n, 4);
    configure(store, "capacity", "2");
    struct admitted result = admit(store, "10");
    assert_int_equal(result.n, 0);
    assert_int_equal(result.room, 0);
    assert_int_equal(test_state(store, "active"), 4);
    assert_int_equal(test_state(store, "admit_capacity"), 4); /* of the last admission */
    for (unsigned i = 1; i <= 3; i++) {
        char visitor[8];
        snprintf(visitor, sizeof(visitor), "v%u", i);
        test_command(store, TL_COMMAND_COMPLETE, visitor, i);
    }
    test_batch(store);
    assert_int_equal(admit(store, "10").n, 1);
    assert_int_equal(test_state(store, "active"), 2);
    assert_int_equal(test_state(store, "admit_capacity"), 2);
    configure(store, "capacity", "6");
    assert_int_equal(admit(store, "10").n, 4);
    assert_int_equal(test_state(store, "active"), 6);
}

static void a_paused_queue_admits_no_visitor(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=4 mode=paused");
    test_join_many(store, "v", 2, 0);
    struct admitted result = admit(store, "10");
    assert_int_equal(result.n, 0);
    assert_int_equal(result.waiting, 2);
    configure(store, "mode", "open");
    assert_int_equal(admit(store, "10").n, 2);
}

static void no_visitor_is_admitted_before_the_queue_opens(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=4");
    test_join_many(store, "v", 2, 0);
    long long opens_at = test_redis_ms(store->redis) + 3600000;
    char text[TL_UNITS_TEXT_MAX];
    tl_time_format(opens_at, text, sizeof(text));
    configure(store, "opens_at", text);
    struct admitted early = admit(store, "10");
    assert_int_equal(early.n, 0);
    assert_int_equal(early.opens_in_ms, opens_at - early.now_ms);
    tl_time_format(test_redis_ms(store->redis) + 1, text, sizeof(text));
    configure(store, "opens_at", text);
    test_redis_pass_time(store->redis, 2);
    struct admitted late = admit(store, "10");
    assert_int_equal(late.n, 2);
    assert_int_equal(late.opens_in_ms, 0);
}

static void an_unknown_policy_is_refused(void **state)
{
    struct test_store *store = *state;
    char error[320];
    test_store_queue(store, "lanes=only capacity=4");
    test_join_many(store, "v", 2, 0);
    test_redis_ask(store->redis, "HSET %s policy rate", store->keys.names[TL_KEY_CONFIG]);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_null(test_function(store->redis, TL_FN_ADMIT, &store->keys, "10 100", error));
    assert_non_null(strstr(error, "POLICY"));
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

static void without_a_queue_no_visitor_is_admitted(void **state)
{
    struct test_store *store = *state;
    char error[320];
    test_store_queue(store, "lanes=only capacity=4");
    test_join_many(store, "v", 2, 0);
    test_redis_ask(store->redis, "HDEL %s claim_ttl", store->keys.names[TL_KEY_CONFIG]);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_null(test_function(store->redis, TL_FN_ADMIT, &store->keys, "10 100", error));
    assert_non_null(strstr(error, "NOQUEUE"));
    assert_int_equal(test_redis_fingerprint(store->redis), before);
    test_redis_ask(store->redis, "DEL %s", store->keys.names[TL_KEY_STATE]);
    assert_null(test_function(store->redis, TL_FN_ADMIT, &store->keys, "10 100", error));
    assert_non_null(strstr(error, "NOQUEUE"));
}

/* Nothing undoes a function that fails half-way. */
static void a_key_of_the_wrong_type_fails_the_step_before_it_writes(void **state)
{
    struct test_store *store = *state;
    const enum tl_key keys[] = {TL_KEY_WAITING, TL_KEY_ACTIVE, TL_KEY_SESSIONS, TL_KEY_EVENTS};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char error[320];
        const char *name = store->keys.names[keys[i]];
        test_store_clean(state);
        test_store_queue(store, "lanes=only capacity=3");
        test_join_many(store, "v", 2, 0);
        test_redis_ask(store->redis, "DEL %s", name);
        test_redis_ask(store->redis, "SET %s x", name);
        uint64_t before = test_redis_fingerprint(store->redis);
        assert_null(test_function(store->redis, TL_FN_ADMIT, &store->keys, "10 1000", error));
        assert_non_null(strstr(error, "WRONGTYPE"));
        assert_int_equal(test_redis_fingerprint(store->redis), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(admits_up_to_capacity, test_store_clean),
        cmocka_unit_test_setup(a_lost_line_is_counted_again, test_store_clean),
        cmocka_unit_test_setup(an_empty_line_admits_no_visitor, test_store_clean),
        cmocka_unit_test_setup(earlier_lanes_go_first, test_store_clean),
        cmocka_unit_test_setup(a_step_is_bounded, test_store_clean),
        cmocka_unit_test_setup(visitors_keep_their_places_whatever_gaps_the_line_has,
                               test_store_clean),
        cmocka_unit_test_setup(a_change_of_lane_is_a_gap, test_store_clean),
        cmocka_unit_test_setup(the_event_is_what_was_done, test_store_clean),
        cmocka_unit_test_setup(the_shorter_of_claim_and_session_counts, test_store_clean),
        cmocka_unit_test_setup(lowering_capacity_evicts_no_visitor, test_store_clean),
        cmocka_unit_test_setup(a_paused_queue_admits_no_visitor, test_store_clean),
        cmocka_unit_test_setup(no_visitor_is_admitted_before_the_queue_opens, test_store_clean),
        cmocka_unit_test_setup(an_unknown_policy_is_refused, test_store_clean),
        cmocka_unit_test_setup(without_a_queue_no_visitor_is_admitted, test_store_clean),
        cmocka_unit_test_setup(a_key_of_the_wrong_type_fails_the_step_before_it_writes,
                               test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
