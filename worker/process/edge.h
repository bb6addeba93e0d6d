/* SPDX-License-Identifier: Apache-2.0 */
/* One worker process: puts its parts together on one libuv loop, and runs them until told to stop.
 */
#ifndef TL_EDGE_H
#define TL_EDGE_H

#include <stdbool.h>

#include "common/config/config.h"
#include "worker/http/limiter.h"
#include "worker/http/sharing.h"
#include "worker/page/brand.h"
#include "worker/page/event_look.h"
#include "worker/process/board.h"
#include "worker/visit/secrets.h"

struct tl_edge_settings {
    const char *role; /* for the log; borrowed */
    unsigned i;       /* of the processes of this worker; the first says what one has to say */
    const char *config_path;
    const struct tl_config *config;
    /* What the parent read last, at a SIGHUP before this start or before its own; see tl_worker. */
    const struct tl_config *files;
    const struct tl_brand *brand;
    struct tl_event_looks *events;
    struct tl_secrets *secrets;
    int listen_fd; /* stays the caller's */
    bool
        keeps_listening; /* the socket stays open when this process stops: another one takes over */
    struct tl_board *board;     /* its slot and metrics are those of i */
    struct tl_limiter *limiter; /* of all processes */
    struct tl_sharing *sharing; /* likewise */
};

/* Runs a worker process until it is told to stop; returns the exit status. */
int tl_edge_run(const struct tl_edge_settings *settings);

#endif
