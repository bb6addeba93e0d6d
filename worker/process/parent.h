/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parent of the worker processes. It has a single thread and only supervises, so that forking
 * from it is safe at any time.
 *
 * Before it forks it opens one listening socket per worker process, all on one port
 * (SO_REUSEPORT), and keeps them open: when a process dies, its successor takes over the socket
 * with the connections that wait in it. The admin listener runs in a process of its own beside the
 * workers and reads their reports from shared memory.
 */
#ifndef TL_PARENT_H
#define TL_PARENT_H

#include "common/config/config.h"

/* Runs until a signal stops it; returns the exit status. */
int tl_parent_run(const struct tl_config *config, const char *config_path, unsigned processes);

#endif
