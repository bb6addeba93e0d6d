/* SPDX-License-Identifier: Apache-2.0 */
/* The apply function: completing and renewing sessions, and who was seen. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/reply.h"
#include "ingest.h"

/* Queue "q" with one active visitor, "anna" at place 1, admitted at *admitted_ms. */
static void anna_is_active(struct test_store *store, const char *settings, long long *admitted_ms)
{
    test_store_queue(store, settings);
    test_join(store, "anna", 0);
    test_batch(store);
    assert_int_equal(test_admit(store, 1), 1);
    char text[256];
    snprintf(text, sizeof(text), "HGET %s anna", store->keys.names[TL_KEY_SESSIONS]);
    struct tl_reply *session = test_redis_call(store->redis, text);
    const char *value = tl_reply_string(session, NULL);
    char *end;
    assert_memory_equal(value, "1:", 2);
    *admitted_ms = strtoll(value + 2, &end, 10);
    assert_string_equal(end, ":0");
    tl_reply_free(session);
}

static void completing_frees_the_counter_once(void **state)
{
    struct test_store *store = *state;
    long long admitted_ms;
    anna_is_active(store, "lanes=only", &admitted_ms);
    test_command(store, TL_COMMAND_COMPLETE, "anna", 1);
    test_command(store, TL_COMMAND_COMPLETE, "anna", 1);
    test_batch(store);
    struct test_entry last;
    test_entry_read(store, &last);
    test_runs_are(test_event(&last, TL_EVENT_FREED, TL_REASON_COMPLETED), "1+1");
    assert_int_equal(last.entry.active, 0);
    test_entry_free(&last);
    test_exceptions_are(store, "1:3:1");
    assert_int_equal(test_state(store, "completed"), 1);
    assert_int_equal(test_end_reason(store, "anna"), TL_REASON_COMPLETED);
    test_command(store, TL_COMMAND_COMPLETE, "anna", 1);
    test_batch(store);
    test_exceptions_are(store, "0:3:1");
    assert_int_equal(test_state(store, "completed"), 1);
    test_invariants(store->redis, &store->keys);
}

/* How many commands of Redis the functions have called since CONFIG RESETSTAT. INFO is left out: a
 * step looks the server up every 100 ms. */
static long long calls_of_functions(struct test_store *store)
{
    static const char *const others[] = {"info:", "fcall:", "config|", "xreadgroup:"};
    struct tl_reply *info = test_redis_call(store->redis, "INFO commandstats");
    const char *at = tl_reply_string(info, NULL);
    long long n = 0;
    while ((at = strstr(at, "cmdstat_")) != NULL) {
        at += strlen("cmdstat_");
        bool is_other = false;
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
            is_other = is_other || strncmp(at, others[i], strlen(others[i])) == 0;
        const char *calls = strstr(at, "calls=");
        assert_non_null(calls);
        n += is_other ? 0 : strtoll(calls + strlen("calls="), NULL, 10);
    }
    tl_reply_free(info);
    return n;
}

/* Most of what a busy line does: a worker's batch names its generation, and holds one command. */
static void a_completion_alone_takes_twelve_calls(void **state)
{
    struct test_store *store = *state;
    struct tl_apply_counts counts = {0};
    long long admitted_ms;
    anna_is_active(store, "lanes=only", &admitted_ms);
    store->writer.generation = (uint64_t)test_state(store, "generation");
    test_command(store, TL_COMMAND_COMPLETE, "anna", 1);
    test_send(store, "w", ++store->number, NULL);
    store->writer.generation = 0;
    assert_int_equal(test_deliver(store), 1);
    tl_reply_free(test_redis_call(store->redis, "CONFIG RESETSTAT"));
    assert_true(test_apply_pending(store, 1, &counts, NULL));
    assert_int_equal(calls_of_functions(store), 12);
    assert_int_equal(test_state(store, "completed"), 1);
    test_invariants(store->redis, &store->keys);
}

static void who_waits_can_neither_complete_nor_renew(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only");
    test_join(store, "anna", 0);
    test_batch(store);
    test_command(store, TL_COMMAND_COMPLETE, "anna", 1);
    test_command(store, TL_COMMAND_RENEW, "anna", 1);
    test_batch(store);
    test_exceptions_are(store, "0:1:1 1:1:1");
    assert_int_equal(test_waiting_place(store, "anna"), 1);
    test_invariants(store->redis, &store->keys);
}

