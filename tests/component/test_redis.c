/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the store, against a real redis-server: replies, logging in, functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/store/library.h"
#include "common/store/reply.h"
#include "ingest.h"

/* ---- replies ---- */

static void arguments_may_hold_any_bytes(void **state)
{
    struct test_store *store = *state;
    char bytes[256];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)i;
    struct tl_args args = {0};
    tl_args_str(&args, "ECHO");
    tl_args_bin(&args, bytes, sizeof(bytes));
    struct tl_reply *reply = tl_redis_call(store->redis, &args, NULL);
    size_t length;
    const char *echo = tl_reply_string(reply, &length);
    assert_int_equal(length, sizeof(bytes));
    assert_memory_equal(echo, bytes, length);
    tl_reply_free(reply);
    tl_args_reset(&args);
    tl_args_str(&args, "ECHO");
    tl_args_bin(&args, NULL, 0);
    reply = tl_redis_call(store->redis, &args, NULL);
    assert_int_equal(tl_reply_type(reply), TL_REPLY_STRING);
    assert_string_equal(tl_reply_string(reply, &length), "");
    assert_int_equal(length, 0);
    tl_reply_free(reply);
    tl_args_free(&args);
}

static void replies_are_read_by_type(void **state)
{
    struct test_store *store = *state;
    struct tl_args args = {0};
    tl_args_strs(&args, "EVAL",
                 "return {7, '-12', false, {'in', 'ner'}, redis.status_reply('GOOD')}", "0", NULL);
    struct tl_reply *reply = tl_redis_call(store->redis, &args, NULL);
    tl_args_free(&args);
    assert_int_equal(tl_reply_type(reply), TL_REPLY_ARRAY);
    assert_int_equal(tl_reply_count(reply), 5);
    assert_int_equal(tl_reply_type(tl_reply_at(reply, 0)), TL_REPLY_INTEGER);
    assert_int_equal(tl_reply_integer(tl_reply_at(reply, 0)), 7);
    assert_int_equal(tl_reply_integer(tl_reply_at(reply, 1)), -12);
    assert_int_equal(tl_reply_type(tl_reply_at(reply, 2)), TL_REPLY_NIL);
    assert_string_equal(tl_reply_string(tl_reply_at(tl_reply_at(reply, 3), 1), NULL), "ner");
    assert_string_equal(tl_reply_string(tl_reply_at(reply, 4), NULL), "GOOD");
    assert_null(tl_reply_at(reply, 5));
    assert_null(tl_reply_at(tl_reply_at(reply, 0), 0));
    assert_int_equal(tl_reply_integer(tl_reply_at(reply, 3)), 0);
    assert_string_equal(tl_reply_string(NULL, NULL), "");
    assert_int_equal(tl_reply_count(NULL), 0);
    tl_reply_free(reply);
    tl_reply_free(NULL);
}

static void a_pipeline_answers_in_order(void **state)
{
    struct test_store *store = *state;
    struct tl_args args = {0};
    for (int64_t i = 0; i < 1000; i++) {
        tl_args_reset(&args);
        tl_args_str(&args, i == 500 ? "NONSENSE" : "ECHO");
        tl_args_int(&args, i);
        assert_true(tl_redis_append(store->redis, &args, NULL));
    }
    tl_args_free(&args);
    for (int64_t i = 0; i < 1000; i++) {
        struct tl_error err = {0};
        struct tl_reply *reply = tl_redis_next(store->redis, &err);
        assert_int_equal(reply == NULL, i == 500); /* an error reply is one of them */
        assert_int_equal(err.kind, i == 500 ? TL_ERR_STORE : TL_OK);
        assert_int_equal(tl_reply_integer(reply), i == 500 ? 0 : i);
        tl_reply_free(reply);
    }
    assert_true(tl_redis_connected(store->redis));
}

/* ---- logging in ---- */

static void the_password_is_checked(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    tl_reply_free(test_redis_call(store->redis, "CONFIG SET requirepass right-one"));
    struct tl_redis *other = test_redis_open(test_redis_url(store->server), 1000);
    assert_true(tl_redis_connect(other, &err));
    assert_false(test_redis_ping(other, &err));
    assert_int_equal(err.kind, TL_ERR_STORE);
    assert_non_null(strstr(err.text, "NOAUTH"));
    tl_redis_free(&other);
}

/* The URL of a server that also listens on TCP, as redis://CREDENTIALS@127.0.0.1:port/db. */
static void tcp_url(struct test_store *store, const char *credentials, const char *db, char *url,
                    size_t size)
{
    for (unsigned port = 20000 + (unsigned)getpid() % 20000; port < 65000; port++) {
        char words[64];
        struct tl_args args = {0};
        snprintf(words, sizeof(words), "%u", port);
        tl_args_strs(&args, "CONFIG", "SET", "port", words, NULL);
        bool taken = !tl_redis_do(store->redis, &args, NULL);
        tl_args_free(&args);
        if (taken)
            continue;
        snprintf(url, size, "redis://%s%s127.0.0.1:%u%s", credentials,
                 credentials[0] != '\0' ? "@" : "", port, db);
        return;
    }
    fail_msg("no free port");
}

static void user_password_and_database_come_from_the_url(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    char url[256];
    tl_reply_free(test_redis_call(store->redis, "ACL SETUSER anna on >se@cret ~* +@all"));
    tcp_url(store, "anna:se%40cret", "/3", url, sizeof(url));
    struct tl_redis *other = test_redis_open(url, 1000);
    if (!tl_redis_connect(other, &err))
        fail_msg("%s", err.text);
    tl_reply_free(test_redis_call(other, "SET here 5"));
    struct tl_reply *who = test_redis_call(other, "ACL WHOAMI");
    assert_string_equal(tl_reply_string(who, NULL), "anna");
    tl_reply_free(who);
    tl_redis_free(&other);
    assert_int_equal(test_redis_number(store->redis, "GET here"), -1);
    tl_reply_free(test_redis_call(store->redis, "SELECT 3"));
    assert_int_equal(test_redis_number(store->redis, "GET here"), 5);
}

static void a_wrong_password_or_database_closes(void **state)
{
    static const struct {
        const char *credentials, *db, *says;
    } wrong[] = {{":wrong", "", "logging in"},
                 {"anna:wrong", "", "logging in"},
                 {"", "/9999", "selecting database 9999"}};
    struct test_store *store = *state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct tl_error err = {0};
        char url[256];
        tcp_url(store, wrong[i].credentials, wrong[i].db, url, sizeof(url));
        struct tl_redis *other = test_redis_open(url, 1000);
        assert_false(tl_redis_connect(other, &err));
        assert_int_equal(err.kind, TL_ERR_STORE);
        assert_non_null(strstr(err.text, wrong[i].says));
        assert_null(strstr(err.text, "wrong"));
        assert_false(tl_redis_connected(other));
        assert_int_equal(tl_redis_epoch(other), 0);
        tl_redis_free(&other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(arguments_may_hold_any_bytes, test_store_open,
                                        test_store_close),
        cmocka_unit_test_setup_teardown(replies_are_read_by_type, test_store_open,
                                        test_store_close),
        cmocka_unit_test_setup_teardown(a_pipeline_answers_in_order, test_store_open,
                                        test_store_close),
        cmocka_unit_test_setup_teardown(the_password_is_checked, test_store_open, test_store_close),
        cmocka_unit_test_setup_teardown(user_password_and_database_come_from_the_url,
                                        test_store_open, test_store_close),
        cmocka_unit_test_setup_teardown(a_wrong_password_or_database_closes, test_store_open,
                                        test_store_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
