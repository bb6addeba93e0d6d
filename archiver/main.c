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

enum {
    SWEEP_MS = 3600000, /* between two questions whether old entries are to be dropped */
    ROUNDS_MS = 2000,   /* between two looks at what operators ask for */
    BACKOFF_BASE_MS = 500,
    BACKOFF_LIMIT_MS = 10000,
    LOG_EVERY_MS = 10000,
    ALONE_MS = 60000 /* for which batches have one queue each, after one was refused */
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
    struct tl_archived_queue *queue = held->state;
    tl_archiver_let_go(queue);
    tl_reconcile_reset(&queue->reconcile);
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
    tl_reconcile_reset(&queue->reconcile);
    queue->look_ms = queue->report_ms = queue->reconcile.due_ms = 0;
}

/* ---- the batch ---- */

static void note_failure(struct tl_archiver *self, int64_t now_ms)
{
    unsigned suppressed;
    if (!self->refused) /* which was counted */
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

/* The batch was not written. False with err: PostgreSQL refuses the only queue in it. */
static bool give_up_batch(struct tl_archiver *self, int64_t now_ms, struct tl_error *err)
{
    const bool is_alone = now_ms < self->alone_ms;
    const bool is_refused = self->usable && tl_roster_count(self->process->roster) > 1 &&
                            tl_archiver_is_refused(self, &self->problem);
    if (is_refused)
        self->alone_ms = now_ms + ALONE_MS;
    let_all_go(self);
    if (is_refused && is_alone) {
        *err = self->problem;
        self->problem.kind = TL_OK;
        return false;
    }
    if (self->problem.kind != TL_OK && now_ms >= self->retry_ms)
        note_failure(self, now_ms);
    return true;
}

/* Writes the batch, which is empty then, and tells the store. False when that failed, or PostgreSQL
 * refuses the only queue in it. */
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
    if (!written) {
        bool ok = give_up_batch(self, now_ms, err);
        tl_archive_batch_reset(&self->batch);
        return ok;
    }
    for (size_t i = 0; i < tl_roster_count(process->roster); i++) {
        struct tl_held_queue *held = tl_roster_at(process->roster, i);
        struct tl_archived_queue *queue = held->state;
        const struct tl_archive_part *part =
            tl_archive_batch_find(&self->batch, held->keys.queue, queue->known.generation);
        if (part != NULL && part->event > queue->known.written)
            queue->known.written = part->event;
        if (part != NULL && part->leaves.n > 0)
            queue->trail_damaged = part->first_leaf == TL_TRAIL_NO_LEAF;
        if (queue->entries == 0)
            tl_archiver_let_go(queue);
        else if (!tl_archiver_acknowledge(self, held, now_ms, err) &&
                 !tl_process_set_aside(process, held, now_ms, err))
            return false;
    }
    tl_archive_batch_reset(&self->batch);
    self->process->hindrance = NULL;
    self->problem.kind = TL_OK;
    tl_backoff_reset(&self->backoff);
    return tl_archiver_trim_gone(self, err);
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

/* Visitors who come back go first: what the record has of them waits. */
static bool is_read(const struct tl_archived_queue *queue)
{
    return !queue->restore.active && !queue->restore.back;
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
        queue->look_ms = queue->reconcile.due_ms = INT64_MAX; /* its visitors are invented */
    /* Before the record: after a failure here nothing of the queue may be in the batch, which
     * borrows from it. */
    if (!tl_archiver_copy(self, held, now_ms, err))
        return false;
    if (self->usable && !self->refused && is_read(queue) && !tl_archiver_is_full(self) &&
        now_ms >= queue->look_ms && !tl_archiver_read(self, held, now_ms, err))
        return false;
    if (now_ms < self->alone_ms && self->batch.n_parts > 0 && !write_batch(self, err))
        return false;
    if (self->usable && is_read(queue) && queue->look_ms < *due_ms)
        *due_ms = queue->look_ms;
    if (queue->report_ms < *due_ms)
        *due_ms = queue->report_ms;
    return true;
}

/* ---- the comparison ---- */

static void take_round(void *context, const char *name, int64_t differences, bool is_asked)
{
    const struct tl_archiver *self = context;
    struct tl_held_queue *held = tl_roster_find(self->process->roster, name);
    struct tl_archived_queue *queue = held != NULL ? held->state : NULL;
    if (queue == NULL)
        return;
    queue->reconcile.differences = differences;
    if (is_asked && !queue->reconcile.asked) {
        tl_reconcile_reset(&queue->reconcile);
        queue->reconcile.asked = true;
        queue->reconcile.due_ms = 0;
    }
}

/* The queue whose step has been due for longest. NULL: none is. */
static struct tl_held_queue *find_due(const struct tl_archiver *self, int64_t now_ms)
{
    struct tl_held_queue *found = NULL;
    int64_t due_ms = now_ms;
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++) {
        struct tl_held_queue *held = tl_roster_at(self->process->roster, i);
        const struct tl_archived_queue *queue = held->state;
        if (queue->reconcile.due_ms <= due_ms && !queue->restore.active &&
            !tl_troubles_resting(self->process->troubles, held->keys.queue, now_ms)) {
            found = held;
            due_ms = queue->reconcile.due_ms;
        }
    }
    return found;
}

