/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/named.h"
#include "tests/unit/random.h"

enum { NAMES = 200, STEPS = 20000 };

/* Against a flag for each name. */
static void it_holds_what_was_added_in_order(void **state)
{
    static char names[NAMES][8];
    bool there[NAMES] = {false};
    struct tl_named list = {0};
    size_t n = 0;
    (void)state;
    for (size_t i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof(names[i]), "q%zu", i);
    uint64_t random = random_seed("test_named");
    for (int step = 0; step < STEPS; step++) {
        size_t i = random_below(&random, NAMES);
        assert_ptr_equal(tl_named_find(&list, names[i]), there[i] ? names[i] : NULL);
        if (there[i])
            assert_ptr_equal(tl_named_remove(&list, names[i]), names[i]);
        else
            assert_true(tl_named_add(&list, names[i], names[i]));
        n = there[i] ? n - 1 : n + 1;
        there[i] = !there[i];
        assert_int_equal(list.n, n);
        for (size_t k = 1; k < n; k++)
            assert_true(strcmp(list.all[k - 1].name, list.all[k].name) < 0);
    }
    assert_null(tl_named_remove(&list, "none"));
    tl_named_free(&list);
    assert_null(tl_named_find(&list, names[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_holds_what_was_added_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
