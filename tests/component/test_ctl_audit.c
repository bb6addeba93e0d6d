#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/reply.h"
#include "ctl/audit.h"
#include "redis_server.h"

struct fixture {
    struct test_redis *server;
    struct tl_redis *redis;
    struct tl_keys keys;
    struct tl_audit_report report;
};

static struct fixture fixture;

static int setup_server(void **state)
{
    (void)state;
    fixture.server = test_redis_start();
    fixture.redis = test_redis_connect(fixture.server);
    return 0;
}

static int teardown_server(void **state)
{
    (void)state;
    tl_redis_free(&fixture.redis);
    test_redis_stop(&fixture.server);
    return 0;
}

/* Runs a command in which %s is the name of the key. */
static void change(enum tl_key key, const char *before, const char *after)
{
    char words[512];
    snprintf(words, sizeof(words), "%s %s %s", before, fixture.keys.names[key], after);
    tl_reply_free(test_redis_call(fixture.redis, words));
}

/* A queue in order: capacity 3; b and c are in (numbers 2 and 3); d (4) and v (lane 1, number 1)
 * wait; a has finished. */
static int setup(void **state)
{
    (void)state;
    tl_reply_free(test_redis_call(fixture.redis, "FLUSHALL"));
    test_queue(fixture.redis, "capacity=3", &fixture.keys);
    change(TL_KEY_ACTIVE, "ZADD", "99000 b 99000 c");
    change(TL_KEY_SESSIONS, "HSET", "b 2:1000:1 c 3:1000:0");
    change(TL_KEY_WAITING, "ZADD", "4 d 281474976710657 v");
    change(TL_KEY_STATE, "HSET",
           "waiting 2 active 2 joined 5 admitted 3 completed 1 admit_capacity 3");
    return 0;
}

static void audit(void)
{
    struct tl_error err = {0};
    if (!tl_audit_queue(fixture.redis, &fixture.keys, &fixture.report, &err))
        fail_msg("%s", err.text);
}

/* Exactly one violation, of this rule, that says this. */
static void assert_violation(int rule, const char *part)
{
    audit();
    if (fixture.report.n_violations != 1)
        fail_msg("%d violations, first: %s", (int)fixture.report.n_violations,
                 fixture.report.listed[0].text);
    assert_int_equal(fixture.report.listed[0].rule, rule);
    if (strstr(fixture.report.listed[0].text, part) == NULL)
        fail_msg("\"%s\" does not hold \"%s\"", fixture.report.listed[0].text, part);
}

static void test_in_order(void **state)
{
    (void)state;
    audit();
    assert_int_equal(fixture.report.n_violations, 0);
    assert_int_equal(fixture.report.waiting, 2);
    assert_int_equal(fixture.report.active, 2);
    assert_string_equal(fixture.report.note, "");
}

static void test_no_such_queue(void **state)
{
    (void)state;
    struct tl_error err = {0};
    tl_reply_free(test_redis_call(fixture.redis, "FLUSHALL"));
    assert_false(tl_audit_queue(fixture.redis, &fixture.keys, &fixture.report, &err));
    assert_int_equal(err.kind, TL_ERR_NOQUEUE);
}

static void test_counter_of_waiting(void **state)
{
    (void)state;
    change(TL_KEY_STATE, "HSET", "waiting 3 joined 6");
    assert_violation(1, "counter waiting is 3, but 2 are waiting");
}

static void test_counter_of_active(void **state)
{
    (void)state;
    change(TL_KEY_STATE, "HSET", "active 1 joined 4");
    assert_violation(1, "counter active is 1, but 2 are active");
}

static void test_session_without_visitor(void **state)
{
    (void)state;
    change(TL_KEY_SESSIONS, "HSET", "ghost 1:1000:1");
    assert_violation(1, "2 are active, but there are 3 sessions");
}

static void test_visitor_without_session(void **state)
{
    (void)state;
    change(TL_KEY_SESSIONS, "HDEL", "b");
    change(TL_KEY_SESSIONS, "HSET", "ghost 1:1000:1");
    assert_violation(1, "visitor \"b\" is active, but has no readable session");
}

static void test_negative_counter(void **state)
{
    (void)state;
    change(TL_KEY_STATE, "HSET", "left -1 completed 2");
    assert_violation(1, "counter left is negative: -1");
}

