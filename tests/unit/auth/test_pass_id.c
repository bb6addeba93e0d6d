/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/auth/pass.h"

static void an_admission_has_an_id_of_its_own(void **state)
{
    (void)state;
    char id[TL_PASS_ID_MAX + 1];
    char other[TL_PASS_ID_MAX + 1];
    tl_pass_id("concert", 7, 42, id);
    assert_int_equal(strlen(id), 22);
    tl_pass_id("concert", 7, 42, other);
    assert_string_equal(id, other);
    tl_pass_id("concert", 7, 43, other);
    assert_string_not_equal(id, other);
    tl_pass_id("concert", 8, 42, other);
    assert_string_not_equal(id, other);
    tl_pass_id("concert2", 7, 42, other);
    assert_string_not_equal(id, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_admission_has_an_id_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
