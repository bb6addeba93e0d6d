/* SPDX-License-Identifier: Apache-2.0 */
/* The process of the admin listener: the admin API, the dashboard, probes and metrics. */
#ifndef TL_ADMIN_PROCESS_H
#define TL_ADMIN_PROCESS_H

#include "worker/admin/server.h"
#include "worker/process/board.h"

struct tl_admin_process_settings {
    const char *role; /* for the log */
    const char *config_path;
    struct tl_admin_server_settings server;
    /* Without processes for visitors this one reports the store and what a reload did, too. */
    struct tl_board *board;
};

/* Runs until a signal stops it; returns the exit status. */
int tl_admin_process_run(const struct tl_admin_process_settings *settings);

#endif
