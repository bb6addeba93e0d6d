/* SPDX-License-Identifier: Apache-2.0 */
/* The library of functions in the store: how it gets there, and how it goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "ingest.h"

#define DAY_MS 86400000LL

/* Calls a function. */
static enum tl_error_kind head(struct tl_redis *redis, const struct tl_keys *keys, char text[320])
{
    struct tl_error err = {0};
    struct tl_reply *reply = tl_call_read(redis, TL_FN_HEAD, keys, &err);
    tl_reply_free(reply);
    snprintf(text, 320, "%s", err.text);
    return reply != NULL ? TL_OK : err.kind;
}

static bool has_library(struct tl_redis *redis, const char *name)
{
    char command[80];
    snprintf(command, sizeof(command), "FUNCTION LIST LIBRARYNAME %s", name);
    struct tl_reply *reply = test_redis_call(redis, command);
    size_t n = tl_reply_count(reply);
    tl_reply_free(reply);
    return n == 1;
}

static void a_store_that_lacks_it_gets_it(void **state)
{
    struct test_store *store = *state;
    char text[320];
    test_store_queue(store, "");
    for (int i = 0; i < 2; i++) {
        tl_reply_free(test_redis_call(store->redis, i == 0 ? "FUNCTION FLUSH" : "PING"));
        assert_int_equal(head(store->redis, &store->keys, text), TL_OK);
        assert_true(has_library(store->redis, TL_LIBRARY));
    }
}

static void a_store_that_was_restarted_empty_gets_it(void **state)
{
    (void)state;
    struct test_redis *server = test_redis_start();
    struct tl_redis *redis = test_redis_connect(server);
    struct tl_keys keys;
    char text[320];
    test_queue(redis, "", &keys);
    test_redis_kill(server);
    assert_int_not_equal(head(redis, &keys, text), TL_OK);
    test_redis_restart(server);
    assert_true(tl_redis_connect(redis, NULL));
    assert_false(has_library(redis, TL_LIBRARY));
    test_queue(redis, "", &keys);
    assert_int_equal(head(redis, &keys, text), TL_OK);
    tl_redis_free(&redis);
    test_redis_stop(&server);
}

/* Two builds: each has functions of its own, and neither replaces the other's. */
static void two_releases_live_side_by_side(void **state)
{
    struct test_store *store = *state;
    char text[320];
    static const char *const changed[] = {"call('PTTL', lease)", "(-1)", NULL};
    test_store_queue(store, "");
    test_library_variant(store->redis, "other", changed);
    struct tl_reply *reply = test_function(store->redis, "tl_other_head", &store->keys, "", NULL);
    tl_reply_free(reply);
    assert_int_equal(head(store->redis, &store->keys, text), TL_OK);
    tl_reply_free(test_redis_call(store->redis, "FUNCTION DELETE " TL_LIBRARY));
    assert_int_equal(head(store->redis, &store->keys, text), TL_OK);
    assert_true(has_library(store->redis, "tellerline_other"));
}

/* A connection of a user with these rights. */
static struct tl_redis *login(const struct test_store *store, const char *rights)
{
    char command[200];
    snprintf(command, sizeof(command), "ACL SETUSER some reset on >secret ~* %s", rights);
    tl_reply_free(test_redis_call(store->redis, command));
    struct tl_redis *redis = test_redis_connect(store->server);
    tl_reply_free(test_redis_call(redis, "AUTH some secret"));
    return redis;
}

/* Who may not load it waits, says for whom, and works as soon as another program has loaded it. */
static void who_may_not_load_it_waits_for_the_others(void **state)
{
    struct test_store *store = *state;
    char text[320];
    test_store_queue(store, "");
    struct tl_redis *guest = login(store, "+@all -function -script -eval");
    tl_reply_free(test_redis_call(store->redis, "FUNCTION FLUSH"));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(head(guest, &store->keys, text), TL_ERR_LOADING);
        assert_non_null(strstr(text, TL_LIBRARY));
        assert_non_null(strstr(text, "a dispatcher, admitter or expirer of this release does"));
        assert_true(tl_redis_connected(guest));
    }
    assert_int_equal(head(store->redis, &store->keys, text), TL_OK);
    assert_int_equal(head(guest, &store->keys, text), TL_OK);
    tl_redis_free(&guest);
    tl_reply_free(test_redis_call(store->redis, "ACL DELUSER some"));
}

