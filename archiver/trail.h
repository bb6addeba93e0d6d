/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trail of each generation in PostgreSQL: its leaves, hashes and signed checkpoint, written in
 * the transaction that writes the batch.
 */
#ifndef TL_ARCHIVE_TRAIL_H
#define TL_ARCHIVE_TRAIL_H

#include "archiver/batch.h"
#include "common/archive/checkpoint.h"
#include "common/archive/postgres.h"
#include "common/base/log.h"

/* Of one thread. Zeroed but for the signer before the first use. */
struct tl_trail {
    struct tl_trail_signer signer;
    struct tl_log_limit damage_log;
    struct tl_tlog log;    /* of the part that is being written */
    struct tl_text bundle; /* its last one, which is not full */
    struct tl_text tiles;  /* of all parts, as COPY takes them */
};

/* Adds the leaves of the batch to the trails of its parts, and says in each part where they begin;
 * to a trail that is damaged nothing is added. Inside a transaction that has locked the
 * generations. */
bool tl_trail_write(struct tl_trail *trail, struct tl_postgres *postgres,
                    struct tl_archive_batch *batch, struct tl_error *err);
/* Frees, and wipes the keys. */
void tl_trail_close(struct tl_trail *trail);

#endif
