/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the store, against a real redis-server that fails in every way: a new server
 * for each test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/store/reply.h"
#include "ingest.h"
#include "side_by_side.h"

#define GIVE_UP_MS 300000
#define HASTY_MS   1000 /* enough for a running server, even on a busy machine */

/* ---- refusals ---- */

static void error_replies_have_kinds(void **state)
{
    static const struct {
        const char *answer;
        enum tl_error_kind kind;
    } table[] = {
        {"NOQUEUE it is gone", TL_ERR_NOQUEUE},
        {"STALE fence", TL_ERR_STALE},
        {"ORDER older", TL_ERR_ORDER},
        {"INVALID command 3", TL_ERR_INVALID},
        {"NOREPLICAS few", TL_ERR_MISCONF},
        {"MOVED 866 127.0.0.1:7001", TL_ERR_MOVED},
        {"ASK 866 127.0.0.1:7001", TL_ERR_MOVED},
        {"TRYAGAIN Multiple keys request during rehashing of slot", TL_ERR_MOVED},
        {"CLUSTERDOWN Hash slot not served", TL_ERR_MOVED},
        {"UNBLOCKED the hash slot", TL_ERR_MOVED},
        {"ERR Attempted to access a non local key in a cluster node", TL_ERR_MOVED},
        {"LOADING data", TL_ERR_LOADING},
        {"POLICY unknown", TL_ERR_STORE},
        {"ERR max number of clients", TL_ERR_CONNECT},
        {"UNBLOCKED the stream key no longer exists", TL_ERR_NOGROUP}, /* the rest goes on */
        {"NOPERM no permissions", TL_ERR_DENIED},
        {"ERR The user executing the script can't run this command", TL_ERR_DENIED},
        {"ERR ACL failure in script: No permissions to access a key", TL_ERR_DENIED},
    };
    struct test_store *store = *state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct tl_args args = {0};
        struct tl_error err = {0};
        tl_args_strs(&args, "EVAL", "return redis.error_reply(ARGV[1])", "0", table[i].answer,
                     NULL);
        assert_null(tl_redis_call(store->redis, &args, &err));
        tl_args_free(&args);
        assert_int_equal(err.kind, table[i].kind);
        assert_non_null(strstr(err.text, table[i].answer));
        assert_true(tl_redis_connected(store->redis));
    }
    assert_int_equal(test_redis_refusal(store->redis, "XREADGROUP GROUP g c STREAMS s >"),
                     TL_ERR_NOGROUP);
    assert_int_equal(test_redis_refusal(store->redis, "FCALL tl_0_admit 0"), TL_ERR_NOFUNCTION);
}

/* Each of these says that the server is a replica: directly, from a function, with its master away,
 * and to a command that was blocked. */
static void who_says_to_be_a_replica_is_left(void **state)
{
    static const char *const answers[] = {
        "READONLY You can't write against a read only replica.",
        "READONLY You can't write against a read only replica. script: 1, on @user_script:1.",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "UNBLOCKED force unblock from blocking operation, instance state changed",
        "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0",
        "ERR WAITAOF cannot be used with replica instances. Please also note that writes",
    };
    struct test_store *store = *state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct tl_args args = {0};
        struct tl_error err = {0};
        uint64_t epoch = tl_redis_epoch(store->redis);
        tl_args_strs(&args, "EVAL", "return redis.error_reply(ARGV[1])", "0", answers[i], NULL);
        assert_null(tl_redis_call(store->redis, &args, &err));
        tl_args_free(&args);
        assert_int_equal(err.kind, TL_ERR_READONLY);
        assert_non_null(strstr(err.text, answers[i]));
        assert_false(tl_redis_connected(store->redis));
        assert_true(tl_redis_connect(store->redis, &err)); /* it is a master */
        assert_int_equal(tl_redis_epoch(store->redis), epoch + 1);
    }
}

