/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals of a process as input of its loop: blocked in every thread and read from a
 * signalfd(2), so that there is no handler and no race between a signal and a wait. Open before the
 * first other thread starts: threads inherit the blocked set. A forked child inherits it too, and
 * opens its own descriptor.
 */
#ifndef TL_SIGNALS_H
#define TL_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

enum tl_signal {
    TL_SIGNAL_NONE,
    TL_SIGNAL_STOP,   /* SIGTERM, SIGINT */
    TL_SIGNAL_RELOAD, /* SIGHUP */
    TL_SIGNAL_CHILD,  /* SIGCHLD */
};

struct tl_signals {
    int fd; /* non-blocking; -1: not open */
};

/* Blocks the signals above and ignores SIGPIPE. On failure the mask is as before. */
bool tl_signals_open(struct tl_signals *signals, struct tl_error *err);
/* Closes the descriptor, if it is open. The signals stay blocked: a second SIGTERM must not kill a
 * process that is about to exit with status 0. A child that runs another program unblocks them. */
void tl_signals_close(struct tl_signals *signals);

/* Takes one pending signal; TL_SIGNAL_NONE when there is none. */
enum tl_signal tl_signals_next(const struct tl_signals *signals);
/* Waits until a signal is pending, at most this long. True when one is. */
bool tl_signals_wait(const struct tl_signals *signals, int64_t timeout_ms);

#endif
