/* SPDX-License-Identifier: Apache-2.0 */
/* The passes that a worker keeps: found while they are of the same session and end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "worker/visit/recent.h"

static struct tl_pass pass_of(unsigned number)
{
    struct tl_pass pass = {.generation = 7, .expires = 1795000600};
    tl_pass_id("concert", 7, number, pass.id);
    return pass;
}

static void test_kept_until_something_changes(void **state)
{
    (void)state;
    struct tl_kept_passes *passes = tl_kept_passes_new();
    assert_non_null(passes);
    const struct tl_pass pass = pass_of(1);
    assert_null(tl_kept_passes_find(passes, &pass));
    tl_kept_passes_keep(passes, &pass, "one");
    assert_string_equal(tl_kept_passes_find(passes, &pass), "one");
    struct tl_pass other = pass_of(2);
    assert_null(tl_kept_passes_find(passes, &other));
    other = pass;
    other.expires++; /* the session was extended */
    assert_null(tl_kept_passes_find(passes, &other));
    other = pass;
    other.generation++; /* it came back after a loss */
    assert_null(tl_kept_passes_find(passes, &other));
    tl_kept_passes_keep(passes, &other, "another");
    assert_string_equal(tl_kept_passes_find(passes, &other), "another");
    tl_kept_passes_clear(passes);
    assert_null(tl_kept_passes_find(passes, &other));
    tl_kept_passes_free(&passes);
    assert_null(passes);
    tl_kept_passes_free(&passes);
}

/* Far more sessions than places in the table: what is found is always one's own. */
static void test_bounded(void **state)
{
    (void)state;
    enum { MANY = 50000 };
    struct tl_kept_passes *passes = tl_kept_passes_new();
    char text[32];
    unsigned found = 0;
    assert_non_null(passes);
    for (unsigned i = 0; i < MANY; i++) {
        const struct tl_pass pass = pass_of(i);
        snprintf(text, sizeof(text), "pass %u", i);
        tl_kept_passes_keep(passes, &pass, text);
        assert_string_equal(tl_kept_passes_find(passes, &pass), text);
    }
    for (unsigned i = 0; i < MANY; i++) {
        const struct tl_pass pass = pass_of(i);
        const char *kept = tl_kept_passes_find(passes, &pass);
        snprintf(text, sizeof(text), "pass %u", i);
        if (kept != NULL)
            assert_string_equal(kept, text);
        found += kept != NULL;
    }
    assert_in_range(found, MANY / 10, MANY / 2);
    tl_kept_passes_free(&passes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_until_something_changes),
        cmocka_unit_test(test_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