static void a_replica_is_left_until_it_is_a_master(void **state)
{
    static const char *const writes[] = {"SET x y", "EVAL redis.call('SET','x','y') 0"};
    struct test_store *store = *state;
    struct tl_redis *admin = test_redis_connect(store->server);
    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        struct tl_error err = {0};
        tl_reply_free(test_redis_call(admin, "REPLICAOF 127.0.0.1 1"));
        assert_int_equal(test_redis_refusal(store->redis, writes[i]), TL_ERR_READONLY);
        assert_false(tl_redis_connected(store->redis));
        assert_false(tl_redis_connect(store->redis, &err));
        assert_int_equal(err.kind, TL_ERR_READONLY);
        assert_false(tl_redis_connected(store->redis));
        tl_reply_free(test_redis_call(admin, "REPLICAOF NO ONE"));
        assert_true(tl_redis_connect(store->redis, &err));
        tl_reply_free(test_redis_call(store->redis, writes[i]));
    }
    tl_redis_free(&admin);
}

/* Reads succeed on a replica, so a connection that never writes has to ask. */
static void a_reader_leaves_a_replica_too(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    struct tl_redis *admin = test_redis_connect(store->server);
    tl_reply_free(test_redis_call(admin, "REPLICAOF 127.0.0.1 1"));
    for (int64_t began = tl_clock_ms(); tl_redis_connect(store->redis, &err);) {
        assert_true(test_redis_ping(store->redis, &err));
        assert_in_range(tl_clock_ms() - began, 0, GIVE_UP_MS);
        usleep(2000); /* between two polls */
    }
    assert_int_equal(err.kind, TL_ERR_READONLY);
    assert_false(tl_redis_connected(store->redis));
    tl_redis_free(&admin);
}

static void at_the_memory_limit_it_is_oom(void **state)
{
    struct test_store *store = *state;
    tl_reply_free(test_redis_call(store->redis, "CONFIG SET maxmemory 1"));
    assert_int_equal(test_redis_refusal(store->redis, "SET x y"), TL_ERR_OOM);
    tl_reply_free(test_redis_call(store->redis, "CONFIG SET maxmemory 0"));
    tl_reply_free(test_redis_call(store->redis, "SET x y"));
}

/* A folder has the name of the dump, so that the store cannot save. */
static void a_store_that_cannot_save_is_misconf(void **state)
{
    struct test_store *store = *state;
    char path[128];
    snprintf(path, sizeof(path), "%s/dump.rdb", test_redis_folder(store->server));
    assert_int_equal(mkdir(path, 0700), 0);
    struct tl_args args = {0};
    tl_args_strs(&args, "CONFIG", "SET", "save", "3600 1", NULL);
    assert_true(tl_redis_do(store->redis, &args, NULL));
    tl_args_free(&args);
    tl_reply_free(test_redis_call(store->redis, "BGSAVE"));
    bool failed = false;
    for (int64_t began = tl_clock_ms(); !failed && tl_clock_ms() - began < GIVE_UP_MS;) {
        struct tl_reply *info = test_redis_call(store->redis, "INFO persistence");
        failed = strstr(tl_reply_string(info, NULL), "rdb_last_bgsave_status:err") != NULL;
        tl_reply_free(info);
        usleep(2000); /* between two polls */
    }
    assert_true(failed);
    assert_int_equal(test_redis_refusal(store->redis, "SET x y"), TL_ERR_MISCONF);
}

static void a_loading_store_is_an_error_of_its_own(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    struct tl_args args = {0};
    tl_args_strs(&args, "EVAL", "for i = 1, 5000 do redis.call('SET', i, i) end", "0", NULL);
    assert_true(tl_redis_do(store->redis, &args, NULL));
    tl_args_free(&args);
    test_redis_kill(store->server);
    assert_false(test_redis_ping(store->redis, &err));
    test_redis_restart_with(store->server, "key-load-delay", "400");
    bool loading = false;
    bool up = false;
    for (int64_t began = tl_clock_ms(); !up && tl_clock_ms() - began < GIVE_UP_MS;) {
        up = tl_redis_connect(store->redis, &err) && test_redis_ping(store->redis, &err);
        loading = loading || (!up && err.kind == TL_ERR_LOADING);
        assert_true(up || err.kind == TL_ERR_LOADING || err.kind == TL_ERR_CONNECT);
    }
    assert_true(up);
    assert_true(loading);
    assert_int_equal(test_redis_number(store->redis, "GET 5000"), 5000);
}

