/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of a queue that are damaged: a function that cannot go on has changed nothing, the operator
 * is told what to do, and afterwards all goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/queue_settings.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/troubles.h"
#include "ingest.h"

static void wrong_is(struct test_store *store, const char *expected)
{
    char wrong[320];
    struct tl_error err = {0};
    assert_true(tl_queue_examine(store->redis, &store->keys, wrong, &err));
    if (expected[0] == '\0')
        assert_string_equal(wrong, "");
    else
        assert_non_null(strstr(wrong, expected));
}

/* Sends what the writer holds as a worker that is new to the queue. */
static void send_from_another_worker(struct test_store *store)
{
    char worker[32];
    snprintf(worker, sizeof(worker), "other-%d", (int)++store->number);
    test_send(store, worker, 1, NULL);
    assert_int_equal(test_deliver(store), 1);
}

/* Several commands of Redis take sets and sorted sets alike, so a set is not noticed by itself. */
static void a_set_instead_of_a_sorted_set_stops_a_batch_whole(void **state)
{
    struct test_store *store = *state;
    static const char *const names[] = {"waiting", "active", "ended", "reports"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct tl_apply_counts counts = {0};
        struct tl_error err = {0};
        char expected[80];
        test_store_clean(state);
        test_store_queue(store, "lanes=only capacity=1");
        test_join(store, "anna", 0);
        test_batch(store);
        test_redis_ask(store->redis, "SADD tl:{q}:aside x");
        test_redis_ask(store->redis, "DEL tl:{q}:kept");
        if (test_redis_ask(store->redis, "EXISTS tl:{q}:%s", names[i]) == 1)
            test_redis_ask(store->redis, "RENAME tl:{q}:%s tl:{q}:kept", names[i]);
        test_redis_ask(store->redis, "RENAME tl:{q}:aside tl:{q}:%s", names[i]);

        test_join(store, "bob", 0);
        test_command(store, TL_COMMAND_LEAVE, "nobody", 99); /* joins alone do not touch ended */
        send_from_another_worker(store);
        long long event = test_state(store, "event");
        assert_false(test_apply_pending(store, 1, &counts, &err));
        assert_int_equal(test_state(store, "event"), event);
        assert_int_equal(test_state(store, "seq"), 1);
        snprintf(expected, sizeof(expected), "the key tl:{q}:%s is a set instead of a zset",
                 names[i]);
        wrong_is(store, expected);

        test_redis_ask(store->redis, "DEL tl:{q}:%s", names[i]);
        if (test_redis_ask(store->redis, "EXISTS tl:{q}:kept") == 1)
            test_redis_ask(store->redis, "RENAME tl:{q}:kept tl:{q}:%s", names[i]);
        assert_true(test_apply_pending(store, 1, &counts, &err));
        assert_int_equal(counts.applied, 1); /* it was still pending */
        test_join(store, "zoe", 0);
        test_batch(store);
        assert_int_equal(test_waiting_place(store, "anna"), 1);
        assert_int_equal(test_waiting_place(store, "bob"), 2);
        assert_int_equal(test_waiting_place(store, "zoe"), 3);
        test_invariants(store->redis, &store->keys);
        wrong_is(store, "");
    }
}

static void the_operator_is_told_which_key_is_wrong(void **state)
{
    struct test_store *store = *state;
    static const char *const types[][2] = {
        {"serials", "hash"}, {"lost", "hash"},     {"changes", "stream"}, {"held", "zset"},
        {"drawn", "string"}, {"poison", "stream"}, {"promised", "hash"}};
    test_store_queue(store, "lanes=only capacity=1");
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        char expected[80];
        test_redis_ask(store->redis, "DEL tl:{q}:%s", types[i][0]);
        test_redis_ask(store->redis, "LPUSH tl:{q}:%s x", types[i][0]);
        snprintf(expected, sizeof(expected), "the key tl:{q}:%s is a list instead of a %s",
                 types[i][0], types[i][1]);
        wrong_is(store, expected);
        test_redis_ask(store->redis, "DEL tl:{q}:%s", types[i][0]);
        wrong_is(store, "");
    }
}

