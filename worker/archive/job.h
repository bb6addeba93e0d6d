/* SPDX-License-Identifier: Apache-2.0 */
/* A question to the archive, and its answer. */
#ifndef TL_ARCHIVE_JOB_H
#define TL_ARCHIVE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "common/line/line.h"
#include "worker/feed/mailbox.h"

enum tl_archive_kind {
    TL_ARCHIVE_PLACE, /* what became of the place with this seq, in the last generation */
    TL_ARCHIVE_KINDS
};

enum tl_archive_found {
    TL_ARCHIVE_FAILED, /* PostgreSQL could not say, or not in time */
    TL_ARCHIVE_NONE,   /* it has nothing of this */
    TL_ARCHIVE_FOUND
};

/* A place as the archive knows it. */
struct tl_archived_place {
    struct tl_line_view state; /* `ahead` only with has_position */
    bool has_position;         /* else it cannot be known, or is not worth its price */
    bool deleted;              /* the queue was, by an operator */
    unsigned lane;
    uint32_t serial;  /* of the device that has it */
    int64_t as_of_ms; /* Unix time by the store's clock until which the archive knows */
};

/* A question, and then its answer. */
struct tl_archive_job {
    struct tl_message message;
    enum tl_archive_kind kind;
    uint64_t number; /* of who asks */
    char queue[TL_QUEUE_NAME_MAX + 1];
    uint64_t seq;
    int64_t until_ms; /* local monotonic time; later nobody waits for the answer */
    enum tl_archive_found found;
    struct tl_archived_place place;
};

#endif
