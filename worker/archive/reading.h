/* SPDX-License-Identifier: Apache-2.0 */
/* What the thread asks PostgreSQL. */
#ifndef TL_ARCHIVE_READING_H
#define TL_ARCHIVE_READING_H

#include "common/archive/postgres.h"
#include "worker/archive/job.h"

/* Where those who wait stand, roughly: how many there are in each stretch of seqs. Counting them
 * takes a pass over the places of the generation; with the outline, a position takes one over a
 * stretch. Zeroed: empty. */
struct tl_outline {
    int generation_id;
    uint64_t event;     /* as of which it is */
    int64_t as_of_ms;   /* the time of that event */
    int64_t fetched_ms; /* local monotonic; 0: never */
    int64_t rules_ms;   /* when the rules were read: */
    bool by_lanes;      /* each lane is served before the next one */
    bool is_drawn;      /* a draw gives those who came before the opening their order */
    bool known;         /* else it could not be counted, or there are too many stretches */
    struct tl_stretch {
        unsigned lane;
        uint64_t stretch; /* seq / TL_STRETCH */
        uint64_t before;  /* who waits before it, in the order of the line */
    } * stretches; /* in the order of the line; behind them one with all who wait before it */
    size_t n;
};
enum { TL_STRETCH = 1024, TL_OUTLINES = 16 };

/* Of the rows that a ticket from before a draw finds: the place that counts. Where the store lost
 * the draw and held another one, the place of the lost one is there, too. */
#define TL_READING_LAST "ORDER BY status = 'unknown', event DESC LIMIT 1"

/* The thread's own. Zeroed: nothing is known. */
struct tl_reading {
    struct tl_postgres postgres;
    struct tl_outline outlines[TL_OUTLINES];
    int64_t now_ms;       /* local monotonic time */
    const char *key_path; /* of secrets.archive_key; borrowed; there may be no file */
};

/* Frees what is known, and closes the connection. */
void tl_reading_clear(struct tl_reading *reading);

/* Each answers a job of its kind. False with err: PostgreSQL did not answer. */
bool tl_reading_place(struct tl_reading *reading, struct tl_archive_job *job, struct tl_error *err);
bool tl_reading_checkpoint(struct tl_reading *reading, struct tl_archive_job *job,
                           struct tl_error *err);
bool tl_reading_tile(struct tl_reading *reading, struct tl_archive_job *job, struct tl_error *err);
bool tl_reading_proof(struct tl_reading *reading, struct tl_archive_job *job, struct tl_error *err);

#endif