/* Mends the queue as a program does that could not serve it. */
static void mend(struct test_store *store, const char *expected)
{
    struct tl_queue_settings settings;
    struct tl_error err = {.kind = TL_ERR_STORE};
    struct tl_troubles *troubles = tl_troubles_new();
    tl_queue_settings_defaults(&settings);
    const struct tl_mend_offer offer = {
        .from_memory = true, .settings = &settings, .actor = &test_actor};
    assert_true(tl_queue_set_aside(troubles, store->redis, &store->keys, &offer, &err, 0));
    if (strstr(err.text, expected) == NULL)
        fail_msg("%s: not: %s", err.text, expected);
    tl_troubles_free(&troubles);
}

static void lose_the_state(struct test_store *store)
{
    test_redis_ask(store->redis, "DEL %s", store->keys.names[TL_KEY_STATE]);
    mend(store, "was written again");
    assert_int_equal(test_redis_ask(store->redis, "HSTRLEN tl:{q}:state restore"),
                     10); /* none:whole */
}

/* v1 has completed, v2 expired, v3 left, v4 is active; v5 and v6 wait. */
static void a_queue_with_totals(struct test_store *store)
{
    test_store_queue(store, "lanes=only capacity=3");
    test_join_many(store, "v", 6, 0);
    assert_int_equal(test_admit(store, 3), 3);
    test_command(store, TL_COMMAND_COMPLETE, "v1", 1);
    test_command(store, TL_COMMAND_LEAVE, "v3", 3);
    test_batch(store);
    test_redis_ask(store->redis, "ZADD tl:{q}:active XX 1 v2");
    tl_reply_free(test_function(store->redis, TL_FN_EXPIRE, &store->keys, "10 1000", NULL));
    assert_int_equal(test_admit(store, 1), 1);
    test_invariants(store->redis, &store->keys);
}

static void joins_and_is_admitted(struct test_store *store)
{
    struct tl_apply_counts counts = {0};
    struct tl_error err = {0};
    test_redis_ask(store->redis, "HSET tl:{q}:config capacity 9");
    test_join(store, "new", 0);
    send_from_another_worker(store);
    if (!test_apply_pending(store, (uint64_t)test_state(store, "fence"), &counts, &err))
        fail_msg("%s", err.text);
    assert_int_equal(counts.applied, 1);
    assert_int_equal(test_admit(store, 9), 3);
    test_invariants(store->redis, &store->keys);
}

/* From the line, the events and the other totals: places and totals are as they were. */
static void a_damaged_counter_is_written_again(void **state)
{
    struct test_store *store = *state;
    static const char *const numbers[] = {"event", "seq", "fence", "base_seq"};
    static const char *const others[] = {"generation", "waiting", "active",    "joined",
                                         "left",       "expired", "completed", "admitted",
                                         "unclaimed",  "absent"};
    static const char *const damages[] = {"HSET %s %s rubbish", "HSET %s %s nan", "HSET %s %s 4.5",
                                          "HSET %s %s -3", "HDEL %s %s"};
    const char *key = store->keys.names[TL_KEY_STATE];
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        for (size_t k = 0; k < sizeof(others) / sizeof(others[0]); k++) {
            test_store_clean(state);
            a_queue_with_totals(store);
            long long before = test_state(store, others[k]);
            test_redis_ask(store->redis, damages[i], key, others[k]);
            wrong_is(store, others[k]);
            mend(store, others[k]);
            wrong_is(store, "");
            /* Who left the site, or expired there, is in no other total. */
            if (strcmp(others[k], "admitted") == 0)
                assert_in_range(test_state(store, "admitted"), before - 2, before);
            else if (strcmp(others[k], "unclaimed") != 0)
                assert_int_equal(test_state(store, others[k]), before);
            joins_and_is_admitted(store);
        }
        for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
            test_store_clean(state);
            a_queue_with_totals(store);
            if (strcmp(numbers[k], "base_seq") == 0 && strncmp(damages[i], "HDEL", 4) == 0)
                continue; /* a queue of an older release has none */
            long long before = test_state(store, numbers[k]);
            test_redis_ask(store->redis, damages[i], key, numbers[k]);
            mend(store, numbers[k]);
            wrong_is(store, "");
            assert_true(test_state(store, numbers[k]) > before);
            joins_and_is_admitted(store);
        }
    }
}

