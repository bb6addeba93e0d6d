/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/keys.h"
#include "common/store/library.h"
#include "common/store/reply.h"
#include "common/store/store.h"
#include "worker/feed/ingest.h"
#include "worker/report/worker_metrics.h"

enum {
    RETRY_BASE_MS = 50,
    RETRY_LIMIT_MS = 2000,
    REPEAT_MS = 60000, /* how long repeats of a batch may be refused */
    IDLE_MS = 1000,    /* without a batch, the connection is checked this often */
    LOG_EVERY_MS = 5000,
    LIBRARY_AGAIN_MS = 5000,
    DENIED_LOG_MS = 600000,
};

struct tl_ingest {
    struct tl_ingest_settings settings;
    pthread_t thread;
    bool started;
    struct tl_mailbox *requests; /* to the thread */
    struct tl_mailbox *results;  /* to the loop */
    /* The thread's own: */
    struct tl_store *store;
    struct tl_messages pending; /* jobs taken from the requests, without a result yet */
    struct tl_backoff backoff;
    int64_t retry_ms; /* when to connect again */
    bool up;
    enum tl_error_kind refuses;       /* what the store answered to the last batch */
    enum tl_error_kind refuses_known; /* to the loop */
    bool reported;                    /* the loop knows whether the store is up */
    struct tl_log_limit limit, denied_limit;
    uint64_t epoch;     /* of the connection in the last turn */
    int64_t library_ms; /* when the store is told again which library is in use */
};

static struct tl_job *job_of(struct tl_message *message)
{
    return (struct tl_job *)message;
}

static bool is_batch(const struct tl_job *job)
{
    return job->kind == TL_INGEST_BATCH;
}

static void free_job(struct tl_job *job)
{
    for (size_t i = 0; i < job->n; i++) {
        tl_args_free(&job->commands[i]);
        tl_reply_free(job->replies[i]);
    }
    free(job->bytes);
    free(job);
}

/* ---- the thread: results ---- */

static bool connected(const struct tl_ingest *ingest)
{
    return tl_redis_connected(tl_store_common(ingest->store));
}

/* Notes from the answer to a batch whether the store refuses all batches. */
static void note_answer(struct tl_ingest *ingest, const struct tl_error *refusal)
{
    bool all = refusal->kind == TL_ERR_MISCONF || refusal->kind == TL_ERR_OOM;
    if (all || refusal->kind == TL_OK)
        ingest->refuses = all ? refusal->kind : TL_OK;
}

/* Posts a job with its replies, or refused, to the loop. */
static void post(struct tl_ingest *ingest, struct tl_job *job)
{
    unsigned suppressed;
    if (is_batch(job) && job->refusal.kind != TL_OK && !job->doubtful)
        tl_metrics_add(ingest->settings.metrics, TL_WORKER_BATCHES_REFUSED, 1);
    /* The store's user is of an earlier release. Other refusals concern batches too, and are logged
     * with them. */
    if (job->denied != NULL && job->refusal.kind == TL_ERR_DENIED &&
        tl_log_allow(&ingest->denied_limit, tl_clock_ms(), DENIED_LOG_MS, &suppressed))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = job->queue, .error = &job->refusal},
               "%s: make the users of the store again (deploy/redis)", job->denied);
    tl_mailbox_put(ingest->results, &job->message, sizeof(*job));
}

/* Tells the loop when the state of the store has changed. */
static void report_store(struct tl_ingest *ingest, bool up)
{
    if (ingest->reported && ingest->up == up && ingest->refuses == ingest->refuses_known)
        return;
    struct tl_job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return; /* the next turn of the thread tries again */
    ingest->up = up;
    ingest->refuses_known = ingest->refuses;
    ingest->reported = true;
    job->kind = TL_INGEST_STORE;
    job->up = up;
    job->refuses = ingest->refuses;
    post(ingest, job);
}

