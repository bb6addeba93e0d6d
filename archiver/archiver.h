/* SPDX-License-Identifier: Apache-2.0 */
/* The archiver: its queues, and the batch that its next transaction writes. Each record is read
 * into the batch (record.c), also what is left of those of deleted queues (gone.c); main.c writes
 * it. Changes and the history are copied as they are (copies.c). */
#ifndef TL_ARCHIVER_H
#define TL_ARCHIVER_H

#include "archiver/database.h"
#include "archiver/entries.h"
#include "archiver/reconcile.h"
#include "archiver/restore.h"
#include "common/base/clock.h"
#include "common/base/log.h"

enum {
    TL_ARCHIVER_GATHER_MS = 200, /* between two looks at a record that has entries */
};

/* The streams that are copied entry by entry. */
enum tl_archiver_copies { TL_COPY_CHANGES, TL_COPY_HISTORY, TL_COPIES };

struct tl_copied {
    char id[TL_ENTRY_ID_MAX]; /* of the last entry that PostgreSQL has; "": not known */
    int64_t due_ms;           /* local monotonic: the next look */
};

/* The state of one held queue. */
struct tl_archived_queue {
    char written[TL_ENTRY_ID_MAX]; /* the id of the last entry that PostgreSQL has */
    char taken[TL_ENTRY_ID_MAX];   /* of the last one in the batch; "": none */
    uint64_t entries, units;       /* of those in the batch */
    struct tl_reply *reply;        /* which the batch borrows from */
    struct tl_archive_part known;  /* as PostgreSQL numbers the last generation; 0: not known */
    bool asked; /* of that it said which event it has; the store has to hear it */
    uint64_t store_generation, archived; /* as the store said last: the event that PostgreSQL had */
    struct tl_copied copied[TL_COPIES];
    int64_t look_ms, report_ms;         /* local monotonic: when they are due */
    int64_t behind, behind_ms, missing; /* as the store said last */
    bool trail_damaged;                 /* when it last had leaves to add */
    struct tl_restore restore;
    struct tl_reconcile reconcile;
};

/* A queue that this process does not hold, and that may be deleted: what is left of its record is
 * archived, too. */
struct tl_gone_queue {
    struct tl_held_queue held;
    struct tl_archived_queue queue;
};

struct tl_archiver {
    struct tl_process *process;
    const struct tl_config *config;
    struct tl_database database;
    struct tl_archive_batch batch;
    struct tl_error problem; /* of the batch, or of PostgreSQL */
    struct tl_args args;
    struct tl_backoff backoff;
    struct tl_log_limit failure_log;
    int64_t retry_ms, sweep_ms, rounds_ms;
    int64_t alone_ms; /* local monotonic: until then a batch has one queue, as one was refused */
    bool usable;      /* PostgreSQL is connected in this turn */
    bool refused;     /* it has refused something of a queue in this turn: nothing more is read */
    struct tl_gone_queue **gone;
    size_t n_gone, gone_capacity;
};

/* ---- record.c ---- */

/* What was read and not written is read again. */
void tl_archiver_let_go(struct tl_archived_queue *queue);
/* Does the batch take no more? */
bool tl_archiver_is_full(const struct tl_archiver *self);
/* Does PostgreSQL refuse this, and is there? Then it may take what is of other queues. Notes it. */
bool tl_archiver_is_refused(struct tl_archiver *self, const struct tl_error *problem);
/* Puts the next entries of the record into the batch. False when Redis failed, another release
 * wrote the first of them, or PostgreSQL refuses their generation; another error of PostgreSQL goes
 * to self->problem, and makes it unusable. */
bool tl_archiver_read(struct tl_archiver *self, struct tl_held_queue *held, int64_t now_ms,
                      struct tl_error *err);
/* Tells the store what was written, and asks it how far behind this is. */
bool tl_archiver_acknowledge(struct tl_archiver *self, struct tl_held_queue *held, int64_t now_ms,
                             struct tl_error *err);

/* ---- copies.c ---- */

/* Copies the next changes and points of the history that are due into PostgreSQL, each once. False
 * when Redis failed; what PostgreSQL refuses waits, and another error of it goes to self->problem,
 * and makes it unusable. */
bool tl_archiver_copy(struct tl_archiver *self, struct tl_held_queue *held, int64_t now_ms,
                      struct tl_error *err);

/* ---- gone.c ---- */

/* Out of memory it is left out: the next start looks for it. */
void tl_archiver_add_gone(struct tl_archiver *self, const char *name);
/* Reads what is left of the records of queues that are not there any longer. */
bool tl_archiver_read_gone(struct tl_archiver *self, int64_t now_ms, struct tl_error *err);
/* Drops what was written of them. */
bool tl_archiver_trim_gone(struct tl_archiver *self, struct tl_error *err);
void tl_archiver_free_gone(struct tl_archiver *self);

#endif
