/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "archiver/archiver.h"
#include "archiver/metrics.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "common/wire/names.h"
#include "common/wire/record.h"

#define ENTRIES_AT_ONCE "100" /* of a record, read by one command */

enum {
    ROWS_MAX = 20000, /* of a batch, and those of one more entry */
    LEAVES_MAX = 40000,
    LOOK_MS = 1000,   /* at a record that has no entries */
    REPORT_MS = 2000, /* at least this often the store is asked how far behind this is */
};

void tl_archiver_let_go(struct tl_archived_queue *queue)
{
    tl_reply_free(queue->reply);
    queue->reply = NULL;
    queue->taken[0] = '\0';
    queue->entries = queue->units = 0;
}

bool tl_archiver_is_full(const struct tl_archiver *self)
{
    return self->batch.closed || self->batch.n_rows >= ROWS_MAX ||
           self->batch.n_leaves >= LEAVES_MAX;
}

bool tl_archiver_is_refused(struct tl_archiver *self, const struct tl_error *problem)
{
    if (problem->kind != TL_ERR_STORE || !tl_postgres_connected(&self->database.postgres))
        return false;
    self->refused = true;
    tl_metrics_add(self->process->metrics, TL_ARCHIVED_FAILED, 1);
    return true;
}

/* Asks PostgreSQL about this generation, unless it is the last one that was asked about. */
static bool know(struct tl_archiver *self, struct tl_held_queue *held, uint64_t generation,
                 struct tl_error *err)
{
    struct tl_archived_queue *queue = held->state;
    struct tl_archive_part part = {.queue = held->keys.queue, .generation = generation};
    if (queue->known.generation == generation)
        return true;
    if (!tl_database_part(&self->database, &part, err) ||
        (generation == queue->store_generation && part.written < queue->archived &&
         !tl_database_went_back(&self->database, &part, err)))
        return false;
    queue->known = part;
    queue->known.queue = NULL;
    queue->asked = queue->store_generation != 0; /* else the queue is gone */
    return true;
}

/* The part of the batch for this generation. NULL with err. */
static struct tl_archive_part *part_of(struct tl_archiver *self, struct tl_held_queue *held,
                                       uint64_t generation, struct tl_error *err)
{
    struct tl_archived_queue *queue = held->state;
    struct tl_archive_part *part =
        tl_archive_batch_find(&self->batch, held->keys.queue, generation);
    if (part != NULL)
        return part;
    if (!know(self, held, generation, err))
        return NULL;
    part = tl_archive_batch_add(&self->batch, held->keys.queue, generation);
    if (part == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for what is to be archived");
        return NULL;
    }
    part->generation_id = queue->known.generation_id;
    part->queue_id = queue->known.queue_id;
    part->written = queue->known.written;
    return part;
}

/* Leaves it where PostgreSQL has just been asked about its generation: with the first transaction
 * it could no longer be seen that PostgreSQL had gone back, so the store hears before what it has.
 * One that cannot be read was written by something else, and is left out. TL_ERR_PROTOCOL: it is of
 * another release, and has to wait for that. */
static bool take_entry(struct tl_archiver *self, struct tl_held_queue *held,
                       const struct tl_reply *entry, struct tl_error *err)
{
    struct tl_archived_queue *queue = held->state;
    struct tl_record record;
    size_t length;
    const char *bytes = tl_reply_string(tl_reply_at(tl_reply_at(entry, 1), 1), &length);
    if (tl_record_open(bytes, length, &record, &self->problem)) {
        struct tl_archive_part *part = part_of(self, held, record.generation, err);
        if (part != NULL && queue->asked)
            return true;
        if (part == NULL || !tl_archive_batch_take(&self->batch, part, &record, err))
            return false;
    } else if (self->problem.kind == TL_ERR_PROTOCOL) {
        *err = self->problem;
        return false;
    } else {
        tl_log(TL_LOG_ERROR,
               &(struct tl_log_fields){.queue = held->keys.queue, .error = &self->problem},
               "entry %.40s of the record cannot be read and is left out", tl_reply_text(entry, 0));
    }
    snprintf(queue->taken, sizeof(queue->taken), "%s", tl_reply_text(entry, 0));
    queue->entries++;
    queue->units += (length + TL_RECORD_UNIT - 1) / TL_RECORD_UNIT;
    return true;
}

