/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program to its end, without a shell between. */
#ifndef TL_TEST_RUN_PROGRAM_H
#define TL_TEST_RUN_PROGRAM_H

#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* With up to three arguments (NULL: no more). Its exit status, or -1 if it did not run or was
 * killed. */
static inline int run_program(const char *name, const char *first, const char *second,
                              const char *third)
{
    /* posix_spawnp changes none of them. */
    char *const argv[] = {(char *)name, (char *)first, (char *)second, (char *)third, NULL};
    pid_t pid = 0;
    int status = 0;
    if (posix_spawnp(&pid, name, NULL, NULL, argv, environ) != 0)
        return -1;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