/* Without a connection: refuses what was never sent, and keeps batches that may have arrived. */
static void refuse_unsent(struct tl_ingest *ingest, const struct tl_error *err)
{
    struct tl_messages all = ingest->pending;
    struct tl_message *message;
    ingest->pending.first = NULL;
    while ((message = tl_messages_take(&all)) != NULL) {
        struct tl_job *job = job_of(message);
        if (is_batch(job) && job->tried) {
            job->doubtful = true;
            tl_messages_add(&ingest->pending, message);
        } else {
            job->refusal = *err;
            post(ingest, job);
        }
    }
}

static void connection_failed(struct tl_ingest *ingest, const struct tl_error *err)
{
    unsigned suppressed;
    int64_t now_ms = tl_clock_ms();
    tl_redis_close(tl_store_common(ingest->store));
    ingest->retry_ms = now_ms + tl_backoff_next(&ingest->backoff, randombytes_random());
    if (tl_log_allow(&ingest->limit, now_ms, LOG_EVERY_MS, &suppressed))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = err},
               "cannot send batches to the store; trying again");
    report_store(ingest, false);
    refuse_unsent(ingest, err);
}

/* ---- the thread: one round trip ---- */

/* The command of a batch, for its next attempt. */
static void begin_batch(const struct tl_ingest *ingest, struct tl_job *job)
{
    struct tl_args *command = &job->commands[0];
    struct tl_keys keys;
    tl_keys_init(&keys, ingest->settings.key_prefix, job->queue);
    tl_args_reset(command);
    if (job->past_limit)
        tl_call_begin(command, TL_FN_APPEND, &keys);
    else /* NOMKSTREAM: a deleted queue must not come back as a lone stream. */
        tl_args_strs(command, "XADD", keys.names[TL_KEY_INGEST], "NOMKSTREAM", "*", "d", NULL);
    tl_args_bin(command, job->bytes, job->length);
}

static bool append(struct tl_ingest *ingest, struct tl_job *job, struct tl_error *err)
{
    bool ok = true;
    if (is_batch(job)) {
        if (job->tried && !job->past_limit)
            tl_metrics_add(ingest->settings.metrics, TL_WORKER_BATCHES_REPEATED, 1);
        begin_batch(ingest, job);
    }
    job->tried = true;
    for (size_t i = 0; ok && i < job->n; i++)
        ok = tl_redis_append(tl_store_of(ingest->store, job->queue), &job->commands[i], err);
    return ok;
}

/* False for a refusal: the store has answered. A replica's answer is none: an earlier attempt may
 * have reached the master. */
static bool outcome_unknown(const struct tl_error *err)
{
    return err->kind == TL_ERR_CONNECT || err->kind == TL_ERR_TIMEOUT ||
           err->kind == TL_ERR_PROTOCOL || err->kind == TL_ERR_READONLY;
}

/* Receives the replies. False when the connection failed: then it is not known whether the store
 * took the commands. */
static bool receive(struct tl_ingest *ingest, struct tl_job *job, struct tl_error *err)
{
    job->refusal = (struct tl_error){0};
    for (size_t i = 0; i < job->n; i++) {
        struct tl_error problem = {0};
        job->replies[i] = tl_redis_next(tl_store_of(ingest->store, job->queue), &problem);
        if (job->replies[i] != NULL)
            continue;
        if (outcome_unknown(&problem)) {
            *err = problem;
            return false;
        }
        job->refusal = problem;
    }
    if (is_batch(job) && job->replies[0] != NULL &&
        tl_reply_type(job->replies[0]) != TL_REPLY_STRING)
        tl_error_set(&job->refusal, TL_ERR_NOQUEUE, "the queue does not exist in the store");
    return true;
}

/* The store has refused this job. Is it to be sent again? A batch without joins, when the store is
 * full. Else only a batch that the store may have from an earlier attempt, while the queue exists:
 * what it took is gone with the queue. */