/* Of several totals it is not known which had how many. Their sum is right. */
static void several_damaged_totals_add_up(void **state)
{
    struct test_store *store = *state;
    a_queue_with_totals(store);
    test_redis_ask(store->redis, "HSET tl:{q}:state completed x left x expired x admitted x");
    mend(store, "admitted, completed, expired, left");
    joins_and_is_admitted(store);
    test_redis_ask(store->redis, "HSET tl:{q}:state joined x completed x unclaimed x");
    mend(store, "completed, joined, unclaimed");
    test_invariants(store->redis, &store->keys);
}

/* Only the generation needs the events. */
static void a_foreign_event_does_not_keep_counters_damaged(void **state)
{
    struct test_store *store = *state;
    a_queue_with_totals(store);
    tl_reply_free(test_redis_call(store->redis, "XADD tl:{q}:events * hello world"));
    test_redis_ask(store->redis, "HSET tl:{q}:state seq x left x");
    mend(store, "left, seq");
    wrong_is(store, "");
    tl_reply_free(test_redis_call(store->redis, "XADD tl:{q}:events * hello world"));
    test_redis_ask(store->redis, "HDEL tl:{q}:state generation");
    mend(store, "restore the data from a backup");
}

/* A function takes an infinite time for a number, and Redis takes it for none. */
static void an_infinite_setting_is_written_again(void **state)
{
    struct test_store *store = *state;
    static const char *const damages[] = {"1e400", "inf", "nan", "-1"};
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        test_store_clean(state);
        a_queue_with_totals(store);
        test_redis_ask(store->redis, "HSET tl:{q}:config waiting_ttl %s", damages[i]);
        test_redis_ask(store->redis, "HSET tl:{q}:state admitted x");
        mend(store, "admitted; they were written again from the line; the settings were missing");
        wrong_is(store, "");
        joins_and_is_admitted(store);
    }
}

/* Without events nothing tells the generation that tickets name. */
static void without_events_the_operator_is_asked(void **state)
{
    struct test_store *store = *state;
    a_queue_with_totals(store);
    test_redis_ask(store->redis, "HDEL tl:{q}:state generation");
    test_redis_ask(store->redis, "DEL tl:{q}:events");
    uint64_t before = test_redis_fingerprint(store->redis);
    mend(store, "restore the data from a backup");
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

static void comes_back(struct test_store *store, const char *visitor, uint64_t generation)
{
    struct tl_apply_counts counts = {0};
    struct tl_error err = {0};
    const struct tl_command restore = {.kind = TL_COMMAND_RESTORE,
                                       .visitor = visitor,
                                       .visitor_length = strlen(visitor),
                                       .numbers = {9, generation}};
    assert_int_equal(tl_batch_add(&store->writer, &restore), 0);
    test_send(store, "w", ++store->number, NULL);
    assert_int_equal(test_deliver(store), 1);
    assert_true(test_apply_pending(store, (uint64_t)test_state(store, "fence"), &counts, &err));
    assert_int_equal(counts.applied, 1);
}

/* A ticket of an earlier generation may begin a recovery of a state that was written again. It ends
 * by itself, and it begins only shortly after. */
static void a_recovery_after_the_loss_of_the_state_ends(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "lanes=only capacity=5 recovery_window=1h");
    test_join(store, "anna", 0);
    test_batch(store);
    lose_the_state(store);
    uint64_t earlier = (uint64_t)test_state(store, "generation") - 1;
    comes_back(store, "zoe", earlier);
    assert_int_equal(test_waiting_place(store, "zoe"), 9);
    assert_int_equal(test_admit(store, 5), 0);
    test_redis_ask(store->redis, "HSET %s recover_until %lld", store->keys.names[TL_KEY_STATE],
                   test_redis_ms(store->redis)); /* the hour is over */
    assert_int_equal(test_admit(store, 5), 0);   /* the step that ends it */
    assert_int_equal(test_state(store, "recover_until"), 0);
    assert_int_equal(test_admit(store, 5), 2);

    lose_the_state(store);
    test_redis_ask(store->redis, "HSET %s recovery_window 1", store->keys.names[TL_KEY_CONFIG]);
    test_redis_pass_time(store->redis, 2);
    comes_back(store, "late", earlier);
    assert_int_equal(test_waiting_place(store, "late"), -1);
    assert_int_equal(test_state(store, "recover_until"), -1);
    test_join(store, "new", 0);
    test_send(store, "w", ++store->number, NULL);
    struct tl_apply_counts counts = {0};
    struct tl_error err = {0};
    assert_int_equal(test_deliver(store), 1);
    assert_true(test_apply_pending(store, (uint64_t)test_state(store, "fence"), &counts, &err));
    assert_int_equal(test_admit(store, 5), 1);
    test_invariants(store->redis, &store->keys);
}