static void a_place_of_before_ends_nothing(void **state)
{
    struct test_store *store = *state;
    long long admitted_ms;
    anna_is_active(store, "lanes=only", &admitted_ms);
    test_command(store, TL_COMMAND_COMPLETE, "anna", 1);
    test_join(store, "anna", 0);
    test_batch(store);
    assert_int_equal(test_waiting_place(store, "anna"), 2);
    test_command(store, TL_COMMAND_COMPLETE, "anna", 1);
    test_command(store, TL_COMMAND_LEAVE, "anna", 1);
    test_batch(store);
    test_exceptions_are(store, "0:3:1 1:3:1");
    assert_int_equal(test_admit(store, 1), 1);
    test_command(store, TL_COMMAND_COMPLETE, "anna", 1);
    test_command(store, TL_COMMAND_LEAVE, "anna", 1);
    test_command(store, TL_COMMAND_RENEW, "anna", 1);
    test_batch(store);
    test_exceptions_are(store, "0:3:1 1:3:1 2:3:1");
    assert_int_equal(test_state(store, "active"), 1);
    test_command(store, TL_COMMAND_COMPLETE, "anna", 2);
    test_batch(store);
    assert_int_equal(test_state(store, "completed"), 2);
    test_invariants(store->redis, &store->keys);
}

static void the_first_renewal_claims_the_session(void **state)
{
    struct test_store *store = *state;
    long long admitted_ms;
    anna_is_active(store, "claim_ttl=10s session_ttl=60s", &admitted_ms);
    assert_int_equal(test_deadline(store, "anna"), admitted_ms + 10000);
    test_command(store, TL_COMMAND_RENEW, "anna", 1);
    test_batch(store);
    assert_int_equal(test_deadline(store, "anna"), admitted_ms + 60000);
    struct test_entry last;
    test_entry_read(store, &last);
    const struct tl_event *renewed = test_event(&last, TL_EVENT_RENEWED, 0);
    test_runs_are(renewed, "1+1");
    assert_int_equal(renewed->deadline_ms, admitted_ms + 60000);
    test_entry_free(&last);
    test_exceptions_are(store, "");
    test_invariants(store->redis, &store->keys);
}

static void a_fixed_session_is_renewed_once_only(void **state)
{
    struct test_store *store = *state;
    long long admitted_ms;
    anna_is_active(store, "claim_ttl=10s session_ttl=60s", &admitted_ms);
    test_command(store, TL_COMMAND_RENEW, "anna", 1);
    test_command(store, TL_COMMAND_RENEW, "anna", 1);
    test_batch(store);
    test_exceptions_are(store, "");
    test_redis_pass_time(store->redis, 3);
    test_command(store, TL_COMMAND_RENEW, "anna", 1);
    test_batch(store);
    test_exceptions_are(store, "");
    struct test_entry last;
    test_entry_read(store, &last);
    assert_null(test_event(&last, TL_EVENT_RENEWED, 0));
    test_entry_free(&last);
    assert_int_equal(test_deadline(store, "anna"), admitted_ms + 60000);
}

static void a_sliding_session_moves_on(void **state)
{
    struct test_store *store = *state;
    long long admitted_ms;
    anna_is_active(store, "claim_ttl=10s session_ttl=60s session_sliding=true session_max=1h",
                   &admitted_ms);
    for (int i = 0; i < 3; i++) {
        test_redis_pass_time(store->redis, 3);
        long long before = test_redis_ms(store->redis);
        test_command(store, TL_COMMAND_RENEW, "anna", 1);
        test_batch(store);
        long long after = test_redis_ms(store->redis);
        assert_in_range(test_deadline(store, "anna"), before + 60000, after + 60000);
    }
    assert_true(test_deadline(store, "anna") > admitted_ms + 60000);
}

