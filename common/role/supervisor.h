/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps child processes running: starts them, again with a back-off when they end, kills those
 * whose loop no longer turns, passes SIGHUP on, and stops them in order.
 *
 * Single-threaded, and one per process: it owns the signals (signals.h). The caller's loop waits
 * with tl_supervisor_wait and then calls tl_supervisor_turn.
 */
#ifndef TL_SUPERVISOR_H
#define TL_SUPERVISOR_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/error.h"

enum tl_kill_reason {
    TL_KILL_STUCK, /* no heartbeat for 30 s */
    TL_KILL_DEAF,  /* `deaf` said so */
    TL_KILL_LATE,  /* still running at its stop limit, or tl_supervisor_kill was called */
};

/* One child. All callbacks run in the parent and get `context`. */
struct tl_child {
    void *context;
    /* Starts the process, with tl_supervisor_fork, and returns its id. -1 when that failed, which
     * the callback has reported: it is tried again after the back-off. */
    pid_t (*start)(void *context);
    /* The process is gone; `status` is that of waitpid(2). It will be started again in delay_ms
     * (-1: it was told to stop, so it will not). False: do not start it again. */
    bool (*ended)(void *context, int status, int64_t delay_ms);
    /* The process is about to be killed. */
    void (*killing)(void *context, enum tl_kill_reason reason);
    /* A number that grows as long as the child's loop turns. NULL: the child is not watched. */
    int64_t (*beats)(void *context);
    /* Asked twice a second: does the child no longer take what comes to it, although its loop
     * turns? Then it is killed. NULL: not asked. */
    bool (*deaf)(void *context);
    bool own_group; /* it leads a process group, and all of the group is killed with it */
    /* Children of a lower stage stop first; those of the next are told when they are gone. */
    unsigned stop_stage;
    int stop_signal;       /* 0: SIGTERM */
    int64_t stop_limit_ms; /* from that signal to SIGKILL; INT64_MAX: no limit */
};

struct tl_supervisor_settings {
    int64_t restart_base_ms, restart_limit_ms; /* the back-off */
    bool hangup_stops; /* SIGHUP comes from a terminal that was closed: stop instead of reload */
    /* SIGHUP has come, and is passed on after this call. NULL: nothing to do. */
    void (*reload)(void *context);
    void *context;
};

struct tl_supervisor;

/* Takes over the signals. NULL with err on failure. */
struct tl_supervisor *tl_supervisor_new(const struct tl_supervisor_settings *settings,
                                        struct tl_error *err);
/* Kills what still runs, waits for it, and gives the signals back. NULL allowed. */
void tl_supervisor_free(struct tl_supervisor **supervisor);

/* Adds a child (copied); the next turn starts it. False when out of memory. */
bool tl_supervisor_add(struct tl_supervisor *supervisor, const struct tl_child *child,
                       struct tl_error *err);

/* For `start` callbacks. Forks, and calls run(context) in the child, whose result is its exit
 * status. The child gets SIGTERM when its parent dies, and its signals are still blocked. Returns
 * the process id, or -1 with errno. */
pid_t tl_supervisor_fork(const struct tl_supervisor *supervisor, int (*run)(void *context),
                         void *context);

/* Waits until a turn is due, a signal has come or one of the n `fds` is ready, at most timeout_ms.
 * Fills in their revents. False, with err, when waiting failed. */
bool tl_supervisor_wait(const struct tl_supervisor *supervisor, struct pollfd fds[], size_t n,
                        int64_t timeout_ms, struct tl_error *err);
/* Handles signals and ended children, starts and kills what is due. Never waits. now_ms: local
 * monotonic time. */
void tl_supervisor_turn(struct tl_supervisor *supervisor, int64_t now_ms);

/* How often the operator asked to stop. What comes within half a second counts as one: many
 * wrappers pass on a Ctrl-C that the terminal has sent to all processes. */
unsigned tl_supervisor_stop_asked(const struct tl_supervisor *supervisor);

/* Begins to stop all children, stage by stage; further turns do the rest. */
void tl_supervisor_stop(struct tl_supervisor *supervisor, int64_t now_ms);
/* From now on a child that is told to stop is killed at once. */
void tl_supervisor_kill(struct tl_supervisor *supervisor, int64_t now_ms);
/* Has that begun? */
bool tl_supervisor_stopping(const struct tl_supervisor *supervisor);
/* Has it, and does no child run? */
bool tl_supervisor_stopped(const struct tl_supervisor *supervisor);

#endif
