/* SPDX-License-Identifier: Apache-2.0 */
/* A queue in the store: created, restored, configured, listed. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/config/queue_settings.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "ingest.h"

static bool ensure(struct test_store *store, const char *name, bool *created, struct tl_error *err)
{
    struct tl_queue_settings settings;
    tl_queue_settings_defaults(&settings);
    tl_keys_init(&store->keys, "tl:", name);
    return tl_queue_ensure(TEST_SITE(store->redis), "tl:", name, &settings, &test_actor, created,
                           err);
}

static void a_queue_is_created_once(void **state)
{
    struct test_store *store = *state;
    struct tl_state numbers;
    struct tl_error err = {0};
    bool created = false;
    tl_keys_init(&store->keys, "tl:", "q");
    assert_false(tl_state_read(store->redis, &store->keys, TL_STATE_COUNTERS, &numbers, &err));
    assert_int_equal(err.kind, TL_ERR_NOQUEUE);
    assert_true(ensure(store, "q", &created, &err));
    assert_true(created);
    assert_true(tl_state_read(store->redis, &store->keys, TL_STATE_COUNTERS, &numbers, &err));
    assert_in_range(numbers.generation / 1000, test_redis_ms(store->redis) - 60000,
                    test_redis_ms(store->redis));
    /* Seqs and events start at a base that grows with the clock: see test_incarnation.c. */
    assert_true(numbers.seq > UINT64_C(1) << 44);
    assert_int_equal(numbers.event, numbers.seq);
    test_invariants(store->redis, &store->keys);
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_true(ensure(store, "q", &created, &err));
    assert_false(created);
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

static void missing_parts_are_restored(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    bool created = true;
    test_store_queue(store, "lanes=only capacity=7");
    test_join_many(store, "v", 2, 0);
    tl_reply_free(test_redis_call(store->redis, "DEL tl:queues tl:{q}:ingest"));
    assert_true(ensure(store, "q", &created, &err));
    assert_false(created);
    assert_int_equal(test_redis_number(store->redis, "SISMEMBER tl:queues q"), 1);
    assert_int_equal(test_redis_number(store->redis, "HGET tl:{q}:config capacity"), 7);
    test_join_many(store, "w", 1, 0); /* the group exists again */
    assert_int_equal(test_state(store, "waiting"), 3);
}

static void a_line_without_its_state_is_not_touched(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    test_store_queue(store, "lanes=only");
    test_join_many(store, "v", 2, 0);
    tl_reply_free(test_redis_call(store->redis, "DEL tl:{q}:state"));
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_false(ensure(store, "q", NULL, &err));
    assert_int_equal(err.kind, TL_ERR_STORE);
    assert_non_null(strstr(err.text, "DAMAGED"));
    assert_non_null(strstr(err.text, "creating queue q"));
    assert_int_equal(test_redis_fingerprint(store->redis), before);
}

static void settings_are_read_as_they_were_written(void **state)
{
    struct test_store *store = *state;
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    test_store_queue(store, "capacity=5 session_ttl=3s lanes=gold,silver default_lane=gold "
                            "target_url=https://shop.example/x?y=z");
    assert_true(tl_queue_load(store->redis, &store->keys, &settings, &err));
    assert_int_equal(settings.capacity, 5);
    assert_int_equal(settings.session_ttl_ms, 3000);
    assert_int_equal(settings.n_lanes, 2);
    assert_int_equal(settings.default_lane, 0);
    assert_string_equal(settings.target_url, "https://shop.example/x?y=z");
    tl_reply_free(
        test_redis_call(store->redis, "HDEL tl:{q}:config lanes")); /* now it comes last */
    tl_reply_free(test_redis_call(store->redis, "HSET tl:{q}:config lanes gold,silver"));
    assert_true(tl_queue_load(store->redis, &store->keys, &settings, &err));
    assert_int_equal(settings.default_lane, 0);
}

