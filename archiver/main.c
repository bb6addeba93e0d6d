/* SPDX-License-Identifier: Apache-2.0 */
/* The archiver: writes to PostgreSQL what the steps of queues leave in their records in Redis, and
 * acknowledges only what PostgreSQL has committed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "archiver/database.h"
#include "archiver/entries.h"
#include "archiver/metrics.h"
#include "archiver/restore.h"
#include "common/base/clock.h"
#include "common/base/grow.h"
#include "common/base/log.h"
#include "common/role/role_main.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "common/wire/names.h"
#include "common/wire/record.h"

#define ENTRIES_AT_ONCE "100" /* of a record, read by one command */
#define CHANGES_AT_ONCE "500"

enum {
    ROWS_MAX = 20000,   /* of a batch, and those of one more entry */
    GATHER_MS = 200,    /* between two looks at a record that has entries */
    LOOK_MS = 1000,     /* at one that has none */
    REPORT_MS = 2000,   /* at least this often the store is asked how far behind this is */
    CHANGES_MS = 10000, /* between two looks at the record of changes */
    SWEEP_MS = 3600000, /* between two questions whether old entries are to be dropped */
    BACKOFF_BASE_MS = 500,
    BACKOFF_LIMIT_MS = 10000,
    LOG_EVERY_MS = 10000
};

/* The state of one held queue. */
struct queue {
    char written[TL_ENTRY_ID_MAX]; /* the id of the last entry that PostgreSQL has */
    char taken[TL_ENTRY_ID_MAX];   /* of the last one in the batch; "": none */
    uint64_t entries, units;       /* of those in the batch */
    struct tl_reply *reply;        /* which the batch borrows from */
    struct tl_archive_part known;  /* as PostgreSQL numbers the last generation; 0: not known */
    char change[TL_ENTRY_ID_MAX]; /* the id of the last change that PostgreSQL has; "": not known */
    int64_t look_ms, report_ms, changes_ms; /* local monotonic: when they are due */
    int64_t behind, behind_ms, missing;     /* as the store said last */
    struct tl_restore restore;
};

/* A queue that this process does not hold, and that may be deleted: what is left of its record is
 * archived, too. */
struct gone {
    struct tl_held_queue held;
    struct queue queue;
};

struct archiver {
    struct tl_process *process;
    const struct tl_config *config;
    struct tl_database database;
    struct tl_archive_batch batch;
    struct tl_error problem; /* of the batch, or of PostgreSQL */
    struct tl_args args;
    struct tl_backoff backoff;
    struct tl_log_limit failure_log;
    int64_t retry_ms, sweep_ms;
    bool usable; /* PostgreSQL is connected in this turn */
    struct gone **gone;
    size_t n_gone, gone_capacity;
};

/* ---- queues acquired and lost ---- */

static bool take(void *context, struct tl_held_queue *held, struct tl_error *err)
{
    struct queue *queue = held->state;
    (void)context, (void)err;
    snprintf(queue->written, sizeof(queue->written), "0-0");
    return true;
}

/* What was read and not written is read again. */
static void let_go(struct queue *queue)
{
    tl_reply_free(queue->reply);
    queue->reply = NULL;
    queue->taken[0] = '\0';
    queue->entries = queue->units = 0;
}

/* Out of memory it is left out: the next start looks for it. */
static void add_gone(struct archiver *self, const char *name)
{
    for (size_t i = 0; i < self->n_gone; i++)
        if (strcmp(self->gone[i]->held.keys.queue, name) == 0)
            return;
    struct gone **list =
        tl_grow(self->gone, &self->gone_capacity, self->n_gone + 1, sizeof(struct gone *));
    struct gone *gone = calloc(1, sizeof(*gone));
    self->gone = list != NULL ? list : self->gone;
    if (list == NULL || gone == NULL) {
        free(gone);
        return;
    }
    tl_keys_init(&gone->held.keys, self->config->redis.key_prefix, name);
    gone->held.redis = tl_store_of(self->process->store, name);
    gone->held.state = &gone->queue;
    snprintf(gone->queue.written, sizeof(gone->queue.written), "0-0");
    list[self->n_gone++] = gone;
}

static void remove_gone(struct archiver *self, size_t i)
{
    let_go(&self->gone[i]->queue);
    free(self->gone[i]);
    self->gone[i] = self->gone[--self->n_gone];
}

static void drop(void *context, struct tl_held_queue *held)
{
    let_go(held->state);
    add_gone(context, held->keys.queue);
}

