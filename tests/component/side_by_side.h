/* SPDX-License-Identifier: Apache-2.0 */
/* For files whose tests wait more than they compute. */
#ifndef TL_TEST_SIDE_BY_SIDE_H
#define TL_TEST_SIDE_BY_SIDE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Like cmocka_run_group_tests, with a process for each test, several at a time. Each has its own
 * group setup and teardown, and so a store of its own. */
#define test_side_by_side(tests, setup, teardown)                                                  \
    test_processes(#tests, tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)
int test_processes(const char *name, const struct CMUnitTest *tests, size_t n,
                   CMFixtureFunction setup, CMFixtureFunction teardown);

#endif