static void a_claim_extends_no_session(void **state)
{
    struct test_store *store = *state;
    long long admitted_ms;
    anna_is_active(store, "claim_ttl=10s session_ttl=60s session_sliding=true session_max=1h",
                   &admitted_ms);
    test_command(store, TL_COMMAND_CLAIM, "anna", 1);
    test_batch(store);
    test_exceptions_are(store, "");
    long long claimed = test_deadline(store, "anna");
    assert_true(claimed >= admitted_ms + 60000);
    test_redis_pass_time(store->redis, 3);
    test_command(store, TL_COMMAND_CLAIM, "anna", 1);
    test_command(store, TL_COMMAND_CLAIM, "nobody", 9);
    test_batch(store);
    test_exceptions_are(store, "1:3:9");
    assert_int_equal(test_deadline(store, "anna"), claimed);
    test_join(store, "bob", 0);
    test_batch(store);
    test_command(store, TL_COMMAND_CLAIM, "bob", 2);
    test_batch(store);
    test_exceptions_are(store, "0:1:2");
    test_invariants(store->redis, &store->keys);
}

static void the_time_to_claim_is_extended_once(void **state)
{
    struct test_store *store = *state;
    long long admitted_ms;
    anna_is_active(store, "claim_ttl=10s session_ttl=60s", &admitted_ms);
    test_command(store, TL_COMMAND_EXTEND, "anna", 1);
    test_batch(store);
    test_exceptions_are(store, "");
    struct test_entry last;
    test_entry_read(store, &last);
    const struct tl_event *extended = test_event(&last, TL_EVENT_EXTENDED, 0);
    test_runs_are(extended, "1+1");
    assert_int_equal(extended->deadline_ms, admitted_ms + 20000);
    assert_null(test_event(&last, TL_EVENT_RENEWED, 0));
    test_entry_free(&last);
    assert_int_equal(test_deadline(store, "anna"), admitted_ms + 20000);
    test_redis_pass_time(store->redis, 3);
    test_command(store, TL_COMMAND_EXTEND, "anna", 1);
    test_command(store, TL_COMMAND_EXTEND, "nobody", 9);
    test_batch(store);
    test_exceptions_are(store, "1:3:9");
    test_entry_read(store, &last);
    assert_null(test_event(&last, TL_EVENT_EXTENDED, 0));
    test_entry_free(&last);
    assert_int_equal(test_deadline(store, "anna"), admitted_ms + 20000);
    test_command(store, TL_COMMAND_CLAIM, "anna", 1); /* it was not claimed */
    test_command(store, TL_COMMAND_EXTEND, "anna", 1);
    test_batch(store);
    assert_int_equal(test_deadline(store, "anna"), admitted_ms + 60000);
    test_join(store, "bob", 0);
    test_batch(store);
    test_command(store, TL_COMMAND_EXTEND, "bob", 2);
    test_batch(store);
    test_exceptions_are(store, "0:1:2");
    test_invariants(store->redis, &store->keys);
}

static void no_one_may_claim_for_longer_than_a_session_lasts(void **state)
{
    struct test_store *store = *state;
    long long admitted_ms;
    anna_is_active(store, "claim_ttl=50s session_ttl=60s", &admitted_ms);
    test_command(store, TL_COMMAND_EXTEND, "anna", 1);
    test_batch(store);
    assert_int_equal(test_deadline(store, "anna"), admitted_ms + 60000);
    test_invariants(store->redis, &store->keys);
}

static void a_sliding_session_ends_at_session_max(void **state)
{
    struct test_store *store = *state;
    long long admitted_ms;
    anna_is_active(store, "claim_ttl=10s session_ttl=60s session_sliding=true session_max=60s",
                   &admitted_ms);
    for (int i = 0; i < 2; i++) {
        test_redis_pass_time(store->redis, 3);
        test_command(store, TL_COMMAND_RENEW, "anna", 1);
        test_batch(store);
        assert_int_equal(test_deadline(store, "anna"), admitted_ms + 60000);
    }
}

static void renewing_what_has_ended_is_gone(void **state)
{
    struct test_store *store = *state;
    long long admitted_ms;
    anna_is_active(store, "lanes=only", &admitted_ms);
    test_command(store, TL_COMMAND_COMPLETE, "anna", 1);
    test_command(store, TL_COMMAND_RENEW, "anna", 1);
    test_command(store, TL_COMMAND_RENEW, "nobody", 9);
    test_batch(store);
    test_exceptions_are(store, "1:3:1 2:3:9");
    assert_int_equal(test_deadline(store, "anna"), -1);
    test_invariants(store->redis, &store->keys);
}

/* ---- seen ---- */

/* Reads the only presence bitmap there is as text, one character a seq, up to `last`, the last seq
 * given out: nothing may be set beyond it. */