static void outdated(void *context, struct tl_held_queue *held)
{
    struct queue *queue = held->state;
    (void)context;
    let_go(queue);
    snprintf(queue->written, sizeof(queue->written), "0-0");
    queue->known = (struct tl_archive_part){0};
    queue->restore.active = false;
    queue->look_ms = queue->report_ms = 0;
}

/* ---- reading a record ---- */

static bool is_full(const struct tl_archive_batch *batch)
{
    return batch->closed || batch->n_rows >= ROWS_MAX;
}

/* The part of the batch for this generation. NULL with err. */
static struct tl_archive_part *part_of(struct archiver *self, struct tl_held_queue *held,
                                       uint64_t generation, struct tl_error *err)
{
    struct queue *queue = held->state;
    struct tl_archive_part *part =
        tl_archive_batch_find(&self->batch, held->keys.queue, generation);
    if (part != NULL)
        return part;
    part = tl_archive_batch_add(&self->batch, held->keys.queue, generation);
    if (part == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for what is to be archived");
        return NULL;
    }
    if (queue->known.generation != generation) {
        if (!tl_database_part(&self->database, part, err))
            return NULL;
        queue->known = (struct tl_archive_part){.generation = generation,
                                                .generation_id = part->generation_id,
                                                .queue_id = part->queue_id,
                                                .written = part->written};
    }
    part->generation_id = queue->known.generation_id;
    part->queue_id = queue->known.queue_id;
    part->written = queue->known.written;
    return part;
}

/* One that cannot be read was written by something else, and is left out. TL_ERR_PROTOCOL: it is of
 * another release, and has to wait for that. */