static void settings_of_a_newer_version_are_ignored(void **state)
{
    struct test_store *store = *state;
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    test_store_queue(store, "capacity=5 session_ttl=3s");
    tl_reply_free(test_redis_call(store->redis,
                                  "HSET tl:{q}:config novelty 1 session_sliding soon capacity 8"));
    tl_reply_free(test_redis_call(store->redis, "HDEL tl:{q}:config default_lane"));
    assert_true(tl_queue_load(store->redis, &store->keys, &settings, &err));
    assert_int_equal(settings.capacity, 8);
    assert_false(settings.session_sliding); /* the default */
    assert_int_equal(settings.session_ttl_ms, 3000);
    /* Without a setting that the functions need, the rest is of no use. */
    tl_reply_free(test_redis_call(store->redis, "HSET tl:{q}:config claim_ttl soon"));
    assert_false(tl_queue_load(store->redis, &store->keys, &settings, &err));
    assert_int_equal(err.kind, TL_ERR_NOQUEUE);
    tl_reply_free(test_redis_call(store->redis, "DEL tl:{q}:config"));
    assert_false(tl_queue_load(store->redis, &store->keys, &settings, &err));
    assert_int_equal(err.kind, TL_ERR_NOQUEUE);
}

static void a_changed_setting_emits_an_event(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    struct test_entry last;
    test_store_queue(store, "capacity=5");
    test_join_many(store, "v", 3, 0);
    assert_true(test_queue_set(store->redis, &store->keys, "session_ttl", "2m", &err));
    test_entry_read(store, &last);
    assert_int_equal(last.entry.number, 2);
    assert_int_equal(last.entry.waiting, 3);
    assert_int_equal(last.entry.n_events, 1);
    assert_int_equal(last.entry.events[0].kind, TL_EVENT_CONFIG);
    test_entry_free(&last);
    assert_int_equal(test_redis_number(store->redis, "HGET tl:{q}:config session_ttl"), 120000);
    assert_int_equal(test_redis_number(store->redis, "HGET tl:{q}:config capacity"), 5);
}

static void a_bad_setting_changes_nothing(void **state)
{
    static const char *const bad[][2] = {
        {"capacity", "many"}, {"capcity", "5"}, {"policy", "rate"}, {"default_lane", "gold"}};
    struct test_store *store = *state;
    test_store_queue(store, "capacity=5");
    uint64_t before = test_redis_fingerprint(store->redis);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tl_error err = {0};
        assert_false(test_queue_set(store->redis, &store->keys, bad[i][0], bad[i][1], &err));
        assert_int_equal(err.kind, TL_ERR_INVALID);
        assert_int_equal(test_redis_fingerprint(store->redis), before);
    }
}

/* Sets one setting again and again, and looks after each change whether it is in force. Returns how
 * many changes were undone by a program that never sets this setting; UINT_MAX on an error (the
 * other process must not go on as cmocka's). */
static unsigned set_often(const struct test_redis *server, const struct tl_keys *keys,
                          const char *name, const char *unit)
{
    enum { CHANGES = 300 };
    unsigned undone = 0;
    struct tl_redis *redis = test_redis_connect(server);
    for (unsigned i = 1; i <= CHANGES; i++) {
        char value[16];
        struct tl_error err = {0};
        snprintf(value, sizeof(value), "%u%s", 1000 + i, unit);
        /* Who loses a hundred times in a row may try again. */
        while (!test_queue_set(redis, keys, name, value, &err)) {
            if (strstr(err.text, "all the time") != NULL)
                continue;
            print_error("%s\n", err.text);
            tl_redis_free(&redis);
            return UINT_MAX;
        }
        if (test_redis_ask(redis, "HGET %s %s", keys->names[TL_KEY_CONFIG], name) != 1000 + i)
            undone++;
    }
    tl_redis_free(&redis);
    return undone;
}

static void changes_at_once_do_not_undo_each_other(void **state)
{
    struct test_store *store = *state;
    test_store_queue(store, "capacity=5");
    pid_t other = fork();
    assert_true(other >= 0);
    if (other == 0)
        _exit(set_often(store->server, &store->keys, "capacity", "") > 0 ? 1 : 0);
    unsigned undone = set_often(store->server, &store->keys, "waiting_ttl", "ms");
    int status = -1;
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(status, 0);
    assert_int_equal(undone, 0);
    assert_int_equal(test_redis_number(store->redis, "HGET tl:{q}:config capacity"), 1300);
}

