/* SPDX-License-Identifier: Apache-2.0 */
/* The archiver: writes to PostgreSQL what the steps of queues leave in their records in Redis, and
 * acknowledges only what PostgreSQL has committed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "archiver/archiver.h"
#include "archiver/metrics.h"
#include "common/base/clock.h"
#include "common/role/role_main.h"
#include "common/store/reply.h"

#define CHANGES_AT_ONCE "500"

enum {
    CHANGES_MS = 2000,  /* between two looks at the record of changes */
    SWEEP_MS = 3600000, /* between two questions whether old entries are to be dropped */
    BACKOFF_BASE_MS = 500,
    BACKOFF_LIMIT_MS = 10000,
    LOG_EVERY_MS = 10000
};

/* ---- queues acquired and lost ---- */

static bool take(void *context, struct tl_held_queue *held, struct tl_error *err)
{
    struct tl_archived_queue *queue = held->state;
    (void)context, (void)err;
    snprintf(queue->written, sizeof(queue->written), "0-0");
    return true;
}

static void drop(void *context, struct tl_held_queue *held)
{
    tl_archiver_let_go(held->state);
    tl_archiver_add_gone(context, held->keys.queue);
}

static void outdated(void *context, struct tl_held_queue *held)
{
    struct tl_archived_queue *queue = held->state;
    (void)context;
    tl_archiver_let_go(queue);
    snprintf(queue->written, sizeof(queue->written), "0-0");
    queue->known = (struct tl_archive_part){0};
    queue->restore.active = false;
    queue->look_ms = queue->report_ms = 0;
}

/* ---- the record of changes ---- */

static bool read_changes(struct tl_archiver *self, struct tl_held_queue *held, int64_t now_ms,
                         struct tl_error *err)
{
    struct tl_archived_queue *queue = held->state;
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
static bool restore(struct tl_archiver *self, struct tl_held_queue *held, int64_t now_ms,
                    struct tl_error *err)
{
    struct tl_archived_queue *queue = held->state;
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
    struct tl_archiver *self = context;
    struct tl_archived_queue *queue = held->state;
    if (now_ms >= queue->report_ms && !tl_archiver_acknowledge(self, held, now_ms, err))
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
    if (self->usable && !queue->restore.active && !queue->restore.back &&
        !tl_archiver_is_full(self) && now_ms >= queue->look_ms &&
        !tl_archiver_read(self, held, now_ms, err))
        return false;
    if (self->usable && queue->look_ms < *due_ms)
        *due_ms = queue->look_ms;
    if (queue->report_ms < *due_ms)
        *due_ms = queue->report_ms;
    return true;
}

/* ---- the turn ---- */

static void note_failure(struct tl_archiver *self, int64_t now_ms)
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
    struct tl_archiver *self = context;
    if (tl_roster_find(self->process->roster, queue) == NULL)
        tl_archiver_add_gone(self, queue);
}

static void open_database(struct tl_archiver *self, int64_t now_ms)
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

static void sweep(struct tl_archiver *self, int64_t now_ms)
{
    unsigned n = 0;
    bool again = false;
    struct tl_error problem;
    if (!self->usable || now_ms < self->sweep_ms)
        return;
    bool ok =
        tl_database_sweep(&self->database, self->config->archive.kept_ms, &n, &again, &problem);
    self->sweep_ms = now_ms + (again ? TL_ARCHIVER_GATHER_MS : SWEEP_MS);
    if (!ok) {
        self->usable = tl_postgres_connected(&self->database.postgres);
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = &problem},
               "old entries could not be dropped, trying again in an hour");
    } else if (n > 0) {
        tl_info("%u generations of queues were older than archive.kept and were dropped", n);
    }
}

/* What was read was not written: it is read again, and must not be acknowledged. */
static void let_all_go(struct tl_archiver *self)
{
    for (size_t i = 0; i < tl_roster_count(self->process->roster) + self->n_gone; i++) {
        size_t held = tl_roster_count(self->process->roster);
        struct tl_archived_queue *queue =
            i < held ? tl_roster_at(self->process->roster, i)->state : &self->gone[i - held]->queue;
        tl_archiver_let_go(queue);
        queue->known = (struct tl_archive_part){0};
    }
}

/* Writes the batch, and tells the store. False when that failed. */
static bool write_batch(struct tl_archiver *self, struct tl_error *err)
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
        struct tl_archived_queue *queue = held->state;
        const struct tl_archive_part *part =
            tl_archive_batch_find(&self->batch, held->keys.queue, queue->known.generation);
        if (part != NULL && part->event > queue->known.written)
            queue->known.written = part->event;
        if (queue->entries == 0)
            tl_archiver_let_go(queue);
        else if (!tl_archiver_acknowledge(self, held, now_ms, err) &&
                 !tl_process_set_aside(process, held, now_ms, err))
            return false;
    }
    self->process->hindrance = NULL;
    self->problem.kind = TL_OK;
    tl_backoff_reset(&self->backoff);
    return tl_archiver_trim_gone(self, err);
}

static void report(const struct tl_archiver *self)
{
    struct tl_metrics *metrics = self->process->metrics;
    int64_t behind = 0, behind_ms = 0, missing = 0;
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++) {
        const struct tl_archived_queue *queue = tl_roster_at(self->process->roster, i)->state;
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
    struct tl_archiver *self = context;
    struct tl_process *process = self->process;
    int64_t due_ms = INT64_MAX;
    if (!tl_process_refresh(process, now_ms, err))
        return false;
    open_database(self, now_ms);
    sweep(self, now_ms);
    bool ok = tl_archiver_read_gone(self, now_ms, err) &&
              tl_process_serve(process, now_ms, &due_ms, err) && write_batch(self, err);
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
        const struct tl_archived_queue *queue = held->state;
        if (!tl_troubles_resting(process->troubles, held->keys.queue, now_ms))
            due_ms = queue->look_ms < due_ms ? queue->look_ms : due_ms;
    }
    return tl_process_wait(process, tl_process_wait_ms(process, due_ms, now_ms), err);
}

/* ---- start and stop ---- */

static bool open_archiver(void *context, struct tl_process *process, struct tl_error *err)
{
    struct tl_archiver *self = context;
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
    struct tl_archiver *self = context;
    tl_archiver_free_gone(self);
    tl_archive_batch_free(&self->batch);
    tl_database_close(&self->database);
    tl_args_free(&self->args);
}

static const struct tl_role role = {
    .name = "archiver",
    .summary = "Writes what happened to each visitor to PostgreSQL.",
    .admin = offsetof(struct tl_config, admin.archiver),
    .size = sizeof(struct tl_archiver),
    .queue_size = sizeof(struct tl_archived_queue),
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
