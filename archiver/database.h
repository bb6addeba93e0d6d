/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the archiver does with PostgreSQL. Each generation remembers the last event that was
 * written, in the transaction that writes: what comes again, from this archiver or another one, is
 * skipped, so everything is there exactly once.
 */
#ifndef TL_ARCHIVE_DATABASE_H
#define TL_ARCHIVE_DATABASE_H

#include "archiver/batch.h"
#include "archiver/trail.h"
#include "common/archive/postgres.h"
#include "common/auth/secret_file.h"
#include "common/store/reply.h"

enum { TL_ARCHIVE_KEY_HASH_SIZE = 33 }; /* hex digits, with the zero */

struct tl_database {
    struct tl_postgres postgres;
    const char *url; /* borrowed */
    bool pseudonyms; /* visitors get names by the key */
    unsigned char key[TL_SECRET_KEY_BYTES];
    char key_hash[TL_ARCHIVE_KEY_HASH_SIZE];
    char verifier[TL_VERIFIER_KEY_MAX];  /* of the trail, as the settings name it */
    char trail_key[TL_VERIFIER_KEY_MAX]; /* as the archive names it; empty: not known */
    struct tl_trail trail;
    struct tl_text buffer; /* of COPY */
};

/* Connects, unless it is connected, and looks whether the tables are those that this program needs,
 * and written with these keys: TL_ERR_INVALID when they are not. */
bool tl_database_open(struct tl_database *database, struct tl_error *err);
/* Closes the connection, and frees. */
void tl_database_close(struct tl_database *database);

/* Calls `found` with each queue that has a generation which was not deleted. */
bool tl_database_queues(struct tl_database *database,
                        void (*found)(void *context, const char *queue), void *context,
                        struct tl_error *err);

/* Of the names of visitors; NULL: they are their ids. */
const unsigned char *tl_database_key(const struct tl_database *database);

/* Calls `found` with each queue: how many differences its last generation has, and whether an
 * operator asks for a round of the comparison that has not been done. */
bool tl_database_rounds(struct tl_database *database,
                        void (*found)(void *context, const char *queue, int64_t differences,
                                      bool is_asked),
                        void *context, struct tl_error *err);

/* Fills in how PostgreSQL numbers the part, and what was written before. */
bool tl_database_part(struct tl_database *database, struct tl_archive_part *part,
                      struct tl_error *err);
/* PostgreSQL lacks what it had of this part: from now on places may be new, as all will be told
 * again. */
bool tl_database_went_back(struct tl_database *database, const struct tl_archive_part *part,
                           struct tl_error *err);
/* Writes the batch in one transaction. False: nothing was written, or it is not known whether it
 * was; what was is skipped when it comes again. TL_ERR_STALE: another archiver has written entries
 * of these queues meanwhile. */
bool tl_database_write(struct tl_database *database, struct tl_archive_batch *batch,
                       struct tl_error *err);

/* This generation came after that of the id, which was lost and has come back: what happened
 * between them is a gap. Its event is minus this one, of the later generation: before that is
 * written, the archive does not have all who came back. */
bool tl_database_note_lost(struct tl_database *database, int generation_id, uint64_t generation,
                           uint64_t event, struct tl_error *err);

/* Drops a portion of what is older than this, when that is due. *n: how many generations went as a
 * whole; *again: more follows. */
bool tl_database_sweep(struct tl_database *database, int64_t kept_ms, unsigned *n, bool *again,
                       struct tl_error *err);

#endif
