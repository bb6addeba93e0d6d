/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of every program that runs as a service: --config FILE, --check, --healthcheck,
 * --version, --help, and the options of its own.
 */
#ifndef TL_PROGRAM_H
#define TL_PROGRAM_H

#include <stdbool.h>
#include <stdio.h>

#include "common/role/options.h"

struct tl_config;
struct tl_listen;

enum { TL_LISTENERS_MAX = 2 };

struct tl_program {
    const char *name;                /* "tellerline-worker" */
    const char *summary;             /* one line for --help */
    const struct tl_option *options; /* its own, or NULL */
    /* Its listeners that answer /livez; --healthcheck asks the first that is configured with a
     * port. */
    const struct tl_listen *(*listeners[TL_LISTENERS_MAX])(const struct tl_config *config);
};

/* The configuration file: `given` with --config, else the one that TELLERLINE_CONFIG names, else
 * NULL. */
const char *tl_program_config_path(const char *given);

/* Reads the command line. True: the program goes on, with *config_path (borrowed from argv or the
 * environment; NULL: not given). False: it exits with *status, which is 0, or 1 for an invalid
 * configuration or a program that is not alive, or 2 for a wrong command line. --help, --version,
 * --check and --healthcheck write to `out`, errors go to `errors`. --healthcheck waits for the
 * answer, three seconds at most. */
bool tl_program_parse(const struct tl_program *program, int argc, char **argv,
                      const char **config_path, int *status, FILE *out, FILE *errors);

#endif
