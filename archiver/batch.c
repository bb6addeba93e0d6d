/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "archiver/batch.h"
#include "common/base/grow.h"

static const char *const names[TL_ENTRY_STATUSES] = {
    "", "waiting", "active", "completed", "left", "expired", "unclaimed", "absent", "removed"};

static const enum tl_entry_status of_reason[] = {
    [TL_REASON_COMPLETED] = TL_ENTRY_COMPLETED, [TL_REASON_LEFT] = TL_ENTRY_LEFT,
    [TL_REASON_EXPIRED] = TL_ENTRY_EXPIRED,     [TL_REASON_UNCLAIMED] = TL_ENTRY_UNCLAIMED,
    [TL_REASON_ABSENT] = TL_ENTRY_ABSENT,       [TL_REASON_REMOVED] = TL_ENTRY_REMOVED};

const char *tl_entry_status_name(enum tl_entry_status status)
{
    return names[status];
}

/* ---- memory ---- */

void tl_archive_batch_reset(struct tl_archive_batch *batch)
{
    for (size_t i = 0; i < batch->n_parts; i++) {
        free(batch->parts[i].queue);
        tl_placemap_clear(&batch->parts[i].rows);
        tl_trail_leaves_free(&batch->parts[i].leaves);
    }
    batch->n_parts = batch->n_rows = batch->n_notes = batch->n_names = batch->n_leaves = 0;
    batch->closed = false;
}

void tl_archive_batch_free(struct tl_archive_batch *batch)
{
    tl_archive_batch_reset(batch);
    free(batch->rows);
    free(batch->parts);
    free(batch->notes);
    free(batch->names);
    *batch = (struct tl_archive_batch){.salts = batch->salts};
}

struct tl_archive_part *tl_archive_batch_find(struct tl_archive_batch *batch, const char *queue,
                                              uint64_t generation)
{
    for (size_t i = batch->n_parts; i-- > 0;)
        if (batch->parts[i].generation == generation && strcmp(batch->parts[i].queue, queue) == 0)
            return &batch->parts[i];
    return NULL;
}

struct tl_archive_part *tl_archive_batch_add(struct tl_archive_batch *batch, const char *queue,
                                             uint64_t generation)
{
    struct tl_archive_part *parts =
        tl_grow(batch->parts, &batch->parts_capacity, batch->n_parts + 1, sizeof(*parts));
    char *name = strdup(queue);
    if (parts != NULL)
        batch->parts = parts;
    if (parts == NULL || name == NULL) {
        free(name);
        return NULL;
    }
    struct tl_archive_part *part = &parts[batch->n_parts++];
    *part = (struct tl_archive_part){.queue = name, .generation = generation};
    return part;
}

static bool no_memory(struct tl_error *err)
{
    return tl_error_set(err, TL_ERR_NOMEM, "no memory for what is to be archived");
}

/* ---- rows ---- */

static bool add_name(struct tl_archive_batch *batch, const char *visitor, size_t length, size_t *at)
{
    char *grown = tl_grow(batch->names, &batch->names_capacity, batch->n_names + length, 1);
    if (grown == NULL)
        return false;
    batch->names = grown;
    *at = batch->n_names;
    memcpy(grown + *at, visitor, length);
    batch->n_names += length;
    return true;
}

/* The row of this place, which is made if it is missing. NULL when out of memory. */
static struct tl_entry_row *row_of(struct tl_archive_batch *batch, struct tl_archive_part *part,
                                   tl_place place, const char *visitor, size_t length)
{
    uint64_t index;
    if (tl_placemap_get(&part->rows, tl_place_seq(place), &index)) {
        batch->rows[index - 1].place = place;
        return &batch->rows[index - 1];
    }
    struct tl_entry_row *rows =
        tl_grow(batch->rows, &batch->rows_capacity, batch->n_rows + 1, sizeof(*rows));
    if (rows != NULL)
        batch->rows = rows;
    size_t name;
    if (rows == NULL || !add_name(batch, visitor, length, &name) ||
        !tl_placemap_put(&part->rows, tl_place_seq(place), batch->n_rows + 1))
        return NULL;
    struct tl_entry_row *row = &rows[batch->n_rows++];
    *row = (struct tl_entry_row){.part = (size_t)(part - batch->parts),
                                 .visitor = name,
                                 .length = (unsigned char)length,
                                 .place = place,
                                 .lane_before = tl_place_lane(place)};
    return row;
}

