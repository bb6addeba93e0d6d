/* SPDX-License-Identifier: Apache-2.0 */
/* The calls about operators' tokens, about blocked addresses and signs of misuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/store/reply.h"
#include "control_world.h"

#define STATS "/v1/admin/queues/q/stats"

static void the_limit_of_tokens_is_told_apart(void **state)
{
    struct test_control *world = *state;
    const char *first = "{\"name\": \"tokens\", \"role\": \"viewer\"}";
    char body[64];
    assert_int_equal(test_call(world, "POST", "/v1/admin/tokens", first), 201);
    assert_int_equal(test_call(world, "POST", "/v1/admin/tokens", first), 409);
    assert_string_equal(test_member(world, "type"), "/problems/conflict");
    for (int i = 1; i <= TL_TOKENS_MAX; i++) {
        snprintf(body, sizeof(body), "{\"name\": \"t%d\", \"role\": \"viewer\"}", i);
        assert_int_equal(test_call(world, "POST", "/v1/admin/tokens", body),
                         i < TL_TOKENS_MAX ? 201 : 409);
    }
    assert_string_equal(test_member(world, "type"), "/problems/limit-reached");
}

static void a_block_has_an_end_or_none(void **state)
{
    struct test_control *world = *state;
    static const struct {
        const char *member;
        int status;
        const char *for_seconds;
    } rows[] = {{", \"for_seconds\": 0", 400, "(none)"},
                {", \"for_seconds\": -1", 400, "(none)"},
                {", \"for_seconds\": 1", 201, "1"},
                {", \"for_seconds\": null", 201, "null"},
                {"", 201, "null"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char body[64];
        snprintf(body, sizeof(body), "{\"prefix\": \"192.0.2.0/24\"%s}", rows[i].member);
        assert_int_equal(test_call(world, "POST", "/v1/admin/blocks", body), rows[i].status);
        assert_string_equal(test_member(world, "for_seconds"), rows[i].for_seconds);
    }
    assert_int_equal(test_call(world, "GET", "/v1/admin/blocks", NULL), 200);
    assert_string_equal(test_member(world, "blocks.0.until"), "null");
}

/* What a worker saw (common/store/signs.h), by a text of it. */
static void note_signs(struct tl_redis *redis, const char *id, const char *text)
{
    struct tl_args args = {0};
    tl_args_strs(&args, "XADD", "tl:{q}:signs", id, "d", text, NULL);
    struct tl_reply *reply = tl_redis_call(redis, &args, NULL);
    assert_non_null(reply);
    tl_reply_free(reply);
    tl_args_free(&args);
}

static void signs_of_misuse_are_added_up(void **state)
{
    struct test_control *world = *state;
    struct tl_redis *redis = world->store->redis;
    static const char *const senseless[] = {
        "",
        "1",
        "1 2 x",
        "1 2 -3",
        "0 0 0 joins",
        "0 0 0 joins 192.0.2.7",
        "0 0 0 joins 192.0.2.7 x",
        "0 0 0 joins \033[2J 5",
        "0 0 0 others 192.0.2.7 5",
        "0 0 0 joins 192.0.2.7 100000000000000000000",
    };
    assert_int_equal(test_call(world, "POST", "/v1/admin/queues", "{\"name\": \"q\"}"), 201);
    assert_int_equal(test_call(world, "GET", STATS, NULL), 200);
    assert_string_equal(test_member(world, "signs.joins"), "{}");
    assert_string_equal(test_member(world, "signs.checks_failed"), "0");
    note_signs(redis, "1-0", "9 9 9 joins 192.0.2.9 99"); /* long ago */
    note_signs(redis, "*", "120 2 1 joins 192.0.2.7 77 failed 2001:db8:0:100::/56 65");
    note_signs(redis, "*", "3 0 0 joins 192.0.2.7 10 failed 2001:db8:0:100::/56 1");
    for (size_t i = 0; i < sizeof(senseless) / sizeof(senseless[0]); i++)
        note_signs(redis, "*", senseless[i]);
    assert_int_equal(test_call(world, "GET", STATS, NULL), 200);
    assert_string_equal(test_member(world, "signs.joins"), "{\"192.0.2.7\":87}");
    assert_string_equal(test_member(world, "signs.failures"), "{\"2001:db8:0:100::/56\":66}");
    assert_string_equal(test_member(world, "signs.checks_failed"), "123");
    assert_string_equal(test_member(world, "signs.sessions_shared"), "2");
    assert_string_equal(test_member(world, "signs.sessions_fast"), "1");
    /* Those with most are named. */
    note_signs(redis, "*", "0 0 0 joins 192.0.2.1 5 joins 192.0.2.2 90 joins 192.0.2.3 7");
    assert_int_equal(test_call(world, "GET", "/v1/admin/queues", NULL), 200);
    assert_string_equal(test_member(world, "queues.0.queue"), "q");
    const json_t *first = json_array_get(json_object_get(world->answer.body, "queues"), 0);
    const json_t *joins = json_object_get(json_object_get(first, "signs"), "joins");
    assert_int_equal(json_object_size(joins), 3);
    assert_int_equal(json_integer_value(json_object_get(joins, "192.0.2.2")), 90);
    assert_int_equal(json_integer_value(json_object_get(joins, "192.0.2.7")), 87);
    assert_int_equal(json_integer_value(json_object_get(joins, "192.0.2.3")), 7);
    /* Of another type: the other numbers are worth having. */
    test_redis_ask(redis, "DEL tl:{q}:signs");
    test_redis_ask(redis, "SET tl:{q}:signs x");
    assert_int_equal(test_call(world, "GET", STATS, NULL), 200);
    assert_string_equal(test_member(world, "signs"), "null");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_limit_of_tokens_is_told_apart, test_control_clean),
        cmocka_unit_test_setup(a_block_has_an_end_or_none, test_control_clean),
        cmocka_unit_test_setup(signs_of_misuse_are_added_up, test_control_clean),
    };
    return cmocka_run_group_tests_name("control_access", tests, test_control_open,
                                       test_control_close);
}
