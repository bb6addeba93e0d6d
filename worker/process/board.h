/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory in which worker processes report to their parent and to the admin process. */
#ifndef TL_BOARD_H
#define TL_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/role/admin.h"
#include "common/role/program.h"
#include "worker/report/queue_counts.h"
#include "worker/report/worker_metrics.h"

struct tl_board_head {
    _Atomic int64_t parent_ms;       /* monotonic time of the parent's last turn */
    _Atomic int64_t restarts;        /* processes started again */
    _Atomic int64_t deaf;            /* processes killed because they stopped accepting */
    _Atomic bool admin_started;      /* the admin listener was up at least once */
    _Atomic int admin_readiness;     /* enum tl_readiness: where no process serves visitors */
    struct tl_reload_outcome reload; /* of all processes: they read the same file */
};

struct tl_board {
    struct tl_board_head *head;
    unsigned n; /* worker processes; 0: the admin process alone */
    struct tl_slot *slots;
    struct tl_metrics **metrics; /* one per process; the array is private, the metrics are shared */
    struct tl_queue_counts *queue_counts; /* of all processes */
    void *memory;
    size_t size;
};

/* For n processes; this many queues have their own series. Must be made before forking. */
bool tl_board_init(struct tl_board *board, unsigned n, uint64_t queues, struct tl_error *err);
void tl_board_deinit(struct tl_board *board);
/* A worker process has ended: it is not ready, and its gauges are zero. */
void tl_board_clear(struct tl_board *board, unsigned i);

/* ---- does a process still take connections? ---- */

/* It may turn its loop and have its listening socket dropped from what it waits for: then
 * connections wait at the socket, and nobody takes them. The parent has the same socket, and sees
 * both. A process without visitors is not judged. */
/* What the parent knows of one process. All zero: it was just started. */
struct tl_hearing {
    int64_t accepted, beats; /* when the looks in vain began */
    unsigned looks;          /* in vain, in a row */
};

/* This long without an answer, at two looks a second. */
#define TL_HEARING_LOST_MS 5000

/* Is a connection waiting at this listening socket? */
bool tl_hearing_waits(int listen_fd);
/* One look, twice a second. waiting: a connection is, and the process should take it; accepted: how
 * many were taken from this socket; beats: turns of the process's loop. True when connections have
 * waited for long although the loop turns and none was taken. */
bool tl_hearing_lost(struct tl_hearing *hearing, bool waiting, int64_t accepted, int64_t beats);

/* For the admin listener; its context is the board. */
struct tl_admin_source tl_board_source(struct tl_board *board);

#endif