/* ---- in a cluster ---- */

/* It may be at another node, when a master dies while its queue moves: nobody goes on without it.
 */
static void a_missing_state_rests_until_it_is_back(void **state)
{
    struct test_store *store = *state;
    a_queue_with_totals(store);
    const long long completed = test_state(store, "completed");
    test_redis_ask(store->redis, "RENAME tl:{q}:state tl:{q}:kept");
    uint64_t before = test_redis_fingerprint(store->redis);
    mend(store, "only a part of the queue is in this store, without state");
    wrong_is(store, "without state");
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    tl_queue_settings_defaults(&settings);
    assert_false(
        tl_queue_ensure(TEST_SITE(store->redis), "tl:", "q", &settings, &test_actor, NULL, &err));
    assert_non_null(strstr(err.text, "without state"));
    assert_int_equal(test_redis_fingerprint(store->redis), before);
    test_redis_ask(store->redis, "RENAME tl:{q}:kept tl:{q}:state");
    wrong_is(store, "");
    assert_int_equal(test_state(store, "completed"), completed);
    joins_and_is_admitted(store);
}

/* The operator says that it is lost: places and sessions stay, and totals start again. */
static void a_queue_goes_on_without_its_state_when_the_operator_says_so(void **state)
{
    struct test_store *store = *state;
    static const char *const sessions[] = {"tl:{q}:kept", "tl:{q}:sessions"};
    for (size_t i = 0; i < sizeof(sessions) / sizeof(sessions[0]); i++) {
        test_store_clean(state);
        a_queue_with_totals(store);
        const long long generation = test_state(store, "generation");
        const long long waiting = test_state(store, "waiting");
        const bool whole = strcmp(sessions[i], "tl:{q}:kept") == 0; /* else half of them is lost */
        const long long active = whole ? test_state(store, "active") : 0;
        test_redis_ask(store->redis, "DEL tl:{q}:state %s", sessions[i]);
        tl_reply_free(test_function(store->redis, TL_FN_RECOVER, &store->keys, "1000 60000", NULL));
        assert_int_equal(test_state(store, "generation"), generation);
        assert_int_equal(test_state(store, "waiting"), waiting);
        assert_int_equal(test_state(store, "active"), active);
        assert_int_equal(test_state(store, "completed"), 0);
        assert_true(test_state(store, "recover_until") > test_redis_ms(store->redis));
        test_invariants(store->redis, &store->keys);
        wrong_is(store, "");
        tl_reply_free(test_function(store->redis, TL_FN_RECOVER, &store->keys, "1000 0", NULL));
        assert_int_equal(test_admit(store, 9), 0); /* the step that ends it */
        test_redis_ask(store->redis, "HSET tl:{q}:config capacity 9");
        assert_int_equal(test_admit(store, 9), waiting);
    }
}

