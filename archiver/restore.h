/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brings back from PostgreSQL the line of a queue whose data the store has lost
 * (docs/operators/archive.md): the archiver reads the visitors of the lost generation, and the
 * function `restore` gives them their places. How far it has come is in the store, so that any
 * archiver can go on with it.
 */
#ifndef TL_ARCHIVE_RESTORE_H
#define TL_ARCHIVE_RESTORE_H

#include "archiver/database.h"
#include "common/role/role_main.h"

enum { TL_RESTORE_TOTALS = 7 }; /* of those who have ended; archiver/restore.lua has their names */

/* A zeroed one is idle. */
struct tl_restore {
    /* As the store said: 1: the archive may bring back what was lost, 2: it was asked to; 0 once
     * that was looked at. */
    int64_t wanted;
    bool asked;              /* by an operator */
    bool may_begin;          /* asked, or by itself */
    bool back;               /* it is the present generation, of which the store has an old copy */
    bool active, of_present; /* the latter: as `back` when it began */
    bool is_whole;           /* the archive was told of all who waited or were active */
    int64_t due_ms;          /* local monotonic: no step before */
    int generation_id;       /* of the lost one in PostgreSQL */
    uint64_t generation, event, last_seq, present;
    uint64_t newer; /* later than that of an old copy; `present`: it was drawn since; or 0 */
    uint64_t now_ms,
        now_event;   /* by Redis's clock, and of the present generation: at the last step */
    uint64_t cursor; /* below TL_LANE of those who are active, above it of all others */
    uint64_t size;   /* how many wait or are active */
    /* Of an old copy: the archive knows more of what lies between these events; no total of the
     * store counts places above the seq. base of the last that was looked at. found 0: the store
     * has a part of the queue. */
    uint64_t found, base, found_seq, seen_base;
    uint64_t found_ms, last_ms; /* by Redis's clock: of the first of them; of the archive's last */
    uint64_t totals[TL_RESTORE_TOTALS];
    uint64_t fronts[TL_LANES_MAX]; /* all places of the lane up to this seq have stopped waiting */
};

/* How a step ended. An error makes it idle. */
enum tl_restore_step { TL_RESTORE_ON, TL_RESTORE_STORE_FAILED, TL_RESTORE_DATABASE_FAILED };

/* What is due: begins if that is wanted, or goes on with what another archiver has begun; brings
 * back the next some thousand visitors. */
enum tl_restore_step tl_restore_serve(struct tl_restore *restore, struct tl_process *process,
                                      struct tl_database *database,
                                      const struct tl_held_queue *held, int64_t now_ms,
                                      struct tl_error *err);

#endif
