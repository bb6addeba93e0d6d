/*
 * The parent of the worker processes. It has one thread and does nothing but start processes, start
 * those that die again, and pass signals on; so forking from it is safe at any time.
 *
 * It opens one listening socket per worker process on one port (SO_REUSEPORT) before it forks, and
 * keeps them open: a process that dies leaves its socket, with the connections that wait in it, to
 * its successor. The admin listener has a process of its own beside the workers and reads what they
 * report from shared memory.
 */
#ifndef TL_PARENT_H
#define TL_PARENT_H

#include "common/config/config.h"

/* Runs until told to stop; returns the exit status, in the parent as well as in each child. */
int tl_parent_run(const struct tl_config *config, const char *config_path, unsigned processes);

#endif