/* ---- broken and silent connections ---- */

static void after_a_restart_it_connects_again(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    uint64_t epoch = tl_redis_epoch(store->redis);
    test_redis_kill(store->server);
    assert_false(test_redis_ping(store->redis, &err));
    assert_int_equal(err.kind, TL_ERR_CONNECT);
    assert_false(tl_redis_connected(store->redis));
    assert_false(test_redis_ping(store->redis, &err)); /* still closed */
    assert_int_equal(err.kind, TL_ERR_CONNECT);
    assert_null(tl_redis_next(store->redis, &err));
    assert_false(tl_redis_connect(store->redis, &err));
    assert_int_equal(err.kind, TL_ERR_CONNECT);
    assert_int_equal(tl_redis_epoch(store->redis), epoch);
    test_redis_restart(store->server);
    assert_true(tl_redis_connect(store->redis, &err));
    assert_int_equal(tl_redis_epoch(store->redis), epoch + 1);
    assert_true(tl_redis_connect(store->redis, &err)); /* it is open already */
    assert_int_equal(tl_redis_epoch(store->redis), epoch + 1);
    assert_true(test_redis_ping(store->redis, &err));
}

static void too_many_clients_is_a_connect_error(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    tl_reply_free(test_redis_call(store->redis, "CONFIG SET maxclients 1"));
    struct tl_redis *other = test_redis_open(test_redis_url(store->server), GIVE_UP_MS);
    if (tl_redis_connect(other, &err))
        assert_false(test_redis_ping(other, &err));
    assert_int_equal(err.kind, TL_ERR_CONNECT);
    tl_redis_free(&other);
}

static void silence_is_a_timeout_and_closes(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    struct tl_redis *hasty = test_redis_open(test_redis_url(store->server), HASTY_MS);
    assert_true(tl_redis_connect(hasty, &err));
    assert_true(test_redis_ping(hasty, &err));
    test_redis_freeze(store->server);
    int64_t began = tl_clock_ms();
    assert_false(test_redis_ping(hasty, &err));
    assert_in_range(tl_clock_ms() - began, HASTY_MS - 10, GIVE_UP_MS);
    assert_int_equal(err.kind, TL_ERR_TIMEOUT);
    assert_non_null(strstr(err.text, "1000 ms"));
    assert_false(tl_redis_connected(hasty));
    test_redis_thaw(store->server);
    assert_true(tl_redis_connect(hasty, &err));
    assert_true(test_redis_ping(hasty, &err)); /* the late answer was for the closed connection */
    tl_redis_free(&hasty);
}

/* How long a frozen node of a cluster was waited for, as the error tells. */
static int64_t wait_in_vain(struct tl_redis *node)
{
    struct tl_error err = {0};
    assert_true(tl_redis_connect(node, &err)); /* the kernel does that */
    assert_false(test_redis_ping(node, &err));
    assert_int_equal(err.kind, TL_ERR_TIMEOUT);
    const char *within = strstr(err.text, "within ");
    assert_non_null(within);
    return strtoll(within + strlen("within "), NULL, 10);
}

/* Else one that has become slower would never be waited for long enough. Both figures are counted
 * in tenths. */
static void a_node_that_was_waited_for_in_vain_gets_twice_that_time(void **state)
{
    struct test_store *store = *state;
    struct tl_redis *node = test_redis_open(test_redis_url(store->server), GIVE_UP_MS);
    tl_redis_set_node(node);
    assert_true(tl_redis_connect(node, NULL));
    /* So long it is waited for as for the only store: what it needs is not known yet. */
    for (int64_t until_ms = tl_clock_ms() + 5100; tl_clock_ms() < until_ms; usleep(10000))
        assert_true(test_redis_ping(node, NULL));
    assert_true(test_redis_ping(node, NULL));
    test_redis_freeze(store->server);
    int64_t began_ms = tl_clock_ms(), first_ms = wait_in_vain(node);
    int64_t took_ms = tl_clock_ms() - began_ms;
    assert_in_range(first_ms, 500, GIVE_UP_MS / 4);
    assert_in_range(wait_in_vain(node), 500 + 2 * first_ms - 10, 500 + 2 * took_ms);
    test_redis_thaw(store->server);
    tl_redis_free(&node);
}

