#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/keys.h"
#include "common/store/records.h"
#include "common/store/reply.h"
#include "common/store/store.h"
#include "worker/feed/ingest.h"
#include "worker/feed/mailbox.h"
#include "worker/report/worker_metrics.h"

enum { RETRY_BASE_MS = 50, RETRY_LIMIT_MS = 2000, LOG_EVERY_MS = 5000 };

enum job_kind { SEND_BATCH, LOOK_UP, STORE_STATE };

/* Goes from the loop to the thread and comes back with the result; STORE_STATE only comes back. */
struct job {
    struct tl_message message;
    enum job_kind kind;
    char queue[TL_QUEUE_NAME_MAX + 1];
    bool refused;
    struct tl_error refusal;
    /* SEND_BATCH */
    uint64_t number;
    void *bytes;
    size_t length;
    bool tried; /* sent at least once: its outcome is unknown until the store answers */
    /* LOOK_UP */
    char visitor[TL_VISITOR_MAX + 1];
    tl_place place;
    uint64_t token;
    enum tl_lookup_found found;
    enum tl_reason reason;
    /* STORE_STATE */
    bool up;
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
    bool reported; /* the loop knows whether the store is up */
    struct tl_args args;
    struct tl_log_limit limit;
};

static struct job *job_of(struct tl_message *message)
{
    return (struct job *)message;
}

static void free_job(struct tl_message *message)
{
    struct job *job = job_of(message);
    free(job->bytes);
    free(job);
}

/* ---- the thread: results ---- */

/* The connection that serves the queue of this job. */
static struct tl_redis *connection_of(struct tl_ingest *ingest, const struct job *job)
{
    return tl_store_of(ingest->store, job->queue);
}

static bool connected(const struct tl_ingest *ingest)
{
    return tl_redis_connected(tl_store_of(ingest->store, NULL));
}

static void post_result(struct tl_ingest *ingest, struct job *job)
{
    tl_mailbox_put(ingest->results, &job->message, sizeof(*job));
}

static void post_refusal(struct tl_ingest *ingest, struct job *job, const struct tl_error *err)
{
    job->refused = true;
    job->refusal = *err;
    job->found = TL_LOOKUP_FAILED;
    if (job->kind == SEND_BATCH)
        tl_metrics_add(ingest->settings.metrics, TL_WORKER_BATCHES_REFUSED, 1);
    post_result(ingest, job);
}

/* Tells the loop when the state of the store has changed. */
static void report_store(struct tl_ingest *ingest, bool up)
{
    if (ingest->reported && ingest->up == up)
        return;
    struct job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return; /* the next turn of the thread tries again */
    ingest->up = up;
    ingest->reported = true;
    job->kind = STORE_STATE;
    job->up = up;
    post_result(ingest, job);
}

/* Without a connection: refuses what was never sent, and keeps batches that may have arrived. */
static void refuse_unsent(struct tl_ingest *ingest, const struct tl_error *err)
{
    struct tl_messages all;
    struct tl_message *message;
    tl_messages_init(&all);
    tl_messages_move(&all, &ingest->pending);
    while ((message = tl_messages_take(&all)) != NULL) {
        struct job *job = job_of(message);
        if (job->kind == SEND_BATCH && job->tried)
            tl_messages_add(&ingest->pending, message);
        else
            post_refusal(ingest, job, err);
    }
}

static void connection_failed(struct tl_ingest *ingest, const struct tl_error *err)
{
    unsigned suppressed;
    int64_t now_ms = tl_clock_ms();
    tl_redis_close(tl_store_of(ingest->store, NULL));
    ingest->retry_ms = now_ms + tl_backoff_next(&ingest->backoff, randombytes_random());
    if (tl_log_allow(&ingest->limit, now_ms, LOG_EVERY_MS, &suppressed))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = err},
               "cannot send batches to the store; trying again");
    report_store(ingest, false);
    refuse_unsent(ingest, err);
}

/* ---- the thread: one round trip ---- */

static bool append_batch(struct tl_ingest *ingest, struct job *job, struct tl_error *err)
{
    struct tl_keys keys;
    struct tl_args *args = &ingest->args;
    if (job->tried)
        tl_metrics_add(ingest->settings.metrics, TL_WORKER_BATCHES_REPEATED, 1);
    job->tried = true;
    tl_keys_init(&keys, ingest->settings.key_prefix, job->queue);
    tl_args_reset(args);
    /* NOMKSTREAM: a deleted queue must not come back as a lone stream. */
    tl_args_strs(args, "XADD", keys.names[TL_KEY_INGEST], "NOMKSTREAM", "*", "d", NULL);
    tl_args_bin(args, job->bytes, job->length);
    return tl_redis_append(connection_of(ingest, job), args, err);
}