static bool try_later(struct tl_ingest *ingest, struct tl_job *job)
{
    unsigned suppressed;
    int64_t now_ms = tl_clock_ms();
    if (is_batch(job) && job->refusal.kind == TL_ERR_OOM && !job->joins && !job->past_limit) {
        job->past_limit = true;
        return true;
    }
    if (!job->doubtful || job->refusal.kind == TL_ERR_NOQUEUE)
        return false;
    if (job->give_up_ms == 0)
        job->give_up_ms = now_ms + REPEAT_MS;
    job->retry_ms = now_ms + tl_backoff_next(&ingest->backoff, randombytes_random());
    ingest->retry_ms = job->retry_ms;
    if (tl_log_allow(&ingest->limit, now_ms, LOG_EVERY_MS, &suppressed))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = job->queue, .error = &job->refusal},
               "the store refuses to take a batch that it may have; trying again");
    return now_ms < job->give_up_ms;
}

/* Sends all pending jobs that are due in one pipeline, then receives and posts their results in
 * order. False when the connection failed: the jobs without a result stay pending. */
static bool round_trip(struct tl_ingest *ingest, struct tl_error *err)
{
    int64_t start_us = tl_clock_us();
    bool has_batch = false, ok = true;
    struct tl_messages later = {0};
    for (struct tl_message *message = ingest->pending.first; message != NULL;
         message = message->next) {
        struct tl_job *job = job_of(message);
        job->due = job->retry_ms <= start_us / 1000;
        has_batch = has_batch || (job->due && is_batch(job));
        if (job->due && !append(ingest, job, err))
            return false;
    }
    while (ok && ingest->pending.first != NULL) {
        struct tl_job *job = job_of(ingest->pending.first);
        ok = !job->due || receive(ingest, job, err);
        if (!ok)
            break;
        (void)tl_messages_take(&ingest->pending);
        if (job->due && is_batch(job) && !job->past_limit)
            note_answer(ingest, &job->refusal);
        if (!job->due || (job->refusal.kind != TL_OK && try_later(ingest, job)))
            tl_messages_add(&later, &job->message);
        else
            post(ingest, job);
    }
    if (ok && later.first == NULL)
        tl_backoff_reset(&ingest->backoff);
    tl_messages_move(&ingest->pending, &later);
    if (ok && has_batch)
        tl_metrics_observe(ingest->settings.metrics, TL_WORKER_INGEST_TIME,
                           tl_clock_us() - start_us);
    return ok;
}

/* Does a store that refused a batch still refuse? The same command on a stream that does not exist
 * changes nothing, and is refused for the same reasons. */
static bool look_again(struct tl_ingest *ingest, struct tl_error *err)
{
    struct tl_error refusal = {0};
    struct tl_keys keys;
    tl_keys_init(&keys, ingest->settings.key_prefix, "none:none"); /* no queue's name */
    struct tl_reply *reply = tl_ask(tl_store_common(ingest->store), &refusal, "XADD",
                                    keys.names[TL_KEY_INGEST], "NOMKSTREAM", "*", "d", "", NULL);
    bool ok = reply != NULL || !outcome_unknown(&refusal);
    tl_reply_free(reply);
    if (ok)
        note_answer(ingest, &refusal);
    else
        *err = refusal;
    return ok;
}

/* Without the library the worker takes visitors in all the same: the others load it. */
static bool note_library(struct tl_ingest *ingest, struct tl_error *err)
{
    struct tl_redis *redis = tl_store_common(ingest->store);
    struct tl_error problem = {0};
    int64_t now_ms = tl_clock_ms();
    unsigned suppressed;
    if (tl_redis_epoch(redis) != ingest->epoch)
        ingest->library_ms = 0;
    ingest->epoch = tl_redis_epoch(redis);
    if (tl_library_note(redis, ingest->settings.key_prefix, &ingest->library_ms, now_ms, &problem))
        return true;
    if (!tl_redis_connected(redis)) {
        *err = problem;
        return false;
    }
    ingest->library_ms = now_ms + LIBRARY_AGAIN_MS;
    if (tl_log_allow(&ingest->limit, now_ms, LOG_EVERY_MS, &suppressed))
        tl_log(problem.kind == TL_ERR_LOADING ? TL_LOG_INFO : TL_LOG_WARN,
               &(struct tl_log_fields){.error = &problem},
               "the store could not be told which functions this worker uses; trying again");
    return true;
}