bool tl_archiver_read(struct tl_archiver *self, struct tl_held_queue *held, int64_t now_ms,
                      struct tl_error *err)
{
    struct tl_archived_queue *queue = held->state;
    struct tl_error problem = {0};
    queue->reply = tl_entries_after(held, TL_KEY_RECORD, queue->written, ENTRIES_AT_ONCE, err);
    if (queue->reply == NULL)
        return false;
    size_t n = tl_reply_count(queue->reply);
    for (size_t i = 0; i < n && !tl_archiver_is_full(self) && !queue->asked; i++) {
        if (take_entry(self, held, tl_reply_at(queue->reply, i), &problem))
            continue;
        const bool is_of_queue =
            problem.kind == TL_ERR_PROTOCOL || tl_archiver_is_refused(self, &problem);
        if (is_of_queue && i > 0)
            break; /* those before it are written first */
        if (is_of_queue) {
            *err = problem;
            return false;
        }
        self->problem = problem;
        self->usable = false;
        return true;
    }
    if (queue->asked && queue->entries == 0)
        return tl_archiver_acknowledge(self, held, now_ms, err);
    bool more = n == strtoul(ENTRIES_AT_ONCE, NULL, 10) || queue->entries < n;
    queue->look_ms = more ? now_ms : now_ms + (n > 0 ? TL_ARCHIVER_GATHER_MS : LOOK_MS);
    return true;
}

bool tl_archiver_acknowledge(struct tl_archiver *self, struct tl_held_queue *held, int64_t now_ms,
                             struct tl_error *err)
{
    struct tl_archived_queue *queue = held->state;
    struct tl_args *args = &self->args;
    tl_call_begin(args, TL_FN_ARCHIVE, &held->keys);
    tl_args_uint(args, self->config->retention.events_entries);
    tl_args_uint(args, tl_queue_is_rehearsal(held->keys.queue) ? 0 : self->config->archive.entries);
    tl_args_uint(args, self->config->archive.bytes / TL_RECORD_UNIT);
    tl_args_str(args, queue->taken);
    tl_args_uint(args, queue->entries);
    tl_args_uint(args, queue->units);
    tl_args_uint(args, queue->known.generation);
    if (queue->asked)
        tl_args_uint(args, queue->known.written);
    else
        tl_args_str(args, "");
    tl_args_uint(args, (uint64_t)queue->known.at_ms);
    tl_args_uint(args, queue->known.written);
    struct tl_reply *reply = tl_call(held->redis, args, err);
    if (reply == NULL)
        return false;
    if (queue->taken[0] != '\0')
        snprintf(queue->written, sizeof(queue->written), "%s", queue->taken);
    queue->asked = false;
    tl_metrics_add(self->process->metrics, TL_ARCHIVED_ENTRIES, (int64_t)queue->entries);
    queue->behind = tl_reply_signed(reply, TL_ARCHIVE_ENTRIES);
    queue->behind_ms = tl_reply_signed(reply, TL_ARCHIVE_AGE);
    queue->missing = tl_reply_signed(reply, TL_ARCHIVE_MISSING);
    queue->restore.wanted = tl_reply_signed(reply, TL_ARCHIVE_RESTORE);
    queue->restore.back = tl_reply_signed(reply, TL_ARCHIVE_BACK) != 0;
    queue->store_generation = tl_reply_number(reply, TL_ARCHIVE_GENERATION);
    queue->archived = tl_reply_number(reply, TL_ARCHIVE_ARCHIVED);
    bool again = tl_reply_signed(reply, TL_ARCHIVE_AGAIN) != 0;
    queue->report_ms = again ? now_ms : now_ms + REPORT_MS;
    if (again || queue->behind > 0)
        queue->look_ms = queue->look_ms < now_ms + TL_ARCHIVER_GATHER_MS
                             ? queue->look_ms
                             : now_ms + TL_ARCHIVER_GATHER_MS;
    tl_reply_free(reply);
    tl_archiver_let_go(queue);
    return true;
}