static void a_change_leaves_what_it_does_not_name(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    test_store_queue(store, "capacity=5 lanes=vip,normal default_lane=vip");
    tl_reply_free(test_redis_call(store->redis, "HSET tl:{q}:config novelty 1 claim_ttl soon"));
    assert_true(test_queue_set(store->redis, &store->keys, "capacity", "7", &err));
    struct tl_reply *reply = test_redis_call(store->redis, "HMGET tl:{q}:config claim_ttl novelty");
    assert_string_equal(tl_reply_string(tl_reply_at(reply, 0), NULL), "soon");
    assert_string_equal(tl_reply_string(tl_reply_at(reply, 1), NULL), "1");
    tl_reply_free(reply);
    /* The default lane goes with the lanes, and a value that cannot be read is replaced. */
    assert_true(test_queue_set(store->redis, &store->keys, "lanes", "gold,silver", &err));
    assert_true(test_queue_set(store->redis, &store->keys, "claim_ttl", "2m", &err));
    reply = test_redis_call(store->redis, "HMGET tl:{q}:config default_lane claim_ttl");
    assert_string_equal(tl_reply_string(tl_reply_at(reply, 0), NULL), "silver");
    assert_string_equal(tl_reply_string(tl_reply_at(reply, 1), NULL), "120000");
    tl_reply_free(reply);
}

static bool bring_back(struct test_store *store, const struct tl_queue_settings *settings,
                       bool *created)
{
    struct tl_error err = {0};
    if (tl_queue_bring_back(TEST_SITE(store->redis), "tl:", "q", settings, &test_actor, created,
                            &err))
        return true;
    fail_msg("%s", err.text);
    return false;
}

static void assert_settings(struct test_store *store, enum tl_queue_mode mode, uint64_t capacity)
{
    struct tl_queue_settings settings;
    struct tl_error err = {0};
    if (!tl_queue_load(store->redis, &store->keys, &settings, &err))
        fail_msg("%s", err.text);
    assert_int_equal(settings.mode, mode);
    assert_int_equal(settings.capacity, capacity);
}

/* A program that has just started makes the queue of the file again, open; one that knew it gives
 * it the settings that were in force. */
static void settings_that_the_store_has_lost_come_back(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    struct tl_queue_settings file, known, older;
    struct test_entry last;
    bool created = true;
    tl_queue_settings_defaults(&file);
    file.capacity = 50;
    tl_keys_init(&store->keys, "tl:", "q");
    assert_true(
        tl_queue_ensure(TEST_SITE(store->redis), "tl:", "q", &file, &test_actor, NULL, &err));
    assert_true(tl_queue_load(store->redis, &store->keys, &older, &err));
    assert_int_equal(older.changed_us, 0);
    assert_true(test_queue_set(store->redis, &store->keys, "capacity", "7", &err));
    assert_true(test_queue_set(store->redis, &store->keys, "mode", "sold_out", &err));
    assert_true(tl_queue_load(store->redis, &store->keys, &known, &err));
    assert_in_range(known.changed_us / 1000, test_redis_ms(store->redis) - 60000,
                    test_redis_ms(store->redis));
    uint64_t before = test_redis_fingerprint(store->redis);
    assert_true(bring_back(store, &known, NULL));
    assert_true(bring_back(store, &older, NULL));
    assert_int_equal(test_redis_fingerprint(store->redis), before);

    tl_reply_free(test_redis_call(store->redis, "FLUSHALL"));
    assert_true(
        tl_queue_ensure(TEST_SITE(store->redis), "tl:", "q", &file, &test_actor, NULL, &err));
    assert_settings(store, TL_MODE_OPEN, 50);
    assert_true(bring_back(store, &known, &created));
    assert_false(created);
    assert_settings(store, TL_MODE_SOLD_OUT, 7);
    test_entry_read(store, &last);
    assert_int_equal(last.entry.n_events, 1);
    assert_int_equal(last.entry.events[0].kind, TL_EVENT_CONFIG);
    test_entry_free(&last);
    /* What an operator changes afterwards is newer. */
    assert_true(test_queue_set(store->redis, &store->keys, "mode", "closed", &err));
    assert_true(bring_back(store, &known, NULL));
    assert_settings(store, TL_MODE_CLOSED, 7);
}

