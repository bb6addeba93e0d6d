/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "side_by_side.h"

enum { AT_A_TIME = 8 };

static void start(const char *name, const struct CMUnitTest *tests, size_t n, size_t which,
                  CMFixtureFunction setup, CMFixtureFunction teardown)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        perror("fork");
        exit(1);
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        cmocka_set_test_filter(tests[which].name);
        exit(_cmocka_run_group_tests(name, tests, n, setup, teardown) == 0 ? 0 : 1);
    }
}

/* Did the next that ends succeed? */
static bool ends_well(void)
{
    int status = -1;
    return wait(&status) > 0 && status == 0;
}

int test_processes(const char *name, const struct CMUnitTest *tests, size_t n,
                   CMFixtureFunction setup, CMFixtureFunction teardown)
{
    int failed = 0;
    for (size_t i = 0; i < n; i++) {
        if (i >= AT_A_TIME && !ends_well())
            failed++;
        start(name, tests, n, i, setup, teardown);
    }
    for (size_t i = 0; i < n && i < AT_A_TIME; i++)
        failed += ends_well() ? 0 : 1;
    return failed;
}