/* A full store takes no library: the error says what was to be loaded. */
static void a_full_store_refuses_it_and_says_so(void **state)
{
    struct test_store *store = *state;
    char text[320];
    test_store_queue(store, "");
    tl_reply_free(test_redis_call(store->redis, "FUNCTION FLUSH"));
    tl_reply_free(test_redis_call(store->redis, "CONFIG SET maxmemory 1"));
    assert_int_equal(head(store->redis, &store->keys, text), TL_ERR_OOM);
    assert_non_null(strstr(text, "loading the functions of this release (" TL_LIBRARY ")"));
    tl_reply_free(test_redis_call(store->redis, "CONFIG SET maxmemory 0"));
    assert_int_equal(head(store->redis, &store->keys, text), TL_OK);
}

/* ---- libraries that nobody uses ---- */

static unsigned prune(struct test_store *store)
{
    unsigned n = 0;
    struct tl_error err = {0};
    const struct tl_redis_settings redis = {.url = test_redis_url(store->server),
                                            .timeout_ms = 60000};
    struct tl_store *connections = tl_store_new(&redis, &err);
    if (connections == NULL || !tl_store_connect(connections, &err) ||
        !tl_library_prune(connections, "tl:", &n, &err))
        fail_msg("%s", err.text);
    tl_store_free(&connections);
    return n;
}

static void a_library_that_nobody_named_for_a_day_goes(void **state)
{
    struct test_store *store = *state;
    static const char *const same[] = {NULL};
    int64_t due_ms = 0;
    test_library_variant(store->redis, "old", same);
    assert_true(tl_library_note(store->redis, "tl:", &due_ms, tl_clock_ms(), NULL));
    assert_true(due_ms > tl_clock_ms());
    assert_int_equal(prune(store), 0); /* from now on its day runs */
    assert_int_equal(test_redis_number(store->redis, "HLEN tl:libraries{tl:queues}"), 2);
    long long yesterday = test_redis_ms(store->redis) - DAY_MS;
    test_redis_ask(store->redis, "HSET tl:libraries{tl:queues} tellerline_old %lld",
                   yesterday + 60000);
    assert_int_equal(prune(store), 0);
    test_redis_ask(store->redis,
                   "HSET tl:libraries{tl:queues} tellerline_old %lld " TL_LIBRARY " 1",
                   yesterday - 1000);
    assert_int_equal(prune(store), 1); /* our own is named by pruning */
    assert_false(has_library(store->redis, "tellerline_old"));
    assert_true(has_library(store->redis, TL_LIBRARY));
    assert_int_equal(test_redis_number(store->redis, "HLEN tl:libraries{tl:queues}"), 1);
}

/* What another product loaded is none of our business. */
static void the_libraries_of_others_stay(void **state)
{
    struct test_store *store = *state;
    struct tl_args args = {0};
    tl_args_strs(&args, "FUNCTION", "LOAD", "REPLACE",
                 "#!lua name=theirs\nredis.register_function('theirs', function() return 1 end)",
                 NULL);
    assert_true(tl_redis_do(store->redis, &args, NULL));
    tl_args_free(&args);
    prune(store);
    test_redis_ask(store->redis, "HSET tl:libraries{tl:queues} theirs 1");
    prune(store);
    assert_true(has_library(store->redis, "theirs"));
    tl_reply_free(test_redis_call(store->redis, "FUNCTION DELETE theirs"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_store_that_lacks_it_gets_it, test_store_clean),
        cmocka_unit_test_setup(a_store_that_was_restarted_empty_gets_it, test_store_clean),
        cmocka_unit_test_setup(two_releases_live_side_by_side, test_store_clean),
        cmocka_unit_test_setup(who_may_not_load_it_waits_for_the_others, test_store_clean),
        cmocka_unit_test_setup(a_full_store_refuses_it_and_says_so, test_store_clean),
        cmocka_unit_test_setup(a_library_that_nobody_named_for_a_day_goes, test_store_clean),
        cmocka_unit_test_setup(the_libraries_of_others_stay, test_store_clean),
    };
    return cmocka_run_group_tests(tests, test_store_open, test_store_close);
}