static void read_seen(struct test_store *store, size_t last, char *bits)
{
    struct tl_reply *keys = test_redis_call(store->redis, "KEYS *:seen:*");
    assert_int_equal(tl_reply_count(keys), 1);
    char words[256];
    snprintf(words, sizeof(words), "GET %s", tl_reply_string(tl_reply_at(keys, 0), NULL));
    struct tl_reply *bitmap = test_redis_call(store->redis, words);
    size_t length;
    const char *bytes = tl_reply_string(bitmap, &length);
    for (size_t seq = 0; seq < length * 8 || seq <= last; seq++) {
        bool set = seq < length * 8 && ((unsigned char)bytes[seq / 8] >> (7 - seq % 8) & 1) != 0;
        if (seq <= last)
            bits[seq] = set ? '1' : '0';
        else
            assert_false(set);
    }
    bits[last + 1] = '\0';
    tl_reply_free(bitmap);
    tl_reply_free(keys);
}

static void seen_bits_are_those_sent(void **state)
{
    static const struct {
        uint64_t first, count;
    } runs[] = {{1, 1},  {7, 1},   {8, 1}, {3, 2},    {6, 4},  {8, 8},  {7, 9},  {5, 30},
                {1, 40}, {16, 24}, {0, 3}, {33, 100}, {40, 1}, {12, 0}, {41, 5}, {90, 8}};
    struct test_store *store = *state;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        test_store_clean(state);
        test_store_queue(store, "lanes=only waiting_ttl=7d");
        test_join_many(store, "v", 40, 0);
        test_seen(store, runs[i].first, runs[i].count);
        test_batch(store);
        char bits[42], expected[42];
        read_seen(store, 40, bits);
        for (uint64_t seq = 0; seq <= 40; seq++)
            expected[seq] = seq >= runs[i].first && seq < runs[i].first + runs[i].count ? '1' : '0';
        expected[41] = '\0';
        assert_string_equal(bits, expected);
    }
}

static void seen_runs_add_up(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only waiting_ttl=7d");
    test_join_many(store, "v", 24, 0);
    test_seen(store, 9, 16); /* whole bytes, then single bits beside them */
    test_seen(store, 2, 1);
    test_seen(store, 7, 1);
    test_batch(store);
    test_seen(store, 4, 1);
    test_batch(store);
    char bits[26];
    read_seen(store, 24, bits);
    assert_string_equal(bits, "0010100101111111111111111");
}

/* A batch is acknowledged before presence is written: that must not fail. */
static void a_damaged_bitmap_is_made_again(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only waiting_ttl=7d");
    long long bucket = test_redis_ms(store->redis) / (7LL * 24 * 3600 * 1000 / 4);
    test_redis_ask(store->redis, "RPUSH tl:{q}:seen:%lld damaged", bucket);
    test_join(store, "anna", 0);
    test_join(store, "bert", 0);
    test_seen(store, 1, 2);
    test_batch(store);
    char bits[4];
    read_seen(store, 2, bits);
    assert_string_equal(bits, "011");
    assert_int_equal(test_waiting_place(store, "bert"), 2);
    test_invariants(store->redis, &store->keys);
}

/* The other keys that a batch changes are checked before the first write: it stays pending, and
 * nothing changes. */
static void a_damaged_key_leaves_the_batch_pending(void **state)
{
    static const char *const names[] = {"reports", "lost"};
    struct test_store *store = *state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct tl_apply_counts counts = {0};
        struct tl_error err = {0};
        test_store_clean(state);
        test_store_queue(store, "lanes=only");
        test_redis_ask(store->redis, "RPUSH tl:{q}:%s damaged", names[i]);
        test_join(store, "anna", 0);
        test_seen(store, 1, 1);
        const struct tl_command lost = {.kind = TL_COMMAND_LOST, .numbers = {1, 1, 0, 1}};
        test_add(store, &lost);
        test_send(store, "w", 1, NULL);
        assert_int_equal(test_deliver(store), 1);
        assert_false(test_apply_pending(store, 1, &counts, &err));
        assert_int_equal(test_waiting_place(store, "anna"), -1);
        test_redis_ask(store->redis, "DEL tl:{q}:%s", names[i]);
        assert_true(test_apply_pending(store, 1, &counts, &err));
        assert_int_equal(counts.applied, 1);
        assert_int_equal(test_waiting_place(store, "anna"), 1);
        test_invariants(store->redis, &store->keys);
    }
}

