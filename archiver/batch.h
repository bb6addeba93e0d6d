/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one transaction writes: entries of the records of several queues, of which one row remains
 * for each place, with what is known of it at the end. Notes that concern many places at once close
 * the batch; they are written after its rows. Nothing here uses the network.
 */
#ifndef TL_ARCHIVE_BATCH_H
#define TL_ARCHIVE_BATCH_H

#include "archiver/leaves.h"
#include "common/base/text.h"
#include "common/line/placemap.h"
#include "common/wire/record.h"

/* What became of a place; the names are those of the type entry_status. */
enum tl_entry_status {
    TL_ENTRY_SAME, /* nothing is said of it */
    TL_ENTRY_WAITING,
    TL_ENTRY_ACTIVE,
    TL_ENTRY_COMPLETED,
    TL_ENTRY_LEFT,
    TL_ENTRY_EXPIRED,
    TL_ENTRY_UNCLAIMED,
    TL_ENTRY_ABSENT,
    TL_ENTRY_REMOVED,
    TL_ENTRY_STATUSES
};
const char *tl_entry_status_name(enum tl_entry_status status);

/* Times in Unix ms; 0: nothing is said of it. */
struct tl_entry_row {
    size_t part;          /* whose generation it is */
    size_t visitor;       /* where the id begins in the names of the batch */
    tl_place place;       /* the latest; its seq names the row */
    unsigned lane_before; /* of the first place */
    size_t leaf;          /* 1: the first one of the part; 0: nothing is said of it */
    uint64_t serial;      /* 0: nothing is said of it */
    uint64_t event;
    int64_t joined_ms, restored_ms, admitted_ms, claimed_ms, deadline_ms, ended_ms;
    unsigned char length; /* of the id */
    enum tl_entry_status status;
};

#define TL_TRAIL_NO_LEAF UINT64_MAX

/* A generation of a queue. */
struct tl_archive_part {
    char *queue; /* owned */
    uint64_t generation;
    int generation_id, queue_id; /* as PostgreSQL numbers them */
    uint64_t written, event;     /* the last event that was written before, and with this batch */
    int64_t at_ms;               /* of the latter */
    struct tl_placemap rows;     /* seq -> index of the row + 1 */
    struct tl_trail_leaves leaves;
    uint64_t first_leaf; /* its index in the trail, or TL_TRAIL_NO_LEAF, once these are written */
};

/* A note that concerns many places, or none. */
struct tl_archive_note {
    size_t part;
    struct tl_note note; /* borrows from the entry */
    size_t leaf;         /* of the part, its first one, from 0 */
    uint64_t event;
    int64_t at_ms;
};

/* Zeroed but for `salts`: an empty batch. */
struct tl_archive_batch {
    struct tl_entry_row *rows;
    size_t n_rows, rows_capacity;
    struct tl_archive_part *parts;
    size_t n_parts, parts_capacity;
    struct tl_archive_note *notes;
    size_t n_notes, notes_capacity;
    char *names; /* ids of visitors, one after the other */
    size_t n_names, names_capacity;
    size_t n_leaves;            /* of all parts */
    const unsigned char *salts; /* key of the salts of leaves, borrowed; NULL: there is no trail */
    bool closed;                /* takes no more entries */
};

void tl_archive_batch_free(struct tl_archive_batch *batch);
/* Forgets everything, and keeps the memory of rows. */
void tl_archive_batch_reset(struct tl_archive_batch *batch);

/* The part of this generation, or NULL. */
struct tl_archive_part *tl_archive_batch_find(struct tl_archive_batch *batch, const char *queue,
                                              uint64_t generation);
/* Adds one, with nothing written yet. NULL when out of memory. */
struct tl_archive_part *tl_archive_batch_add(struct tl_archive_batch *batch, const char *queue,
                                             uint64_t generation);
/* Takes an entry of this part, whose bytes have to stay until the batch is written; skips one that
 * was written before. TL_ERR_NOMEM: the batch must be reset. */
bool tl_archive_batch_take(struct tl_archive_batch *batch, struct tl_archive_part *part,
                           const struct tl_record *record, struct tl_error *err);

#endif
