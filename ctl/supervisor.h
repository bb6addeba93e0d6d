/*
 * Programs run side by side under one parent: started, their output printed line by line, started
 * again with a back-off when they die, ended in the order that the caller says.
 *
 * Each child leads a process group of its own, so that Ctrl-C reaches only the parent, and gets
 * SIGTERM when the parent dies, however it dies. While a supervisor exists, SIGCHLD, SIGINT,
 * SIGTERM and SIGHUP are blocked and read from a descriptor; one supervisor per process.
 * Single-threaded.
 */
#ifndef TL_CTL_SUPERVISOR_H
#define TL_CTL_SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/error.h"

struct tl_supervisor;

/* output gets all lines; borrowed. */
struct tl_supervisor *tl_supervisor_new(FILE *output, struct tl_error *err);
/* Kills what still runs. */
void tl_supervisor_free(struct tl_supervisor **supervisor);

/* Starts a program. role is borrowed, argv (ended by NULL; argv[0] is the path) is copied. keep_fd
 * is left open in the child, -1: none. The environment is the parent's. */
bool tl_supervisor_start(struct tl_supervisor *supervisor, const char *role,
                         const char *const argv[], int keep_fd, struct tl_error *err);

/* Waits up to timeout_ms for something to happen, deals with it, starts again what is due. False
 * when the supervisor itself cannot go on, or when a child has ended by itself before
 * tl_supervisor_settled. */
bool tl_supervisor_turn(struct tl_supervisor *supervisor, int64_t timeout_ms, struct tl_error *err);

/* All is up: from now on, whatever ends is started again. Before, a program that exits is a failed
 * start. (One that a signal kills is always started again.) */
void tl_supervisor_settled(struct tl_supervisor *supervisor);

/* SIGINT or SIGTERM has come; how often. What comes within half a second counts as one: many a
 * wrapper passes a Ctrl-C on that the terminal has sent us already. */
unsigned tl_supervisor_stop_asked(const struct tl_supervisor *supervisor);

/* Ends the programs of these roles (ended by NULL) with SIGTERM and waits until they are gone;
 * kills what is left after patience_ms, or at once when asked to stop a second time. False when
 * something had to be killed. */
bool tl_supervisor_stop(struct tl_supervisor *supervisor, const char *const roles[],
                        int64_t patience_ms);

/* Prints a line of the parent's own. */
void tl_supervisor_say(struct tl_supervisor *supervisor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