/* In the order in which a visitor changes state, so that one who moves between two answers is
 * found.
 */
static const struct {
    const char *command;
    enum tl_key key;
} lookups[] = {{"ZSCORE", TL_KEY_WAITING}, {"HGET", TL_KEY_SESSIONS}, {"ZSCORE", TL_KEY_ENDED}};
enum { LOOKUPS = sizeof(lookups) / sizeof(lookups[0]) };

static bool append_lookup(struct tl_ingest *ingest, const struct job *job, struct tl_error *err)
{
    struct tl_keys keys;
    tl_keys_init(&keys, ingest->settings.key_prefix, job->queue);
    for (size_t i = 0; i < LOOKUPS; i++) {
        tl_args_reset(&ingest->args);
        tl_args_strs(&ingest->args, lookups[i].command, keys.names[lookups[i].key], job->visitor,
                     NULL);
        if (!tl_redis_append(connection_of(ingest, job), &ingest->args, err))
            return false;
    }
    return true;
}

/* False for a refusal: the store has answered. */
static bool outcome_unknown(const struct tl_error *err)
{
    return err->kind == TL_ERR_CONNECT || err->kind == TL_ERR_TIMEOUT ||
           err->kind == TL_ERR_PROTOCOL;
}

/* False when the connection failed: then the outcome is unknown. A refusal goes to `refusal`. */
static bool receive_batch(struct tl_ingest *ingest, const struct job *job, struct tl_error *refusal,
                          struct tl_error *err)
{
    struct tl_error problem = {0};
    struct tl_reply *reply = tl_redis_next(connection_of(ingest, job), &problem);
    if (reply == NULL && outcome_unknown(&problem)) {
        *err = problem;
        return false;
    }
    if (reply != NULL && tl_reply_type(reply) != TL_REPLY_STRING)
        tl_error_set(&problem, TL_ERR_NOQUEUE, "the queue does not exist in the store");
    *refusal = problem;
    tl_reply_free(reply);
    return true;
}

/* As receive_batch. */
static bool receive_lookup(struct tl_ingest *ingest, struct job *job, struct tl_error *refusal,
                           struct tl_error *err)
{
    struct tl_reply *replies[LOOKUPS] = {NULL};
    bool ok = true;
    for (size_t i = 0; i < LOOKUPS && ok; i++) {
        struct tl_error problem = {0};
        replies[i] = tl_redis_next(connection_of(ingest, job), &problem);
        if (replies[i] == NULL) {
            ok = !outcome_unknown(&problem);
            *(ok ? refusal : err) = problem;
        }
    }
    if (ok && refusal->kind == TL_OK) {
        tl_place held = 0;
        struct tl_session_record session;
        struct tl_end_record end;
        if (tl_record_session(tl_reply_string(replies[1], NULL), &session))
            held = session.place;
        else
            (void)tl_record_place(tl_reply_string(replies[0], NULL), &held);
        if (held == job->place && held != 0) {
            job->found = TL_LOOKUP_ALIVE;
        } else if (tl_record_end(tl_reply_string(replies[2], NULL), &end)) {
            job->found = TL_LOOKUP_ENDED;
            job->reason = end.reason;
        } else {
            job->found = TL_LOOKUP_NOWHERE;
        }
    }
    for (size_t i = 0; i < LOOKUPS; i++)
        tl_reply_free(replies[i]);
    return ok;
}

/* Sends all pending jobs in one pipeline, then receives and posts their results in order. False
 * when the connection failed: the jobs without a result stay pending. */
static bool round_trip(struct tl_ingest *ingest, struct tl_error *err)
{
    int64_t start_us = tl_clock_us();
    bool has_batch = false;
    for (struct tl_message *message = ingest->pending.first; message != NULL;
         message = message->next) {
        struct job *job = job_of(message);
        if (!(job->kind == SEND_BATCH ? append_batch(ingest, job, err)
                                      : append_lookup(ingest, job, err)))
            return false;
    }
    while (ingest->pending.first != NULL) {
        struct job *job = job_of(ingest->pending.first);
        struct tl_error refusal = {0};
        has_batch = has_batch || job->kind == SEND_BATCH;
        if (!(job->kind == SEND_BATCH ? receive_batch(ingest, job, &refusal, err)
                                      : receive_lookup(ingest, job, &refusal, err)))
            return false;
        (void)tl_messages_take(&ingest->pending);
        if (refusal.kind == TL_OK)
            post_result(ingest, job);
        else
            post_refusal(ingest, job, &refusal);
    }
    if (has_batch)
        tl_metrics_observe(ingest->settings.metrics, TL_WORKER_INGEST_TIME,
                           tl_clock_us() - start_us);
    return true;
}

