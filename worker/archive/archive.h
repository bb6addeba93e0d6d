/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker process reads from the archive: the last known place of a visitor while the store
 * is away, and the trail. A thread with one connection to PostgreSQL answers one question after the
 * other, at a bounded rate; while nobody asks there is no connection.
 */
#ifndef TL_WORKER_ARCHIVE_H
#define TL_WORKER_ARCHIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/base/error.h"
#include "common/base/metrics.h"
#include "worker/archive/job.h"

/* A question waits at most this long for its answer. */
enum { TL_ARCHIVE_WAIT_MS = 2000 };

struct tl_archive_settings {
    const char *url;      /* of PostgreSQL; borrowed */
    const char *key_path; /* of secrets.archive_key; borrowed; the file may be missing */
    struct tl_metrics *metrics;
    void *context;
    /* A question has its answer, on the loop. The job is borrowed. */
    void (*answered)(void *context, const struct tl_archive_job *job);
};

struct tl_archive;

/* Starts the thread. NULL with err. */
struct tl_archive *tl_archive_new(uv_loop_t *loop, const struct tl_archive_settings *settings,
                                  struct tl_error *err);
/* Ends it, within TL_ARCHIVE_WAIT_MS and the time to connect. Questions that are under way have no
 * answer. The loop must run one more turn. NULL behind the pointer is allowed. */
void tl_archive_free(struct tl_archive **archive);

/* Asks. The kind, the number, the queue and what the kind needs are copied; the rest is zero.
 * False: as many questions of the kind as a second may have were asked, or too many wait, or there
 * is no memory. now_ms: local monotonic time. */
bool tl_archive_ask(struct tl_archive *archive, const struct tl_archive_job *question,
                    int64_t now_ms);

#endif
