/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program of a role: command line, configuration, log, signals, readiness, admin listener, the
 * loop with its back-off, and the drain.
 *
 * SIGTERM and SIGINT: finish the turn, stop, exit 0. SIGHUP: read the configuration again; log
 * settings take effect at once, the rest at the next start. An invalid file changes nothing.
 */
#ifndef TL_ROLE_MAIN_H
#define TL_ROLE_MAIN_H

#include "common/role/role.h"

/* The whole life of the program; returns the exit status. */
int tl_role_main(const struct tl_role *role, int argc, char **argv);

#endif
