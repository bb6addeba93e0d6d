/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a worker process still take connections? It may turn its loop and have its listening socket
 * dropped from what it waits for: then connections wait at the socket, and nobody takes them. The
 * parent has the same socket, and sees both. A process without visitors is not judged.
 */
#ifndef TL_HEARING_H
#define TL_HEARING_H

#include <stdbool.h>
#include <stdint.h>

/* What the parent knows of one process. All zero: it was just started. */
struct tl_hearing {
    int64_t accepted, beats; /* when the looks in vain began */
    unsigned looks;          /* in vain, in a row */
};

/* After so long, at two looks a second. */
#define TL_HEARING_LOST_MS 5000

/* Is a connection waiting at this listening socket? */
bool tl_hearing_waits(int listen_fd);
/* One look, twice a second. waiting: a connection is, and the process should take it; accepted: how
 * many were taken from this socket; beats: turns of the process's loop. True when connections have
 * waited for long although the loop turns and none was taken. */
bool tl_hearing_lost(struct tl_hearing *hearing, bool waiting, int64_t accepted, int64_t beats);

#endif
