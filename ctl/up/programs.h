/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs that `tellerline up` runs: kept running by the supervisor (common/role), their
 * output printed line by line with the name of the program in front.
 *
 * Each program leads a process group of its own, so that Ctrl-C reaches only the parent.
 */
#ifndef TL_CTL_UP_PROGRAMS_H
#define TL_CTL_UP_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/error.h"

struct tl_programs;

struct tl_program_start {
    const char *role;        /* borrowed */
    const char *const *argv; /* ended by NULL, copied; argv[0] is the path */
    int keep_fd;             /* stays open in the program; -1: none */
    const int *listen_fds;   /* passed to the program, and kept open here; borrowed */
    unsigned n_listen_fds;
    bool quiet;            /* what it writes until all are up is printed only if it ends */
    unsigned stop_stage;   /* programs of a lower stage stop first */
    int64_t stop_limit_ms; /* then it is killed */
};

/* output gets all lines; borrowed. */
struct tl_programs *tl_programs_new(FILE *output, struct tl_error *err);
/* Kills what still runs. */
void tl_programs_free(struct tl_programs **programs);

/* Adds a program; the next turn starts it, with the environment of the parent at that time. */
bool tl_programs_add(struct tl_programs *programs, const struct tl_program_start *start,
                     struct tl_error *err);

/* Waits up to timeout_ms for something to happen and handles it. False when waiting fails, or when
 * a program could not be started or has exited before tl_programs_settled. (A program that is
 * killed by a signal is always started again.) */
bool tl_programs_turn(struct tl_programs *programs, int64_t timeout_ms, struct tl_error *err);

/* All programs are up: from now on, each is started again when it ends. */
void tl_programs_settled(struct tl_programs *programs);

/* How often the operator asked to stop: tl_supervisor_stop_asked. */
unsigned tl_programs_stop_asked(const struct tl_programs *programs);

/* Stops all programs, stage by stage, and waits until they are gone. Kills those that are late, and
 * all when the operator asks a second time. False when a program had to be killed. */
bool tl_programs_stop(struct tl_programs *programs);

/* Prints a line of the parent itself. */
void tl_programs_say(struct tl_programs *programs, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
