/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of answers: flat JSON objects and server-sent events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/json_text.h"
#include "worker/http/sse.h"

static size_t write_object(char *text, size_t size)
{
    struct tl_json json;
    tl_json_begin(&json, text, size);
    tl_json_string(&json, "s", "a\"b\\c\x01\x7f\xc3\xa9");
    tl_json_uint(&json, "zero", 0);
    tl_json_uint(&json, "max", UINT64_MAX);
    tl_json_bool(&json, "yes", true);
    tl_json_bool(&json, "no", false);
    tl_json_array(&json, "none");
    tl_json_array_end(&json);
    tl_json_array(&json, "two");
    tl_json_item(&json, "x");
    tl_json_item(&json, "");
    tl_json_array_end(&json);
    return tl_json_end(&json);
}

static const char object[] = "{\"s\":\"a\\\"b\\\\c\\u0001\\u007f\xc3\xa9\",\"zero\":0,"
                             "\"max\":18446744073709551615,\"yes\":true,\"no\":false,"
                             "\"none\":[],\"two\":[\"x\",\"\"]}\n";

static void an_object_is_written_with_all_kinds_of_members(void **state)
{
    (void)state;
    char text[512];
    size_t length = write_object(text, sizeof(text));
    assert_int_equal(length, sizeof(object) - 1);
    assert_memory_equal(text, object, length);

    struct tl_json empty;
    tl_json_begin(&empty, text, sizeof(text));
    assert_int_equal(tl_json_end(&empty), 3);
    assert_memory_equal(text, "{}\n", 3);
}

static void what_does_not_fit_has_no_length(void **state)
{
    (void)state;
    char text[sizeof(object)];
    for (size_t size = 0; size < sizeof(object) - 1; size++) {
        memset(text, '#', sizeof(text));
        assert_int_equal(write_object(text, size), 0);
        assert_int_equal(text[size], '#'); /* nothing behind the buffer */
    }
    assert_int_equal(write_object(text, sizeof(object) - 1), sizeof(object) - 1);
}

static void the_bound_on_an_escaped_text_holds(void **state)
{
    (void)state;
    char text[64];
    struct tl_json json;
    tl_json_begin(&json, text, sizeof(text));
    size_t before = strlen("{\"s\":\"\"}\n");
    tl_json_string(&json, "s", "\x01\x02\x03\x1f\x7f");
    assert_int_equal(tl_json_end(&json), before + TL_JSON_ESCAPED_MAX(5));
}

static void an_event_is_one_line_of_data(void **state)
{
    (void)state;
    char text[64];
    static const char expected[] = "event: position\ndata: {\"a\":1}\n\n";
    assert_int_equal(tl_sse_event(text, sizeof(text), "position", "{\"a\":1}\n", 8),
                     sizeof(expected) - 1);
    assert_string_equal(text, expected);
    assert_int_equal(tl_sse_event(text, sizeof(text), "position", "{\"a\":1} and more", 7),
                     sizeof(expected) - 1);
    assert_string_equal(text, expected);
    assert_int_equal(tl_sse_event(text, sizeof(expected), "position", "{\"a\":1}", 7),
                     sizeof(expected) - 1);
    assert_int_equal(tl_sse_event(text, sizeof(expected) - 1, "position", "{\"a\":1}", 7), 0);
}

static void clients_come_back_spread_over_time(void **state)
{
    (void)state;
    unsigned low = UINT32_MAX;
    unsigned high = 0;
    for (int i = 0; i < 200; i++) {
        char text[32];
        char *end;
        size_t length = tl_sse_retry(text, sizeof(text), 2000, 3000);
        assert_int_equal(length, strlen(text));
        assert_memory_equal(text, "retry: ", 7);
        unsigned ms = (unsigned)strtoul(text + 7, &end, 10);
        assert_string_equal(end, "\n\n");
        assert_in_range(ms, 2000, 4999);
        low = ms < low ? ms : low;
        high = ms > high ? ms : high;
    }
    assert_true(high - low > 1500); /* by chance once in 10^50 */
    char small[8];
    assert_int_equal(tl_sse_retry(small, sizeof(small), 2000, 3000), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_is_written_with_all_kinds_of_members),
        cmocka_unit_test(what_does_not_fit_has_no_length),
        cmocka_unit_test(the_bound_on_an_escaped_text_holds),
        cmocka_unit_test(an_event_is_one_line_of_data),
        cmocka_unit_test(clients_come_back_spread_over_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