static struct tl_reply *block(struct tl_redis *redis, int64_t block_ms, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_strs(&args, "XREAD", "BLOCK", NULL);
    tl_args_int(&args, block_ms);
    tl_args_strs(&args, "STREAMS", "nothing", "$", NULL);
    struct tl_reply *reply = tl_redis_call_blocking(redis, &args, block_ms, err);
    tl_args_free(&args);
    return reply;
}

static void a_blocking_command_may_exceed_the_timeout(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    struct tl_redis *hasty = test_redis_open(test_redis_url(store->server), HASTY_MS);
    assert_true(tl_redis_connect(hasty, &err));
    struct tl_reply *reply = block(hasty, HASTY_MS + 500, &err);
    if (reply == NULL)
        fail_msg("%s", err.text);
    assert_int_equal(tl_reply_type(reply), TL_REPLY_NIL);
    tl_reply_free(reply);
    tl_redis_free(&hasty);
}

static void after_a_blocking_command_the_timeout_is_the_usual_one(void **state)
{
    struct test_store *store = *state;
    struct tl_error err = {0};
    struct tl_redis *hasty = test_redis_open(test_redis_url(store->server), HASTY_MS);
    assert_true(tl_redis_connect(hasty, &err));
    tl_reply_free(test_redis_call(store->redis, "XADD nothing 1-1 a b"));
    struct tl_args args = {0};
    tl_args_strs(&args, "XREAD", "BLOCK", "60000", "STREAMS", "nothing", "0", NULL);
    struct tl_reply *reply = tl_redis_call_blocking(hasty, &args, 60000, &err); /* at once */
    tl_args_free(&args);
    assert_non_null(reply);
    tl_reply_free(reply);
    test_redis_freeze(store->server);
    assert_false(test_redis_ping(hasty, &err));
    assert_int_equal(err.kind, TL_ERR_TIMEOUT);
    assert_non_null(strstr(err.text, "within 1000 ms"));
    test_redis_thaw(store->server);
    tl_redis_free(&hasty);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(error_replies_have_kinds, test_store_open,
                                        test_store_close),
        cmocka_unit_test_setup_teardown(who_says_to_be_a_replica_is_left, test_store_open,
                                        test_store_close),
        cmocka_unit_test_setup_teardown(a_replica_is_left_until_it_is_a_master, test_store_open,
                                        test_store_close),
        cmocka_unit_test_setup_teardown(a_reader_leaves_a_replica_too, test_store_open,
                                        test_store_close),
        cmocka_unit_test_setup_teardown(at_the_memory_limit_it_is_oom, test_store_open,
                                        test_store_close),
        cmocka_unit_test_setup_teardown(a_store_that_cannot_save_is_misconf, test_store_open,
                                        test_store_close),
        cmocka_unit_test_setup_teardown(a_loading_store_is_an_error_of_its_own,
                                        test_store_open_kept, test_store_close),
        cmocka_unit_test_setup_teardown(after_a_restart_it_connects_again, test_store_open,
                                        test_store_close),
        cmocka_unit_test_setup_teardown(too_many_clients_is_a_connect_error, test_store_open,
                                        test_store_close),
        cmocka_unit_test_setup_teardown(silence_is_a_timeout_and_closes, test_store_open,
                                        test_store_close),
        cmocka_unit_test_setup_teardown(a_node_that_was_waited_for_in_vain_gets_twice_that_time,
                                        test_store_open, test_store_close),
        cmocka_unit_test_setup_teardown(a_blocking_command_may_exceed_the_timeout, test_store_open,
                                        test_store_close),
        cmocka_unit_test_setup_teardown(after_a_blocking_command_the_timeout_is_the_usual_one,
                                        test_store_open, test_store_close),
    };
    return test_side_by_side(tests, NULL, NULL);
}