static void *run(void *context)
{
    struct tl_ingest *ingest = context;
    for (;;) {
        struct tl_error err = {0};
        bool idle = connected(ingest) && ingest->pending.first == NULL;
        if (!tl_mailbox_wait(ingest->requests, idle ? TL_MAILBOX_FOREVER : ingest->retry_ms,
                             &ingest->pending))
            return NULL;
        if (!connected(ingest) && tl_clock_ms() < ingest->retry_ms) {
            tl_error_set(&err, TL_ERR_CONNECT, "the store cannot be reached");
            refuse_unsent(ingest, &err);
            continue;
        }
        if (!tl_store_connect(ingest->store, &err)) {
            connection_failed(ingest, &err);
            continue;
        }
        report_store(ingest, true);
        if (round_trip(ingest, &err))
            tl_backoff_reset(&ingest->backoff);
        else
            connection_failed(ingest, &err);
    }
}

/* ---- the loop's side ---- */

static void deliver(void *context, struct tl_message *message)
{
    const struct tl_ingest_settings *settings = &((struct tl_ingest *)context)->settings;
    const struct job *job = job_of(message);
    switch (job->kind) {
    case SEND_BATCH:
        settings->sent(settings->context, job->queue, job->number,
                       job->refused ? &job->refusal : NULL);
        break;
    case LOOK_UP:
        settings->found(settings->context, job->token, job->found, job->reason);
        break;
    case STORE_STATE:
        settings->store(settings->context, job->up);
        break;
    }
}

static void request(struct tl_ingest *ingest, struct job *job)
{
    tl_mailbox_put(ingest->requests, &job->message, sizeof(*job) + job->length);
}

bool tl_ingest_send(struct tl_ingest *ingest, const char *queue, uint64_t number, void *bytes,
                    size_t length)
{
    struct job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return false;
    job->kind = SEND_BATCH;
    job->number = number;
    job->bytes = bytes;
    job->length = length;
    snprintf(job->queue, sizeof(job->queue), "%s", queue);
    request(ingest, job);
    return true;
}

bool tl_ingest_look(struct tl_ingest *ingest, const char *queue, const char *visitor,
                    tl_place place, uint64_t token)
{
    struct job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return false;
    job->kind = LOOK_UP;
    job->place = place;
    job->token = token;
    snprintf(job->queue, sizeof(job->queue), "%s", queue);
    snprintf(job->visitor, sizeof(job->visitor), "%s", visitor);
    request(ingest, job);
    return true;
}

static bool start(struct tl_ingest *ingest, uv_loop_t *loop, struct tl_error *err)
{
    /* Unbounded in both directions: the loop must not wait, and there is at most one batch of a
     * queue and one lookup of a held request at a time. */
    const struct tl_mailbox_settings requests = {.bytes_max = TL_MAILBOX_UNBOUNDED,
                                                 .free_message = free_job};
    const struct tl_mailbox_settings results = {.bytes_max = TL_MAILBOX_UNBOUNDED,
                                                .free_message = free_job,
                                                .loop = loop,
                                                .context = ingest,
                                                .deliver = deliver};
    ingest->store = tl_store_new(&ingest->settings.redis, err);
    if (ingest->store == NULL)
        return false;
    ingest->requests = tl_mailbox_new(&requests, err);
    ingest->results = ingest->requests != NULL ? tl_mailbox_new(&results, err) : NULL;
    if (ingest->results == NULL)
        return false;
    int problem = pthread_create(&ingest->thread, NULL, run, ingest);
    ingest->started = problem == 0;
    return ingest->started || tl_error_set(err, TL_ERR_SYSTEM, "cannot start the ingest thread: %s",
                                           strerror(problem));
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
    tl_messages_init(&ingest->pending);
    tl_backoff_init(&ingest->backoff, RETRY_BASE_MS, RETRY_LIMIT_MS);
    if (!start(ingest, loop, err))
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
    while ((message = tl_messages_take(&old->pending)) != NULL)
        free_job(message);
    tl_mailbox_free(&old->requests);
    tl_mailbox_free(&old->results);
    tl_args_free(&old->args);
    tl_store_free(&old->store);
    free(old);
}
