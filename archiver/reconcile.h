/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The comparison of Redis and PostgreSQL: round after round, who is active and who waits, a portion
 * in each step. It finds what was changed by hand on either side.
 *
 * A portion of Redis is of one moment, as of one event. It is compared when PostgreSQL has all that
 * the record had told by then, and only with entries that no later event concerns: these are as
 * they were at that moment, too, so any difference is one. Visitors who move meanwhile are
 * left to the next round.
 *
 *   sessions  a scan of all who are active; their seqs are kept until the round is done
 *   line      ranges of seqs: a checksum of those who wait; the entries themselves where it
 *             differs; and entries that are active since before the scan, which does not have them
 *   ends      how many ended, of each kind, since the last gap until the round began
 */
#ifndef TL_ARCHIVE_RECONCILE_H
#define TL_ARCHIVE_RECONCILE_H

#include "archiver/database.h"
#include "common/role/roster.h"

enum tl_reconcile_phase { TL_RECONCILE_NONE, TL_RECONCILE_SESSIONS, TL_RECONCILE_LINE };

/* Zeroed: no round has begun. */
struct tl_reconcile {
    enum tl_reconcile_phase phase;
    bool asked;                 /* an operator waits for the round: no pauses */
    int64_t due_ms;             /* local monotonic: of the next step */
    int64_t began_ms, pause_ms; /* of the round; between its steps */
    char began_at[40];          /* by the clock of PostgreSQL */
    int generation_id;
    uint64_t generation, event; /* when the round began */
    uint64_t counted_from;      /* the event from which on ends are compared; 0: they are not */
    int64_t counted_ms;         /* how long ago that was then */
    int64_t ended[TL_REASON_REMOVED], found[TL_REASON_REMOVED]; /* in Redis, in PostgreSQL */
    char store[48];        /* then: another one has other cursors */
    char cursor[24];       /* of the scan */
    uint64_t past, last;   /* the range of seqs: behind `past`, up to `last` */
    struct tl_reply *page; /* that waits for PostgreSQL; NULL: none */
    uint64_t *seen;        /* seqs of the scan; sorted in the second phase */
    size_t n_seen, seen_capacity;
    int64_t differences; /* that PostgreSQL has of the queue */
    size_t compared;     /* entries and visitors; for the caller, who sets it to 0 */
};

enum tl_reconcile_step {
    TL_RECONCILE_ON,
    TL_RECONCILE_STORE_FAILED,   /* with err */
    TL_RECONCILE_DATABASE_FAILED /* with err */
};

/* Does the step that is due, and says when the next one is. config: reconcile_ms is how long a
 * round takes; 0: there is one only when it is asked for. */
enum tl_reconcile_step tl_reconcile_serve(struct tl_reconcile *reconcile,
                                          struct tl_database *database,
                                          const struct tl_held_queue *held,
                                          const struct tl_config *config, int64_t now_ms,
                                          struct tl_error *err);
/* Begins again, and frees. */
void tl_reconcile_reset(struct tl_reconcile *reconcile);

#endif
