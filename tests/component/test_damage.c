/* Keys of a queue that are damaged: a script that cannot go on has changed nothing, the operator is
 * told what to do, and afterwards all goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/config/queue_settings.h"
#include "common/store/mend.h"
#include "common/store/reply.h"
#include "generated/control_scripts.h"
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
    static const char *const types[][2] = {{"serials", "hash"},   {"lost", "hash"},
                                           {"changes", "stream"}, {"held", "zset"},
                                           {"drawn", "string"},   {"poison", "stream"}};
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

/* Loses the state, and writes it again as a program does. */
static void lose_the_state(struct test_store *store)
{
    struct tl_queue_settings settings;
    struct tl_error err = {.kind = TL_ERR_STORE};
    struct tl_troubles *troubles = tl_troubles_new();
    tl_queue_settings_defaults(&settings);
    const struct tl_mend_offer offer = {
        .from_memory = true, .settings = &settings, .actor = &test_actor};
    test_redis_ask(store->redis, "DEL %s", store->keys.names[TL_KEY_STATE]);
    assert_true(tl_queue_set_aside(troubles, store->redis, &store->keys, &offer, &err, 0));
    assert_non_null(strstr(err.text, "was written again"));
    tl_troubles_free(&troubles);
}

static void comes_back(struct test_store *store, const char *visitor, uint64_t generation)
{
    struct tl_apply_counts counts = {0};
    struct tl_error err = {0};
    const struct tl_command restore = {.kind = TL_COMMAND_RESTORE,
                                       .visitor = visitor,
                                       .visitor_length = strlen(visitor),
                                       .number = 9,
                                       .numbers = {generation}};
    assert_int_equal(tl_batch_recover(store->writer, &restore), 0);
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

/* ---- what operators read ---- */

/* The numbers of a queue can be read while the keys of its hooks are damaged. */
static void stats_do_without_the_keys_of_hooks(void **state)
{
    struct test_store *store = *state;
    static const char *const sources[] = {tl_script_stats, tl_script_hooks};
    static const char *const damages[] = {"LPUSH tl:{q}:journal x", "LPUSH tl:{q}:notifier x",
                                          "LPUSH tl:{q}:hooks x"};
    test_store_queue(store, "lanes=only capacity=1");
    test_redis_ask(store->redis, "HSET %s journaled 5", store->keys.names[TL_KEY_STATE]);
    struct tl_args args = {0};
    tl_args_strs(&args, "HSET", "tl:{q}:hooks", "cursor:shop", "1-0 2", NULL);
    tl_reply_free(tl_redis_call(store->redis, &args, NULL));
    tl_args_free(&args);
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        if (i == 2)
            test_redis_ask(store->redis, "DEL tl:{q}:hooks");
        test_redis_ask(store->redis, "%s", damages[i]);
        for (size_t at = 0; at < 2; at++) {
            char error[320];
            struct tl_reply *reply =
                test_script(store->redis, sources[at], &store->keys, "waiting", error);
            if (reply == NULL)
                fail_msg("%s: %s", damages[i], error);
            tl_reply_free(reply);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_set_instead_of_a_sorted_set_stops_a_batch_whole, test_store_clean),
        cmocka_unit_test_setup(the_operator_is_told_which_key_is_wrong, test_store_clean),
        cmocka_unit_test_setup(a_recovery_after_the_loss_of_the_state_ends, test_store_clean),
        cmocka_unit_test_setup(stats_do_without_the_keys_of_hooks, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