static bool take_entry(struct archiver *self, struct tl_held_queue *held,
                       const struct tl_reply *entry, struct tl_error *err)
{
    struct queue *queue = held->state;
    struct tl_record record;
    size_t length;
    const char *bytes = tl_reply_string(tl_reply_at(tl_reply_at(entry, 1), 1), &length);
    if (tl_record_open(bytes, length, &record, &self->problem)) {
        struct tl_archive_part *part = part_of(self, held, record.generation, err);
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

/* Puts the next entries of the record into the batch. False when Redis failed, or another release
 * wrote the first of them; an error of PostgreSQL goes to self->problem, and makes it unusable. */
static bool read_record(struct archiver *self, struct tl_held_queue *held, int64_t now_ms,
                        struct tl_error *err)
{
    struct queue *queue = held->state;
    struct tl_error problem = {0};
    queue->reply = tl_entries_after(held, TL_KEY_RECORD, queue->written, ENTRIES_AT_ONCE, err);
    if (queue->reply == NULL)
        return false;
    size_t n = tl_reply_count(queue->reply);
    for (size_t i = 0; i < n && !is_full(&self->batch); i++) {
        if (take_entry(self, held, tl_reply_at(queue->reply, i), &problem))
            continue;
        if (problem.kind == TL_ERR_PROTOCOL && i > 0)
            break; /* those before it are written first */
        if (problem.kind == TL_ERR_PROTOCOL) {
            *err = problem;
            return false;
        }
        self->problem = problem;
        self->usable = false;
        return true;
    }
    bool more = n == strtoul(ENTRIES_AT_ONCE, NULL, 10) || queue->entries < n;
    queue->look_ms = more ? now_ms : now_ms + (n > 0 ? GATHER_MS : LOOK_MS);
    return true;
}

/* ---- acknowledging ---- */

/* Tells the store what was written, and asks it how far behind this is. */
static bool acknowledge(struct archiver *self, struct tl_held_queue *held, int64_t now_ms,
                        struct tl_error *err)
{
    struct queue *queue = held->state;
    struct tl_args *args = &self->args;
    tl_call_begin(args, TL_FN_ARCHIVE, &held->keys);
    tl_args_uint(args, self->config->retention.events_entries);
    tl_args_uint(args, tl_queue_is_rehearsal(held->keys.queue) ? 0 : self->config->archive.entries);
    tl_args_uint(args, self->config->archive.bytes / TL_RECORD_UNIT);
    tl_args_str(args, queue->taken);
    tl_args_uint(args, queue->entries);
    tl_args_uint(args, queue->units);
    struct tl_reply *reply = tl_call(held->redis, args, err);
    if (reply == NULL)
        return false;
    if (queue->taken[0] != '\0')
        snprintf(queue->written, sizeof(queue->written), "%s", queue->taken);
    tl_metrics_add(self->process->metrics, TL_ARCHIVED_ENTRIES, (int64_t)queue->entries);
    queue->behind = tl_reply_signed(reply, TL_ARCHIVE_ENTRIES);
    queue->behind_ms = tl_reply_signed(reply, TL_ARCHIVE_AGE);
    queue->missing = tl_reply_signed(reply, TL_ARCHIVE_MISSING);
    queue->restore.wanted = tl_reply_signed(reply, TL_ARCHIVE_RESTORE);
    bool again = tl_reply_signed(reply, TL_ARCHIVE_AGAIN) != 0;
    queue->report_ms = again ? now_ms : now_ms + REPORT_MS;
    if (again || queue->behind > 0)
        queue->look_ms = queue->look_ms < now_ms + GATHER_MS ? queue->look_ms : now_ms + GATHER_MS;
    tl_reply_free(reply);
    let_go(queue);
    return true;
}

/* ---- queues that were deleted ---- */

/* Reads what is left of the records of queues that are not there any longer. */
static bool read_gone(struct archiver *self, int64_t now_ms, struct tl_error *err)
{
    for (size_t i = self->n_gone; self->usable && !is_full(&self->batch) && i-- > 0;) {
        struct gone *gone = self->gone[i];
        bool is_there;
        if (!tl_entries_queue_exists(&gone->held, &is_there, err) ||
            (!is_there && !read_record(self, &gone->held, now_ms, err))) {
            if (!tl_error_is_of_queue(err, gone->held.redis))
                return false;
            tl_log(TL_LOG_ERROR,
                   &(struct tl_log_fields){.queue = gone->held.keys.queue, .error = err},
                   "the rest of the record of a deleted queue cannot be read");
            remove_gone(self, i); /* the next connection to PostgreSQL looks for it again */
            continue;
        }
        if (is_there || (self->usable && tl_reply_count(gone->queue.reply) == 0))
            remove_gone(self, i);
    }
    return true;
}

/* Drops what was written of them. */
static bool trim_gone(struct archiver *self, struct tl_error *err)
{
    for (size_t i = 0; i < self->n_gone; i++) {
        struct queue *queue = &self->gone[i]->queue;
        if (!tl_entries_drop(&self->gone[i]->held, queue->taken, err))
            return false;
        queue->known = (struct tl_archive_part){0};
        let_go(queue);
    }
    return true;
}

/* ---- the record of changes ---- */

static bool read_changes(struct archiver *self, struct tl_held_queue *held, int64_t now_ms,
                         struct tl_error *err)
{
    struct queue *queue = held->state;
    const char *name = held->keys.queue;
    struct tl_error problem = {0};
    bool ok = queue->change[0] != '\0' ||
              tl_database_last_change(&self->database, name, queue->change, &problem);
    struct tl_reply *reply = NULL;
    if (ok) {
        reply = tl_entries_after(held, TL_KEY_CHANGES, queue->change, CHANGES_AT_ONCE, err);
        if (reply == NULL)
            return false;
        ok = tl_database_changes(&self->database, name, reply, &problem);
    }
    size_t n = tl_reply_count(reply);
    if (ok && n > 0)
        snprintf(queue->change, sizeof(queue->change), "%s",
                 tl_reply_text(tl_reply_at(reply, n - 1), 0));
    tl_reply_free(reply);
    queue->changes_ms = n == strtoul(CHANGES_AT_ONCE, NULL, 10) ? now_ms : now_ms + CHANGES_MS;
    if (!ok) {
        queue->change[0] = '\0';
        self->problem = problem;
        self->usable = false;
    }
    return true;
}

/* ---- the turn of a queue ---- */

/* An error of PostgreSQL makes it unusable. */
static bool restore(struct archiver *self, struct tl_held_queue *held, int64_t now_ms,
                    struct tl_error *err)
{
    struct queue *queue = held->state;
    struct tl_error problem = {0};
    enum tl_restore_step step =
        tl_restore_serve(&queue->restore, self->process, &self->database, held, now_ms, &problem);
    if (step == TL_RESTORE_STORE_FAILED)
        *err = problem;
    if (step != TL_RESTORE_DATABASE_FAILED)
        return step == TL_RESTORE_ON;
    self->problem = problem;
    self->usable = false;
    return true;
}

static bool serve(void *context, struct tl_held_queue *held, int64_t now_ms, int64_t *due_ms,
                  struct tl_error *err)
{
    struct archiver *self = context;
    struct queue *queue = held->state;
    if (now_ms >= queue->report_ms && !acknowledge(self, held, now_ms, err))
        return false;
    if (self->usable && !restore(self, held, now_ms, err))
        return false;
    if (queue->restore.active && queue->restore.due_ms < *due_ms)
        *due_ms = queue->restore.due_ms;
    if (tl_queue_is_rehearsal(held->keys.queue))
        queue->look_ms = INT64_MAX; /* its visitors are invented */
    /* The queue has to be known to PostgreSQL before its changes. They come before the record:
     * after a failure here nothing of the queue may be in the batch, which borrows from it. */
    if (self->usable && queue->known.generation != 0 && now_ms >= queue->changes_ms &&
        !read_changes(self, held, now_ms, err))
        return false;
    /* Visitors who come back go first: what the record has of them waits. */
    if (self->usable && !queue->restore.active && !is_full(&self->batch) &&
        now_ms >= queue->look_ms && !read_record(self, held, now_ms, err))
        return false;
    if (self->usable && queue->look_ms < *due_ms)
        *due_ms = queue->look_ms;
    if (queue->report_ms < *due_ms)
        *due_ms = queue->report_ms;
    return true;
}

/* ---- the turn ---- */

static void note_failure(struct archiver *self, int64_t now_ms)
{
    unsigned suppressed;
    tl_metrics_add(self->process->metrics, TL_ARCHIVED_FAILED, 1);
    self->usable = false;
    if (self->problem.kind == TL_ERR_STALE) /* the lease moved; what was written is skipped */
        return;
    self->retry_ms = now_ms + tl_backoff_next(&self->backoff, randombytes_random());
    self->process->hindrance = self->problem.text;
    if (tl_log_allow(&self->failure_log, now_ms, LOG_EVERY_MS, &suppressed))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = &self->problem},
               "the archive failed, trying again (%u more since the last line)", suppressed);
}