/* One step of one queue in each turn that had written all there was. */
static bool reconcile(struct tl_archiver *self, int64_t now_ms, struct tl_error *err)
{
    struct tl_error problem = {0};
    if (self->usable && now_ms >= self->rounds_ms) {
        self->rounds_ms = now_ms + ROUNDS_MS;
        self->usable = tl_database_rounds(&self->database, take_round, self, &self->problem);
    }
    struct tl_held_queue *held = self->usable ? find_due(self, now_ms) : NULL;
    if (held == NULL)
        return true;
    struct tl_archived_queue *queue = held->state;
    enum tl_reconcile_step step = tl_reconcile_serve(&queue->reconcile, &self->database, held,
                                                     self->config, now_ms, &problem);
    tl_metrics_add(self->process->metrics, TL_ARCHIVED_COMPARED,
                   (int64_t)queue->reconcile.compared);
    queue->reconcile.compared = 0;
    if (step == TL_RECONCILE_ON)
        return true;
    tl_reconcile_reset(&queue->reconcile);
    queue->reconcile.due_ms = now_ms + BACKOFF_LIMIT_MS;
    if (step == TL_RECONCILE_DATABASE_FAILED) {
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = held->keys.queue, .error = &problem},
               "Redis and the archive could not be compared, trying again");
        self->usable = tl_postgres_connected(&self->database.postgres);
        return true;
    }
    *err = problem;
    return tl_process_set_aside(self->process, held, now_ms, err);
}

/* ---- the turn ---- */

/* PostgreSQL may be another server, or have gone back to an older copy: what is remembered of it is
 * asked again. */
static void forget_database(struct tl_archiver *self)
{
    let_all_go(self);
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++) {
        struct tl_archived_queue *queue = tl_roster_at(self->process->roster, i)->state;
        for (size_t copy = 0; copy < TL_COPIES; copy++)
            queue->copied[copy].id[0] = '\0';
        if (queue->reconcile.phase != TL_RECONCILE_NONE)
            tl_reconcile_reset(&queue->reconcile);
    }
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
    forget_database(self);
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

static void report(const struct tl_archiver *self)
{
    struct tl_metrics *metrics = self->process->metrics;
    int64_t behind = 0, behind_ms = 0, missing = 0, differences = 0, damaged = 0;
    for (size_t i = 0; i < tl_roster_count(self->process->roster); i++) {
        const struct tl_archived_queue *queue = tl_roster_at(self->process->roster, i)->state;
        behind += queue->behind;
        missing += queue->missing;
        differences += queue->reconcile.differences;
        damaged += queue->trail_damaged;
        behind_ms = queue->behind_ms > behind_ms ? queue->behind_ms : behind_ms;
    }
    tl_metrics_set(metrics, TL_ARCHIVED_BEHIND_ENTRIES, behind);
    tl_metrics_set(metrics, TL_ARCHIVED_BEHIND_SECONDS, behind_ms / 1000);
    tl_metrics_set(metrics, TL_ARCHIVED_MISSING, missing);
    tl_metrics_set(metrics, TL_ARCHIVED_DIFFERENCES, differences);
    tl_metrics_set(metrics, TL_ARCHIVED_TRAILS_DAMAGED, damaged);
    tl_metrics_set(metrics, TL_ARCHIVED_CONNECTED, self->usable);
}

static bool turn(void *context, int64_t now_ms, struct tl_error *err)
{
    struct tl_archiver *self = context;
    struct tl_process *process = self->process;
    int64_t due_ms = INT64_MAX;
    if (!tl_process_refresh(process, now_ms, err))
        return false;
    self->refused = false;
    open_database(self, now_ms);
    sweep(self, now_ms);
    bool ok = (now_ms < self->alone_ms || tl_archiver_read_gone(self, now_ms, err)) &&
              tl_process_serve(process, now_ms, &due_ms, err);
    const bool is_behind = tl_archiver_is_full(self);
    ok = ok && write_batch(self, err);
    tl_archive_batch_reset(&self->batch);
    ok = ok && (is_behind || reconcile(self, tl_clock_ms(), err));
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
        if (tl_troubles_resting(process->troubles, held->keys.queue, now_ms))
            continue;
        if (is_read(queue) && queue->look_ms < due_ms)
            due_ms = queue->look_ms;
        if (!queue->restore.active && queue->reconcile.due_ms < due_ms)
            due_ms = queue->reconcile.due_ms;
    }
    return tl_process_wait(process, tl_process_wait_ms(process, due_ms, now_ms), err);
}

/* ---- start and stop ---- */

static bool load_keys(struct tl_archiver *self, const struct tl_config *config,
                      struct tl_error *err)
{
    unsigned char seed[TL_TRAIL_SEED_BYTES];
    unsigned char hash[crypto_generichash_BYTES_MIN];
    bool ok =
        tl_secret_load_key(config->secrets.archive_key, "the key of the archive",
                           "# The key of the pseudonyms of visitors in the archive, and of "
                           "their names in the trail.\n",
                           self->database.key, err) &&
        tl_secret_load_key(config->secrets.trail_key, "the key of the trail",
                           "# The key that signs the trail of what was archived.\n", seed, err) &&
        tl_trail_signer_init(&self->database.trail.signer, seed, config->http.public_url, err);
    sodium_memzero(seed, sizeof(seed));
    if (ok) {
        crypto_generichash(hash, sizeof(hash), self->database.key, sizeof(self->database.key), NULL,
                           0);
        sodium_bin2hex(self->database.key_hash, sizeof(self->database.key_hash), hash,
                       sizeof(hash));
        tl_trail_verifier_write(&self->database.trail.signer, self->database.verifier);
    }
    self->batch.salts = self->database.key;
    return ok;
}

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
    return tl_postgres_check(config->archive.url, err) && load_keys(self, config, err);
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
