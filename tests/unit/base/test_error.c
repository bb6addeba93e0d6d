/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/error.h"

static void test_set(void **state)
{
    (void)state;
    struct tl_error err = {0};
    assert_false(tl_error_set(&err, TL_ERR_CONNECT, "cannot reach %s:%d", "redis", 6379));
    assert_int_equal(err.kind, TL_ERR_CONNECT);
    assert_string_equal(err.text, "cannot reach redis:6379");
    assert_false(tl_error_set(&err, TL_ERR_OOM, "short"));
    assert_int_equal(err.kind, TL_ERR_OOM);
    assert_string_equal(err.text, "short");
}

static void test_prefix(void **state)
{
    (void)state;
    struct tl_error err = {0};
    tl_error_set(&err, TL_ERR_TIMEOUT, "no answer in %d ms", 500);
    assert_false(tl_error_prefix(&err, "queue %s", "concert"));
    assert_false(tl_error_prefix(&err, "dispatcher"));
    assert_int_equal(err.kind, TL_ERR_TIMEOUT);
    assert_string_equal(err.text, "dispatcher: queue concert: no answer in 500 ms");
}

/* Callers that do not need the message pass NULL. */
static void test_null(void **state)
{
    (void)state;
    assert_false(tl_error_set(NULL, TL_ERR_INVALID, "unheard %d", 1));
    assert_false(tl_error_prefix(NULL, "unheard %d", 1));
}

/* Long sentences are cut, never written beyond the end. */
static void test_long_text(void **state)
{
    (void)state;
    struct {
        struct tl_error err;
        char after[8];
    } guarded = {.after = "guard"};
    char text[1000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    const size_t longest = sizeof(guarded.err.text) - 1;

    tl_error_set(&guarded.err, TL_ERR_STORE, "%s", text);
    assert_int_equal(strlen(guarded.err.text), longest);
    tl_error_prefix(&guarded.err, "apply");
    assert_int_equal(strlen(guarded.err.text), longest);
    assert_memory_equal(guarded.err.text, "apply: xxx", 10);
    /* Every length of prefix around the end of the buffer. */
    for (int length = (int)longest - 6; length <= (int)longest + 6; length++) {
        tl_error_set(&guarded.err, TL_ERR_STORE, "sentence");
        tl_error_prefix(&guarded.err, "%.*s", length, text);
        assert_in_range(strlen(guarded.err.text), longest - 6, longest);
        assert_memory_equal(guarded.err.text, text, longest - 6);
    }
    assert_string_equal(guarded.after, "guard");
}

static void test_kind_names(void **state)
{
    (void)state;
    assert_string_equal(tl_error_kind_name(TL_OK), "ok");
    assert_string_equal(tl_error_kind_name(TL_ERR_CONNECT), "connect");
    assert_string_equal(tl_error_kind_name(TL_ERR_OOM), "oom");
    assert_string_equal(tl_error_kind_name(TL_ERR_STORE), "store");
    assert_string_equal(tl_error_kind_name((enum tl_error_kind)(TL_ERR_STORE + 1)), "unknown");
    assert_string_equal(tl_error_kind_name((enum tl_error_kind)12345), "unknown");
    /* Each kind has a name of its own, fit to be a metric's label. */
    for (int a = TL_OK; a <= TL_ERR_STORE; a++) {
        const char *name = tl_error_kind_name((enum tl_error_kind)a);
        assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz"), strlen(name));
        assert_string_not_equal(name, "unknown");
        for (int b = TL_OK; b < a; b++)
            assert_string_not_equal(name, tl_error_kind_name((enum tl_error_kind)b));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_null),       cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_kind_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
