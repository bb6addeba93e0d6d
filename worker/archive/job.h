/* SPDX-License-Identifier: Apache-2.0 */
/* A question to the archive, and its answer. */
#ifndef TL_ARCHIVE_JOB_H
#define TL_ARCHIVE_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/archive/leaf.h"
#include "common/archive/tlog.h"
#include "common/line/line.h"
#include "worker/feed/mailbox.h"

enum tl_archive_kind {
    TL_ARCHIVE_PLACE,      /* what became of the place with this generation and seq */
    TL_ARCHIVE_CHECKPOINT, /* of the trail of a generation */
    TL_ARCHIVE_TILE,       /* of it, or a bundle of its leaves */
    TL_ARCHIVE_PROOF,      /* that the leaf by which the place with this seq was given is in it */
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
    uint64_t seq;     /* since the draw, if there was one */
    uint32_t serial;  /* of the device that has it */
    int64_t as_of_ms; /* Unix time by the store's clock until which the archive knows */
};

enum { TL_TRAIL_LEAVES = -1 }; /* the level of bundles of leaves */

/* One tile of a trail, or a bundle. */
struct tl_trail_tile {
    int level; /* TL_TRAIL_LEAVES or from 0 on */
    uint64_t n;
    unsigned width; /* how many hashes or leaves of it, 1 to 256 */
};

/* That a leaf is in a trail. */
struct tl_archived_proof {
    uint64_t generation, index, size;
    char leaf[TL_LEAF_MAX + 1];
    unsigned char salt[TL_LEAF_SALT_BYTES];
    bool has_salt; /* else this worker has no key for it */
    struct tl_tlog_proof path;
};

/* A question, and then its answer. */
struct tl_archive_job {
    struct tl_message message;
    enum tl_archive_kind kind;
    uint64_t number; /* of who asks */
    char queue[TL_QUEUE_NAME_MAX + 1];
    uint64_t generation; /* of the place; or of a trail, 0: the last one that has one */
    uint64_t seq;
    char visitor[TL_VISITOR_MAX + 1]; /* whose proof it is to be */
    struct tl_trail_tile tile;
    int64_t until_ms; /* local monotonic time; later nobody waits for the answer */
    enum tl_archive_found found;
    struct tl_archived_place place;
    struct tl_archived_proof *proof; /* owned */
    unsigned char *bytes;            /* owned: of a checkpoint, which a proof has, too, or a tile */
    size_t length;
};

#endif
