/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every program that runs as a service does alike: its command line (--config FILE, --check,
 * --healthcheck, --version, --help, and the options of its own), its first steps, and SIGHUP.
 */
#ifndef TL_PROGRAM_H
#define TL_PROGRAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/text.h"
#include "common/config/config.h"
#include "common/role/options.h"

enum { TL_LISTENERS_MAX = 2, TL_PROCESS_ID_SIZE = 33 };

struct tl_program {
    const char *name;                /* "tellerline-worker" */
    const char *summary;             /* one line for --help */
    const struct tl_option *options; /* its own, or NULL */
    /* Its listeners that answer /livez, by their offsets in struct tl_config (0: none);
     * --healthcheck asks the first that is configured with a port. */
    size_t listeners[TL_LISTENERS_MAX];
    FILE *out, *errors; /* what --help, --version, --check and --healthcheck say, and errors */
};

/* The setting of a listener at this offset. */
const struct tl_listen *tl_program_listen(const struct tl_config *config, size_t offset);

/* The configuration file: `given` with --config, else the one that TELLERLINE_CONFIG names, else
 * NULL. */
const char *tl_program_config_path(const char *given);

/* Reads the command line. True: the program goes on, with *config_path (borrowed from argv or the
 * environment; NULL: not given). False: it exits with *status, which is 0, or 1 for an invalid
 * configuration or a program that is not alive, or 2 for a wrong command line. --healthcheck
 * waits for the answer, three seconds at most. */
bool tl_program_parse(const struct tl_program *program, int argc, char **argv,
                      const char **config_path, int *status);

/* The first steps after that: reads the configuration, initialises libsodium, and starts the log
 * under the name `role` (borrowed). The caller frees what it returns. NULL: the program exits with
 * status 1; why has been written to standard error. */
const struct tl_config *tl_program_start(const char *name, const char *role,
                                         const char *config_path);

/* Puts the log settings of the configuration in force. role is borrowed. */
void tl_program_log(const struct tl_config *config, const char *role);

/* Writes a random name for this process among its peers: role and random bits. */
void tl_program_id(const char *role, char id[TL_PROCESS_ID_SIZE]);

/* ---- a request that tells whether one of our programs is alive or ready ---- */

/* Sends GET to the host and port that a program listens on. host is an address or a name as
 * configured; 0.0.0.0 and ::, which mean every address, are asked at loopback. Returns the status
 * code, or -1 without an answer within timeout_ms, which bounds everything but the name lookup. The
 * body, which must fit into `size` bytes with a zero behind it, is read unless `body` is NULL. */
int tl_http_get(const char *host, int port, const char *path, int64_t timeout_ms, char *body,
                size_t size);

/* ---- SIGHUP ---- */

/* What became of it, for the metrics; starts zeroed. May be in shared memory. */
struct tl_reload_outcome {
    _Atomic int64_t refused; /* how often, so far */
    _Atomic bool failed;     /* the last one was refused */
};

struct tl_reload {
    const char *config_path; /* NULL: defaults and environment */
    const char *role;        /* for the log; borrowed */
    /* Takes over what else the program can change while it runs; NULL: nothing. False refuses the
     * new configuration: the running one stays. The configuration is freed after the call. */
    bool (*take)(void *context, const struct tl_config *config, struct tl_error *err);
    void *context;
    struct tl_reload_outcome *outcome; /* NULL: not counted */
    const char *taken; /* what `take` takes over, for the log: "keys"; NULL without it */
};

/* Reads the file again, hands it to `take`, puts the log settings in force, and logs the outcome.
 */
void tl_reload(const struct tl_reload *reload);
/* Appends what every program tells, as Prometheus text with this label: its version, whether it is
 * ready, and the outcome of reloads. */
void tl_program_metrics(const char *label, bool ready, const struct tl_reload_outcome *outcome,
                        struct tl_text *out);

#endif