static void test_above_capacity(void **state)
{
    (void)state;
    change(TL_KEY_CONFIG, "HSET", "capacity 1");
    change(TL_KEY_STATE, "HSET", "admit_capacity 1");
    assert_violation(2, "2 are active, but the capacity is 1 and was 1 at the last admission");
}

static void test_lowered_capacity_is_no_violation(void **state)
{
    (void)state;
    change(TL_KEY_CONFIG, "HSET", "capacity 1");
    audit();
    assert_int_equal(fixture.report.n_violations, 0);
    assert_non_null(strstr(fixture.report.note, "above the capacity of 1"));
}

static void test_waiting_and_active(void **state)
{
    (void)state;
    change(TL_KEY_WAITING, "ZADD", "5 c");
    change(TL_KEY_STATE, "HSET", "waiting 3 joined 6");
    assert_violation(3, "visitor \"c\" is both waiting and active");
}

static void test_passed_in_the_lane(void **state)
{
    (void)state;
    change(TL_KEY_SESSIONS, "HSET", "c 9:1000:0");
    assert_violation(
        4, "visitor \"c\" (number 9 of lane 0) is active, while \"d\" (number 4) still waits");
}

/* Lane 1 waits behind lane 0, whatever the numbers. */
static void test_lanes_are_judged_apart(void **state)
{
    (void)state;
    change(TL_KEY_SESSIONS, "HSET", "c 281474976710656:1000:0"); /* lane 1, number 0: before v */
    audit();
    assert_int_equal(fixture.report.n_violations, 0);
    change(TL_KEY_SESSIONS, "HSET", "c 281474976710658:1000:0"); /* lane 1, number 2: after v */
    assert_violation(4, "(number 2 of lane 1) is active, while \"v\" (number 1) still waits");
}

static void test_a_visitor_is_unaccounted_for(void **state)
{
    (void)state;
    change(TL_KEY_STATE, "HSET", "joined 7");
    assert_violation(5,
                     "7 joined, but waiting 2 + active 2 + completed 1 + expired 0 + left 0 is 5");
}

/* More visitors than fit into one page, and more violations than are listed. */
static void test_many_active(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    change(TL_KEY_STATE, "HSET", "active 3002 joined 3005 admit_capacity 5000");
    change(TL_KEY_CONFIG, "HSET", "capacity 5000");
    for (int i = 0; i < MANY; i++) {
        char words[64];
        snprintf(words, sizeof(words), "99000 visitor-%d", i);
        change(TL_KEY_ACTIVE, "ZADD", words);
        snprintf(words, sizeof(words), "visitor-%d %d:1000:1", i, 100 + i); /* all after d */
        change(TL_KEY_SESSIONS, "HSET", words);
    }
    audit();
    assert_int_equal(fixture.report.n_violations, MANY);
    assert_int_equal(fixture.report.n_listed, TL_AUDIT_LISTED_MAX);
    assert_int_equal(fixture.report.listed[0].rule, 4);
    change(TL_KEY_WAITING, "ZREM", "d");
    change(TL_KEY_STATE, "HSET", "waiting 1 left 1");
    audit();
    assert_int_equal(fixture.report.n_violations, 0);
    assert_int_equal(fixture.report.active, MANY + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_in_order, setup),
        cmocka_unit_test_setup(test_no_such_queue, setup),
        cmocka_unit_test_setup(test_counter_of_waiting, setup),
        cmocka_unit_test_setup(test_counter_of_active, setup),
        cmocka_unit_test_setup(test_session_without_visitor, setup),
        cmocka_unit_test_setup(test_visitor_without_session, setup),
        cmocka_unit_test_setup(test_negative_counter, setup),
        cmocka_unit_test_setup(test_above_capacity, setup),
        cmocka_unit_test_setup(test_lowered_capacity_is_no_violation, setup),
        cmocka_unit_test_setup(test_waiting_and_active, setup),
        cmocka_unit_test_setup(test_passed_in_the_lane, setup),
        cmocka_unit_test_setup(test_lanes_are_judged_apart, setup),
        cmocka_unit_test_setup(test_a_visitor_is_unaccounted_for, setup),
        cmocka_unit_test_setup(test_many_active, setup),
    };
    return cmocka_run_group_tests(tests, setup_server, teardown_server);
}
