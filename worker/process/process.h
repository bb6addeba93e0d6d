/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a worker: a parent, those that serve visitors (edge.c), and that of the admin
 * listener. What they share is made by the parent before it forks. */
#ifndef TL_PROCESS_H
#define TL_PROCESS_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/config/config.h"
#include "worker/http/limiter.h"
#include "worker/http/sharing.h"
#include "worker/page/look.h"
#include "worker/process/board.h"
#include "worker/visit/secrets.h"

/* Written by the parent, and read by its children. What they change after they began, such as the
 * events at a reload, is their own copy. */
struct tl_shared {
    const char *config_path;
    const struct tl_config *config; /* of the start */
    struct tl_languages *languages; /* of the pages, as brand and events */
    struct tl_brand *brand;
    /* As they were read last without a mistake, at the start or at a SIGHUP. A process that is
     * started again has them from here, whatever became of the files meanwhile. */
    const struct tl_config *files; /* whose queues in passthrough and level of the log count */
    struct tl_event_looks events;
    struct tl_secrets secrets;
    struct tl_board board;
    struct tl_limiter *limiter; /* of all processes */
    struct tl_sharing *sharing; /* likewise */
    bool keeps_listening;       /* when they stop the sockets stay open: another program has them */
};

/* The parent has a single thread and only supervises, so that forking from it is safe at any time.
 * It opens one listening socket per worker process, all on one port (SO_REUSEPORT), and keeps them
 * open: when a process dies, its successor takes over the socket with the connections that wait in
 * it. Runs until a signal stops it; returns the exit status. */
int tl_parent_run(const struct tl_config *config, const char *config_path, unsigned processes);

/* One process that serves visitors: puts its parts together on one libuv loop. i: of the processes
 * of this worker; the first says what one has to say. role, for the log, is borrowed; the socket
 * stays the caller's. Runs until a signal stops it; returns the exit status. */
int tl_edge_run(struct tl_shared *shared, const char *role, unsigned i, int listen_fd);

/* The process of the admin listener: the admin API, the dashboard, probes and metrics, which it
 * reads from the board. Without processes for visitors it reports the store and what a reload did,
 * too. Likewise. */
int tl_admin_process_run(struct tl_shared *shared, const char *role);

#endif