static void set_active(struct tl_entry_row *row, uint64_t deadline)
{
    row->status = TL_ENTRY_ACTIVE;
    row->ended_ms = 0;
    row->deadline_ms = (int64_t)deadline;
}

static void set_waiting(struct tl_entry_row *row)
{
    row->status = TL_ENTRY_WAITING;
    row->ended_ms = 0;
}

/* `stays` has more numbers behind its place. */
static void apply_to(struct tl_entry_row *row, struct tl_note *note, int64_t at_ms)
{
    switch (note->kind) {
    case TL_NOTE_ENTERED:
        set_waiting(row);
        row->joined_ms = at_ms;
        break;
    case TL_NOTE_RESTORED:
        row->restored_ms = at_ms;
        if (note->detail == 0)
            set_waiting(row);
        else
            set_active(row, note->detail);
        break;
    case TL_NOTE_LANE:
        row->place = note->detail;
        break;
    case TL_NOTE_ADMITTED:
        set_active(row, note->detail);
        row->admitted_ms = at_ms;
        break;
    case TL_NOTE_CLAIMED:
        set_active(row, note->detail);
        if (row->claimed_ms == 0)
            row->claimed_ms = at_ms;
        break;
    case TL_NOTE_EXTENDED:
        set_active(row, note->detail);
        break;
    case TL_NOTE_ENDED:
        row->status = note->detail >= TL_REASON_COMPLETED && note->detail <= TL_REASON_REMOVED
                          ? of_reason[note->detail]
                          : TL_ENTRY_EXPIRED;
        row->ended_ms = at_ms;
        break;
    case TL_NOTE_HANDED:
        row->serial = note->detail;
        break;
    case TL_NOTE_WAITS:
        set_waiting(row);
        break;
    case TL_NOTE_STAYS:
        set_active(row, note->detail);
        row->admitted_ms = (int64_t)tl_note_number(note);
        if (tl_note_number(note) == 1 && row->claimed_ms == 0)
            row->claimed_ms = at_ms;
        break;
    default:
        break;
    }
}

static bool concerns_many(enum tl_record_note kind)
{
    return kind == TL_NOTE_DRAWN || kind == TL_NOTE_BEGINS || kind == TL_NOTE_ALL ||
           kind == TL_NOTE_DELETED || kind == TL_NOTE_FORGOTTEN;
}

static bool gives_place(enum tl_record_note kind)
{
    return kind == TL_NOTE_ENTERED || kind == TL_NOTE_RESTORED || kind == TL_NOTE_WAITS ||
           kind == TL_NOTE_STAYS;
}

static bool add_note(struct tl_archive_batch *batch, const struct tl_archive_note *note)
{
    struct tl_archive_note *notes =
        tl_grow(batch->notes, &batch->notes_capacity, batch->n_notes + 1, sizeof(*notes));
    if (notes == NULL)
        return false;
    batch->notes = notes;
    notes[batch->n_notes++] = *note;
    batch->closed = true;
    return true;
}

static bool take_note(struct tl_archive_batch *batch, struct tl_archive_part *part,
                      const struct tl_record *record, struct tl_note note)
{
    const char *visitor;
    size_t length, first = part->leaves.n;
    tl_place place;
    if (batch->salts != NULL && !tl_trail_leaves_add(&part->leaves, batch->salts, record, note))
        return false;
    batch->n_leaves += part->leaves.n - first;
    if (concerns_many(note.kind)) {
        const struct tl_archive_note whole = {.part = (size_t)(part - batch->parts),
                                              .note = note,
                                              .leaf = first,
                                              .event = record->event,
                                              .at_ms = record->at_ms};
        return add_note(batch, &whole);
    }
    for (size_t leaf = first + 1; tl_note_visitor(&note, &visitor, &length, &place); leaf++) {
        struct tl_entry_row *row = row_of(batch, part, place, visitor, length);
        if (row == NULL)
            return false;
        apply_to(row, &note, record->at_ms);
        row->event = record->event;
        if (batch->salts != NULL && gives_place(note.kind))
            row->leaf = leaf;
    }
    return true;
}

bool tl_archive_batch_take(struct tl_archive_batch *batch, struct tl_archive_part *part,
                           const struct tl_record *record, struct tl_error *err)
{
    if (record->event <= part->written || record->event <= part->event)
        return true;
    struct tl_record rest = *record;
    struct tl_note note;
    while (tl_record_next(&rest, &note))
        if (!take_note(batch, part, record, note))
            return no_memory(err);
    part->event = record->event;
    part->at_ms = record->at_ms;
    return true;
}
