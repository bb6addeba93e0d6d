/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon skeleton, written once: command line, configuration, log, signals, readiness, admin
 * listener, the loop with its back-off, and the drain. A program passes its role and callbacks and
 * stays short.
 *
 * SIGTERM and SIGINT: finish the turn, stop, exit 0. SIGHUP: read the configuration again; log
 * settings take effect at once, the rest at the next start. An invalid file changes nothing.
 */
#ifndef TL_DAEMON_H
#define TL_DAEMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/metrics.h"
#include "common/config/config.h"
#include "common/role/admin.h"
#include "common/role/queue_metrics.h"

struct tl_daemon;

struct tl_role {
    const char *name;    /* "dispatcher" */
    const char *summary; /* one line for --help */
    const struct tl_metric_desc *metrics;
    size_t n_metrics;
    const struct tl_queue_metrics_tables *queue_metrics; /* what it reports of single queues */
    size_t admin; /* the offset in struct tl_config of its admin listener */
    /* Makes the state of the role. Must not need the store, which may come up later. */
    void *(*start)(struct tl_daemon *daemon, struct tl_error *err);
    /* One bounded turn: connects when it has to, does what is due, waits up to about half a second
     * for more. now_ms: local monotonic time, read once before each turn. False when the store
     * failed: the skeleton logs the error, marks the program not ready and backs off with jitter.
     */
    bool (*turn)(void *state, int64_t now_ms, struct tl_error *err);
    /* Releases the leases and frees the state. */
    void (*stop)(void *state);
};

/* The whole life of a program with a plain blocking loop; returns the exit status. */
int tl_daemon_main(const struct tl_role *role, int argc, char **argv);

const struct tl_config *tl_daemon_config(const struct tl_daemon *daemon);
struct tl_metrics *tl_daemon_metrics(const struct tl_daemon *daemon);
/* The series of single queues, by the role's tables. */
struct tl_queue_metrics *tl_daemon_queue_metrics(const struct tl_daemon *daemon);
/* True once a signal is pending or the program is to stop: a long turn should end soon. */
bool tl_daemon_stopping(const struct tl_daemon *daemon);
/* Waits up to ms or until a signal comes, for a turn that has nothing to do. Always true. */
bool tl_daemon_pause(const struct tl_daemon *daemon, int64_t ms);
/* How long a turn may wait that would wait for wait_ms: not at all while the program can do its
 * work and has not said so. It is ready when that turn ends. */
int64_t tl_daemon_wait_ms(const struct tl_daemon *daemon, int64_t wait_ms);
/* After a turn: can the role do its work, and a line of detail for /readyz ("": none)? */
void tl_daemon_report(struct tl_daemon *daemon, bool able, const char *detail);
/* A name for this process among its peers: role, host and random bits; at most TL_WORKER_ID_MAX
 * characters. */
const char *tl_daemon_id(const struct tl_daemon *daemon);

#endif