/* It may have been deleted while no archiver ran. */
static void look_for(void *context, const char *queue)
{
    struct archiver *self = context;
    if (tl_roster_find(self->process->roster, queue) == NULL)
        add_gone(self, queue);
}

static void open_database(struct archiver *self, int64_t now_ms)
{
    self->usable = tl_postgres_connected(&self->database.postgres) && now_ms >= self->retry_ms;
    if (self->usable || now_ms < self->retry_ms)
        return;
    self->usable = tl_database_open(&self->database, &self->problem) &&
                   tl_database_queues(&self->database, look_for, self, &self->problem);
    if (!self->usable) {
        tl_postgres_close(&self->database.postgres);
        note_failure(self, now_ms);
    }
}

static void sweep(struct archiver *self, int64_t now_ms)
{
    unsigned n = 0;
    bool again = false;
    struct tl_error problem;
    if (!self->usable || now_ms < self->sweep_ms)
        return;
    bool ok =
        tl_database_sweep(&self->database, self->config->archive.kept_ms, &n, &again, &problem);
    self->sweep_ms = now_ms + (again ? GATHER_MS : SWEEP_MS);
    if (!ok) {
        self->usable = tl_postgres_connected(&self->database.postgres);
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = &problem},
               "old entries could not be dropped, trying again in an hour");
    } else if (n > 0) {
        tl_info("%u generations of queues were older than archive.kept and were dropped", n);
    }
}

/* What was read was not written: it is read again, and must not be acknowledged. */
static void let_all_go(struct archiver *self)
{
    for (size_t i = 0; i < tl_roster_count(self->process->roster) + self->n_gone; i++) {
        size_t held = tl_roster_count(self->process->roster);
        struct queue *queue =
            i < held ? tl_roster_at(self->process->roster, i)->state : &self->gone[i - held]->queue;
        let_go(queue);
        queue->known = (struct tl_archive_part){0};
    }
}

/* Writes the batch, and tells the store. False when that failed. */
static bool write_batch(struct archiver *self, struct tl_error *err)
{
    struct tl_process *process = self->process;
    int64_t began_us = tl_clock_us();
    bool written =
        self->usable && (self->batch.n_parts == 0 ||
                         tl_database_write(&self->database, &self->batch, &self->problem));
    int64_t now_ms = tl_clock_ms();
    if (written && self->batch.n_parts > 0) {
        tl_metrics_observe(process->metrics, TL_ARCHIVED_WRITE_TIME, tl_clock_us() - began_us);
        tl_metrics_add(process->metrics, TL_ARCHIVED_ROWS, (int64_t)self->batch.n_rows);
    }
    if (!written && self->problem.kind != TL_OK && now_ms >= self->retry_ms)
        note_failure(self, now_ms);
    if (!written) {
        let_all_go(self);
        return true;
    }
    for (size_t i = 0; i < tl_roster_count(process->roster); i++) {
        struct tl_held_queue *held = tl_roster_at(process->roster, i);
        struct queue *queue = held->state;
        const struct tl_archive_part *part =
            tl_archive_batch_find(&self->batch, held->keys.queue, queue->known.generation);
        if (part != NULL && part->event > queue->known.written)
            queue->known.written = part->event;
        if (queue->entries == 0)
            let_go(queue);
        else if (!acknowledge(self, held, now_ms, err) &&
                 !tl_process_set_aside(process, held, now_ms, err))
            return false;
    }
    self->process->hindrance = NULL;
    self->problem.kind = TL_OK;
    tl_backoff_reset(&self->backoff);
    return trim_gone(self, err);
}

