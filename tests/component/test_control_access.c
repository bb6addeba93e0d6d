/* SPDX-License-Identifier: Apache-2.0 */
/* The calls about operators' tokens and about blocked addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "control_world.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_limit_of_tokens_is_told_apart, test_control_clean),
        cmocka_unit_test_setup(a_block_has_an_end_or_none, test_control_clean),
    };
    return cmocka_run_group_tests_name("control_access", tests, test_control_open,
                                       test_control_close);
}