static void a_lost_queue_is_made_with_the_settings_in_force(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    struct tl_queue_settings settings, known;
    bool created = false;
    tl_queue_settings_defaults(&settings);
    settings.mode = TL_MODE_PAUSED;
    settings.mode = TL_MODE_PAUSED;
    tl_keys_init(&store->keys, "tl:", "q");
    assert_true(tl_queue_create(TEST_SITE(store->redis), "tl:", "q", &settings, &test_actor,
                                &created, &err));
    assert_true(tl_queue_load(store->redis, &store->keys, &known, &err));
    assert_int_equal(known.changed_us, test_state(store, "generation"));
    tl_reply_free(test_redis_call(store->redis, "FLUSHALL"));
    assert_true(bring_back(store, &known, &created));
    assert_true(created);
    assert_settings(store, TL_MODE_PAUSED, settings.capacity);
    assert_true(test_state(store, "recover_until") > 0);
    assert_int_equal(test_redis_number(store->redis, "SISMEMBER tl:queues q"), 1);
    assert_true(tl_queue_load(store->redis, &store->keys, &settings, &err));
    assert_int_equal(settings.changed_us, known.changed_us); /* these count among other programs */
}

static void a_notice_is_set_and_removed(void **state)
{
    static const char *const texts[] = {"The doors open at 8 \xe2\x98\x95", ""};
    struct test_store *store = *state;
    struct tl_error err = {0};
    test_store_queue(store, "capacity=5");
    for (size_t i = 0; i < 2; i++) {
        struct test_entry last;
        assert_true(tl_queue_notice(store->redis, &store->keys, texts[i], &test_actor, &err));
        test_entry_read(store, &last);
        const struct tl_event *notice = test_event(&last, TL_EVENT_NOTICE, 0);
        assert_non_null(notice);
        assert_int_equal(notice->text_length, strlen(texts[i]));
        assert_memory_equal(notice->text, texts[i], notice->text_length);
        test_entry_free(&last);
        struct tl_reply *reply = test_redis_call(store->redis, "HGET tl:{q}:state notice");
        assert_string_equal(tl_reply_string(reply, NULL), texts[i]);
        tl_reply_free(reply);
    }
    tl_reply_free(test_redis_call(store->redis, "DEL tl:{q}:state"));
    assert_false(tl_queue_notice(store->redis, &store->keys, "x", &test_actor, &err));
    assert_int_equal(err.kind, TL_ERR_NOQUEUE);
}

static void queues_are_listed_by_name(void **state)
{
    struct test_store *store = *state;
    char(*names)[TL_QUEUE_NAME_MAX + 1];
    size_t n;
    assert_true(tl_queue_list(store->redis, "tl:", &names, &n, NULL));
    assert_int_equal(n, 0);
    free(names);
    assert_true(ensure(store, "zebra", NULL, NULL));
    assert_true(ensure(store, "ant", NULL, NULL));
    tl_reply_free(test_redis_call(store->redis, "SADD tl:queues NOT-a-name ../x"));
    assert_true(tl_queue_list(store->redis, "tl:", &names, &n, NULL));
    assert_int_equal(n, 2);
    assert_string_equal(names[0], "ant");
    assert_string_equal(names[1], "zebra");
    free(names);
    assert_true(tl_queue_list(store->redis, "other:", &names, &n, NULL));
    assert_int_equal(n, 0);
    free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_queue_is_created_once, test_store_clean),
        cmocka_unit_test_setup(missing_parts_are_restored, test_store_clean),
        cmocka_unit_test_setup(a_line_without_its_state_is_not_touched, test_store_clean),
        cmocka_unit_test_setup(settings_are_read_as_they_were_written, test_store_clean),
        cmocka_unit_test_setup(settings_of_a_newer_version_are_ignored, test_store_clean),
        cmocka_unit_test_setup(a_changed_setting_emits_an_event, test_store_clean),
        cmocka_unit_test_setup(a_bad_setting_changes_nothing, test_store_clean),
        cmocka_unit_test_setup(changes_at_once_do_not_undo_each_other, test_store_clean),
        cmocka_unit_test_setup(a_change_leaves_what_it_does_not_name, test_store_clean),
        cmocka_unit_test_setup(settings_that_the_store_has_lost_come_back, test_store_clean),
        cmocka_unit_test_setup(a_lost_queue_is_made_with_the_settings_in_force, test_store_clean),
        cmocka_unit_test_setup(a_notice_is_set_and_removed, test_store_clean),
        cmocka_unit_test_setup(queues_are_listed_by_name, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