static void seen_without_visitors_is_an_observation_too(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only waiting_ttl=7d");
    test_seen(store, 1, 0);
    test_batch(store);
    char bits[2];
    read_seen(store, 0, bits);
    assert_string_equal(bits, "0");
    struct tl_reply *keys = test_redis_call(store->redis, "KEYS *:seen:*");
    const char *key = tl_reply_string(tl_reply_at(keys, 0), NULL);
    long long bucket_ms = 7LL * 24 * 3600 * 1000 / 4;
    assert_in_range(test_redis_ask(store->redis, "PTTL %s", key), 7 * bucket_ms, 8 * bucket_ms);
    char expected[256];
    snprintf(expected, sizeof(expected), "tl:{q}:seen:%lld",
             test_redis_ms(store->redis) / bucket_ms);
    assert_string_equal(key, expected);
    tl_reply_free(keys);
}

/* A worker that has not heard yet that the queue is another one: its visitors' places mean nothing,
 * although the numbers may be held. Joins do not depend on it. */
static void a_place_of_another_generation_is_held_by_nobody(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=1 waiting_ttl=1s");
    test_join_many(store, "v", 2, 0);
    assert_int_equal(test_admit(store, 1), 1);
    uint64_t generation = (uint64_t)test_state(store, "generation");
    long long deadline = test_deadline(store, "v1");
    store->writer.generation = generation - 1;
    test_command(store, TL_COMMAND_RENEW, "v1", 1);
    test_command(store, TL_COMMAND_COMPLETE, "v1", 1);
    test_command(store, TL_COMMAND_LEAVE, "v2", 2);
    test_seen(store, 2, 1);
    test_join(store, "v3", 0);
    test_batch(store);
    test_exceptions_are(store, "0:3:1 1:3:1 2:3:2");
    assert_int_equal(test_deadline(store, "v1"), deadline);
    assert_int_equal(test_waiting_place(store, "v2"), 2);
    assert_int_equal(test_waiting_place(store, "v3"), 3);
    struct tl_reply *keys = test_redis_call(store->redis, "KEYS *:seen:*");
    assert_int_equal(tl_reply_count(keys), 0);
    tl_reply_free(keys);

    store->writer.generation = generation;
    test_command(store, TL_COMMAND_COMPLETE, "v1", 1);
    test_batch(store);
    store->writer.generation = 0; /* not known */
    test_command(store, TL_COMMAND_LEAVE, "v2", 2);
    test_batch(store);
    assert_int_equal(test_end_reason(store, "v1"), TL_REASON_COMPLETED);
    assert_int_equal(test_end_reason(store, "v2"), TL_REASON_LEFT);
    test_invariants(store->redis, &store->keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_place_of_another_generation_is_held_by_nobody, test_store_clean),
        cmocka_unit_test_setup(completing_frees_the_counter_once, test_store_clean),
        cmocka_unit_test_setup(a_completion_alone_takes_twelve_calls, test_store_clean),
        cmocka_unit_test_setup(who_waits_can_neither_complete_nor_renew, test_store_clean),
        cmocka_unit_test_setup(a_place_of_before_ends_nothing, test_store_clean),
        cmocka_unit_test_setup(the_first_renewal_claims_the_session, test_store_clean),
        cmocka_unit_test_setup(a_fixed_session_is_renewed_once_only, test_store_clean),
        cmocka_unit_test_setup(a_sliding_session_moves_on, test_store_clean),
        cmocka_unit_test_setup(a_claim_extends_no_session, test_store_clean),
        cmocka_unit_test_setup(the_time_to_claim_is_extended_once, test_store_clean),
        cmocka_unit_test_setup(no_one_may_claim_for_longer_than_a_session_lasts, test_store_clean),
        cmocka_unit_test_setup(a_sliding_session_ends_at_session_max, test_store_clean),
        cmocka_unit_test_setup(renewing_what_has_ended_is_gone, test_store_clean),
        cmocka_unit_test_setup(seen_bits_are_those_sent, test_store_clean),
        cmocka_unit_test_setup(seen_runs_add_up, test_store_clean),
        cmocka_unit_test_setup(a_damaged_bitmap_is_made_again, test_store_clean),
        cmocka_unit_test_setup(a_damaged_key_leaves_the_batch_pending, test_store_clean),
        cmocka_unit_test_setup(seen_without_visitors_is_an_observation_too, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