/* Nor does that make a queue where there is none, or none of whose line is known. */
static void what_no_event_tells_is_not_written_again(void **state)
{
    struct test_store *store = *state;
    char error[320];
    tl_keys_init(&store->keys, "tl:", "q");
    assert_null(test_function(store->redis, TL_FN_RECOVER, &store->keys, "1000 60000", error));
    assert_non_null(strstr(error, "NOQUEUE"));
    a_queue_with_totals(store);
    test_redis_ask(store->redis, "DEL tl:{q}:state tl:{q}:waiting");
    uint64_t before = test_redis_fingerprint(store->redis);
    mend(store, "`tellerline queue delete QUEUE`");
    assert_null(test_function(store->redis, TL_FN_RECOVER, &store->keys, "1000 60000", error));
    assert_non_null(strstr(error, "DAMAGED"));
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

/* ---- what operators read ---- */

/* The numbers of a queue can be read while the keys of its webhooks are damaged. */
static void stats_do_without_the_keys_of_webhooks(void **state)
{
    struct test_store *store = *state;
    static const char *const sources[] = {TL_FN_STATS, TL_FN_WEBHOOKS};
    static const char *const damages[] = {"LPUSH tl:{q}:journal x", "LPUSH tl:{q}:notifier x",
                                          "LPUSH tl:{q}:webhooks x"};
    test_store_queue(store, "lanes=only capacity=1");
    test_redis_ask(store->redis, "HSET tl:{q}:webhooks journaled 5");
    struct tl_args args = {0};
    tl_args_strs(&args, "HSET", "tl:{q}:webhooks", "cursor:shop", "1-0 2", NULL);
    tl_reply_free(tl_redis_call(store->redis, &args, NULL));
    tl_args_free(&args);
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        if (i == 2)
            test_redis_ask(store->redis, "DEL tl:{q}:webhooks");
        test_redis_ask(store->redis, "%s", damages[i]);
        for (size_t at = 0; at < 2; at++) {
            char error[320];
            struct tl_reply *reply =
                test_function(store->redis, sources[at], &store->keys, "waiting", error);
            if (reply == NULL)
                fail_msg("%s: %s", damages[i], error);
            tl_reply_free(reply);
        }
    }
}

/* The same while numbers are damaged: none of them may become infinite. */
static void stats_do_without_damaged_numbers(void **state)
{
    struct test_store *store = *state;
    enum { NINES = 400 };
    char nines[NINES + 1], error[320];
    const long long now = test_redis_ms(store->redis);
    memset(nines, '9', NINES);
    nines[NINES] = '\0';
    test_store_queue(store, "lanes=only capacity=1");
    test_join(store, "anna", 0);
    test_join(store, "bob", 0);
    test_batch(store);
    assert_int_equal(test_admit(store, 5), 1);
    const char *const damages[] = {nines, "-inf", "1e400", "nan", "x"};
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        char called[NINES + 8];
        struct tl_args args = {0};
        snprintf(called, sizeof(called), "1:%s:1", damages[i]);
        tl_args_strs(&args, "HSET", "tl:{q}:state", "called", called, NULL);
        tl_reply_free(tl_redis_call(store->redis, &args, NULL));
        tl_args_free(&args);
        test_redis_ask(store->redis, "DEL tl:{q}:history");
        test_redis_ask(store->redis, "XADD tl:{q}:history %lld-0 seq %s completed %s eta_judged %s",
                       now - 100000, damages[i], damages[i], damages[i]);
        struct tl_reply *reply =
            test_function(store->redis, TL_FN_STATS, &store->keys, "waiting", error);
        if (reply == NULL)
            fail_msg("%s: %s", damages[i], error);
        tl_reply_free(reply);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_set_instead_of_a_sorted_set_stops_a_batch_whole, test_store_clean),
        cmocka_unit_test_setup(the_operator_is_told_which_key_is_wrong, test_store_clean),
        cmocka_unit_test_setup(a_damaged_counter_is_written_again, test_store_clean),
        cmocka_unit_test_setup(several_damaged_totals_add_up, test_store_clean),
        cmocka_unit_test_setup(a_foreign_event_does_not_keep_counters_damaged, test_store_clean),
        cmocka_unit_test_setup(an_infinite_setting_is_written_again, test_store_clean),
        cmocka_unit_test_setup(without_events_the_operator_is_asked, test_store_clean),
        cmocka_unit_test_setup(a_recovery_after_the_loss_of_the_state_ends, test_store_clean),
        cmocka_unit_test_setup(stats_do_without_the_keys_of_webhooks, test_store_clean),
        cmocka_unit_test_setup(stats_do_without_damaged_numbers, test_store_clean),
    };
    const struct CMUnitTest in_a_cluster[] = {
        cmocka_unit_test_setup(a_missing_state_rests_until_it_is_back, test_store_clean),
        cmocka_unit_test_setup(a_queue_goes_on_without_its_state_when_the_operator_says_so,
                               test_store_clean),
        cmocka_unit_test_setup(what_no_event_tells_is_not_written_again, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close) +
           cmocka_run_group_tests(in_a_cluster, test_store_open_node, test_store_close);
}
