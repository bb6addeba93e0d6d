/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/calls/calls.h"

static json_t *read_words(const char *first, const char *second, struct tl_error *err)
{
    char *words[] = {(char *)(uintptr_t)first, (char *)(uintptr_t)second};
    *err = (struct tl_error){0};
    return tl_assignments_read(second != NULL ? 2 : 1, words, err);
}

static void test_values_are_texts(void **state)
{
    (void)state;
    struct tl_error err;
    json_t *object = read_words("session_sliding=true", "target_url=true", &err);
    assert_string_equal(tl_json_text(object, "session_sliding"), "true");
    assert_string_equal(tl_json_text(object, "target_url"), "true");
    json_decref(object);
    object = read_words("rate.admit=10", "session_sliding=maybe", &err);
    assert_string_equal(tl_json_text(object, "rate.admit"), "10");
    assert_string_equal(tl_json_text(object, "session_sliding"), "maybe");
    json_decref(object);
    object = read_words("closed_text.en=a=b", "lane_weights=", &err);
    assert_string_equal(tl_json_text(object, "closed_text.en"), "a=b");
    assert_string_equal(tl_json_text(object, "lane_weights"), "");
    assert_int_equal(json_object_size(object), 2);
    json_decref(object);
}

static void test_other_words_are_refused(void **state)
{
    (void)state;
    struct tl_error err;
    assert_null(read_words("capacity", NULL, &err));
    assert_non_null(strstr(err.text, "SETTING=VALUE"));
    assert_null(read_words("=5", NULL, &err));
    assert_null(read_words("capacity=1", "capacity=2", &err));
    assert_non_null(strstr(err.text, "twice"));
    assert_null(read_words("closed_text.en=\xff", NULL, &err));
    assert_int_equal(err.kind, TL_ERR_INVALID);
}

enum { LINES_MAX = 200 };

static void show_one(void *context, const char *name, const json_t *value)
{
    char text[40];
    char *lines = context;
    size_t used = strlen(lines);
    tl_json_show(value, text, sizeof(text));
    snprintf(lines + used, LINES_MAX - used, "%s=%s;", name, text);
}

static void test_objects_as_lines(void **state)
{
    (void)state;
    char lines[LINES_MAX] = "";
    json_t *object =
        json_pack("{s:i, s:{s:i, s:s}, s:[s,s], s:b, s:n, s:f}", "capacity", 5, "rate", "admit", 7,
                  "every", "10s", "lanes", "a", "b", "sliding", 1, "at", "share", 0.25);
    tl_json_flat(object, show_one, lines);
    assert_string_equal(
        lines, "capacity=5;rate.admit=7;rate.every=10s;lanes=a,b;sliding=true;at=;share=0.2;");
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_texts),
        cmocka_unit_test(test_other_words_are_refused),
        cmocka_unit_test(test_objects_as_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