static void report(const struct archiver *self)
{
    struct tl_metrics *metrics = self->process->metrics;
    int64_t behind = 0, behind_ms = 0, missing = 0;
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++) {
        const struct queue *queue = tl_roster_at(self->process->roster, i)->state;
        behind += queue->behind;
        missing += queue->missing;
        behind_ms = queue->behind_ms > behind_ms ? queue->behind_ms : behind_ms;
    }
    tl_metrics_set(metrics, TL_ARCHIVED_BEHIND_ENTRIES, behind);
    tl_metrics_set(metrics, TL_ARCHIVED_BEHIND_SECONDS, behind_ms / 1000);
    tl_metrics_set(metrics, TL_ARCHIVED_MISSING, missing);
    tl_metrics_set(metrics, TL_ARCHIVED_CONNECTED, self->usable);
}

static bool turn(void *context, int64_t now_ms, struct tl_error *err)
{
    struct archiver *self = context;
    struct tl_process *process = self->process;
    int64_t due_ms = INT64_MAX;
    if (!tl_process_refresh(process, now_ms, err))
        return false;
    open_database(self, now_ms);
    sweep(self, now_ms);
    bool ok = read_gone(self, now_ms, err) && tl_process_serve(process, now_ms, &due_ms, err) &&
              write_batch(self, err);
    tl_archive_batch_reset(&self->batch);
    report(self);
    if (!ok) {
        let_all_go(self);
        return false;
    }
    now_ms = tl_clock_ms();
    due_ms = self->usable && self->sweep_ms < due_ms ? self->sweep_ms : due_ms;
    for (size_t i = 0; self->usable && i < tl_roster_count(process->roster); i++) {
        const struct tl_held_queue *held = tl_roster_at(process->roster, i);
        const struct queue *queue = held->state;
        if (!tl_troubles_resting(process->troubles, held->keys.queue, now_ms))
            due_ms = queue->look_ms < due_ms ? queue->look_ms : due_ms;
    }
    return tl_process_wait(process, tl_process_wait_ms(process, due_ms, now_ms), err);
}

/* ---- start and stop ---- */

static bool open_archiver(void *context, struct tl_process *process, struct tl_error *err)
{
    struct archiver *self = context;
    const struct tl_config *config = process->config;
    self->process = process;
    self->config = config;
    if (config->archive.url[0] == '\0') {
        process->idle = "archive.url is not set";
        tl_info("archive.url is not set: there is nothing to do");
        return true;
    }
    tl_backoff_init(&self->backoff, BACKOFF_BASE_MS, BACKOFF_LIMIT_MS);
    self->database.url = config->archive.url;
    self->database.pseudonyms = config->archive.pseudonyms;
    return tl_postgres_check(config->archive.url, err) &&
           (!config->archive.pseudonyms ||
            tl_secret_load_key(config->secrets.archive_key, "the key of the archive",
                               "# The key of the pseudonyms of visitors in the archive.\n",
                               self->database.key, err));
}

static void close_archiver(void *context)
{
    struct archiver *self = context;
    while (self->n_gone > 0)
        remove_gone(self, self->n_gone - 1);
    free(self->gone);
    tl_archive_batch_free(&self->batch);
    tl_database_close(&self->database);
    tl_args_free(&self->args);
}

static const struct tl_role role = {
    .name = "archiver",
    .summary = "Writes what happened to each visitor to PostgreSQL.",
    .admin = offsetof(struct tl_config, admin.archiver),
    .size = sizeof(struct archiver),
    .queue_size = sizeof(struct queue),
    .metrics = tl_archive_metrics,
    .n_metrics = TL_ARCHIVED_METRICS,
    .open = open_archiver,
    .close = close_archiver,
    .turn = turn,
    .take = take,
    .drop = drop,
    .outdated = outdated,
    .serve = serve,
};

int main(int argc, char **argv)
{
    return tl_role_main(&role, argc, argv);
}