static void *run(void *context)
{
    struct tl_ingest *ingest = context;
    for (;;) {
        struct tl_error err = {0};
        bool idle = connected(ingest) && ingest->pending.first == NULL;
        if (!tl_mailbox_wait(ingest->requests, idle ? tl_clock_ms() + IDLE_MS : ingest->retry_ms,
                             &ingest->pending))
            return NULL;
        if (!connected(ingest) && tl_clock_ms() < ingest->retry_ms) {
            tl_error_set(&err, TL_ERR_CONNECT, "the store cannot be reached");
            refuse_unsent(ingest, &err);
            continue;
        }
        if (!tl_store_connect(ingest->store, &err) || !note_library(ingest, &err)) {
            connection_failed(ingest, &err);
            continue;
        }
        report_store(ingest, true);
        bool look = ingest->refuses != TL_OK && ingest->pending.first == NULL;
        if (look ? look_again(ingest, &err) : round_trip(ingest, &err))
            report_store(ingest, true);
        else
            connection_failed(ingest, &err);
    }
}

/* ---- the loop's side ---- */

const char *tl_ingest_key_prefix(const struct tl_ingest *ingest)
{
    return ingest->settings.key_prefix;
}

static void deliver(void *context, struct tl_message *message)
{
    const struct tl_ingest *ingest = context;
    struct tl_job *job = job_of(message);
    if (job->kind != TL_INGEST_NOTE)
        ingest->settings.answered(ingest->settings.context, job);
    free_job(job);
}

void tl_ingest_put(struct tl_ingest *ingest, struct tl_job *job)
{
    tl_mailbox_put(ingest->requests, &job->message, sizeof(*job) + job->length);
}

struct tl_ingest *tl_ingest_new(uv_loop_t *loop, const struct tl_ingest_settings *settings,
                                struct tl_error *err)
{
    struct tl_ingest *ingest = calloc(1, sizeof(*ingest));
    if (ingest == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the ingest thread");
        return NULL;
    }
    ingest->settings = *settings;
    tl_backoff_init(&ingest->backoff, RETRY_BASE_MS, RETRY_LIMIT_MS);
    /* Unbounded in both directions: the loop must not wait, and there is at most one batch of a
     * queue, one lookup of a held request and a few pages of draws at a time. */
    bool ok = (ingest->store = tl_store_new(&settings->redis, err)) != NULL &&
              (ingest->requests = tl_mailbox_new(NULL, SIZE_MAX, NULL, NULL, err)) != NULL &&
              (ingest->results = tl_mailbox_new(loop, SIZE_MAX, deliver, ingest, err)) != NULL;
    int problem = ok ? pthread_create(&ingest->thread, NULL, run, ingest) : 0;
    ingest->started = ok && problem == 0;
    if (problem != 0)
        tl_error_set(err, TL_ERR_SYSTEM, "cannot start the ingest thread: %s", strerror(problem));
    if (!ingest->started)
        tl_ingest_free(&ingest);
    return ingest;
}

void tl_ingest_free(struct tl_ingest **ingest)
{
    struct tl_ingest *old = *ingest;
    struct tl_message *message;
    *ingest = NULL;
    if (old == NULL)
        return;
    if (old->started) {
        tl_mailbox_close(old->requests);
        pthread_join(old->thread, NULL);
    }
    tl_mailbox_free(&old->requests, &old->pending);
    tl_mailbox_free(&old->results, &old->pending);
    while ((message = tl_messages_take(&old->pending)) != NULL)
        free_job(job_of(message));
    tl_store_free(&old->store);
    free(old);
}
