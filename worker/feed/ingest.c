/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/library.h"
#include "common/store/store.h"
#include "worker/feed/exchange.h"
#include "worker/feed/ingest.h"
#include "worker/feed/mailbox.h"
#include "worker/report/worker_metrics.h"

/* IDLE_MS: without a batch, the connection is checked this often. */
enum {
    RETRY_BASE_MS = 50,
    RETRY_LIMIT_MS = 2000,
    LOG_EVERY_MS = 5000,
    LIBRARY_AGAIN_MS = 5000,
    DENIED_LOG_MS = 600000,
    IDLE_MS = 1000,
};

/* How long repeats of a batch may be refused. */
enum { REPEAT_MS = 60000 };

/* Goes from the loop to the thread and comes back with the result; without an exchange it only
 * comes back, with the state of the store. */
struct job {
    struct tl_message message;
    bool exchanges;
    struct tl_exchange exchange;
    uint64_t token; /* of a look-up */
    bool refused;
    struct tl_error refusal;
    bool due; /* part of the round trip in progress */
    /* A batch: */
    bool joins;         /* it has a JOIN */
    bool tried;         /* sent at least once */
    bool doubtful;      /* an attempt has no known outcome: the store may have it */
    int64_t retry_ms;   /* not before; 0: at once */
    int64_t give_up_ms; /* repeats are refused: until then they go on; 0: none was */
    /* The state of the store: */
    bool up;
    enum tl_error_kind refuses;
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
    struct tl_args args;
    struct tl_log_limit limit;
    uint64_t epoch;     /* of the connection in the last turn */
    int64_t library_ms; /* when the store is told again which library is in use */
    /* The loop's: */
    struct tl_log_limit denied_limit;
};

static struct job *job_of(struct tl_message *message)
{
    return (struct job *)message;
}

static bool is_batch(const struct job *job)
{
    return job->exchanges && job->exchange.kind == TL_EXCHANGE_BATCH;
}

static void free_job(struct tl_message *message)
{
    struct job *job = job_of(message);
    free(job->exchange.bytes);
    free(job);
}

/* ---- the thread: results ---- */

/* The connection that serves the queue of this job. */
static struct tl_redis *connection_of(struct tl_ingest *ingest, const struct job *job)
{
    return tl_store_of(ingest->store, job->exchange.queue);
}

static bool connected(const struct tl_ingest *ingest)
{
    return tl_redis_connected(tl_store_common(ingest->store));
}

static void post_result(struct tl_ingest *ingest, struct job *job)
{
    tl_mailbox_put(ingest->results, &job->message, sizeof(*job));
}

static void post_refusal(struct tl_ingest *ingest, struct job *job, const struct tl_error *err)
{
    job->refused = true;
    job->refusal = *err;
    job->exchange.found = TL_LOOKUP_FAILED;
    if (is_batch(job) && !job->doubtful)
        tl_metrics_add(ingest->settings.metrics, TL_WORKER_BATCHES_REFUSED, 1);
    post_result(ingest, job);
}

/* Notes from the answer to a batch whether the store refuses all batches. */
static void note_answer(struct tl_ingest *ingest, const struct tl_error *refusal)
{
    bool all = refusal->kind == TL_ERR_MISCONF || refusal->kind == TL_ERR_OOM;
    if (all || refusal->kind == TL_OK)
        ingest->refuses = all ? refusal->kind : TL_OK;
}

/* Tells the loop when the state of the store has changed. */
static void report_store(struct tl_ingest *ingest, bool up)
{
    if (ingest->reported && ingest->up == up && ingest->refuses == ingest->refuses_known)
        return;
    struct job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return; /* the next turn of the thread tries again */
    ingest->up = up;
    ingest->refuses_known = ingest->refuses;
    ingest->reported = true;
    job->up = up;
    job->refuses = ingest->refuses;
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
        if (is_batch(job) && job->tried) {
            job->doubtful = true;
            tl_messages_add(&ingest->pending, message);
        } else {
            post_refusal(ingest, job, err);
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

static bool append(struct tl_ingest *ingest, struct job *job, struct tl_error *err)
{
    if (is_batch(job) && job->tried && !job->exchange.past_limit)
        tl_metrics_add(ingest->settings.metrics, TL_WORKER_BATCHES_REPEATED, 1);
    job->tried = true;
    return tl_exchange_append(&job->exchange, connection_of(ingest, job), &ingest->args,
                              ingest->settings.key_prefix, err);
}

/* The store has refused this job. Is it to be sent again? A batch without joins, when the store is
 * full. Else only a batch that the store may have from an earlier attempt, while the queue exists:
 * what it took is gone with the queue. */
static bool try_later(struct tl_ingest *ingest, struct job *job, const struct tl_error *refusal)
{
    unsigned suppressed;
    int64_t now_ms = tl_clock_ms();
    if (is_batch(job) && refusal->kind == TL_ERR_OOM && !job->joins && !job->exchange.past_limit) {
        job->exchange.past_limit = true;
        return true;
    }
    if (!is_batch(job) || !job->doubtful || refusal->kind == TL_ERR_NOQUEUE)
        return false;
    if (job->give_up_ms == 0)
        job->give_up_ms = now_ms + REPEAT_MS;
    job->retry_ms = now_ms + tl_backoff_next(&ingest->backoff, randombytes_random());
    ingest->retry_ms = job->retry_ms;
    if (tl_log_allow(&ingest->limit, now_ms, LOG_EVERY_MS, &suppressed))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = job->exchange.queue, .error = refusal},
               "the store refuses to take a batch that it may have; trying again");
    return now_ms < job->give_up_ms;
}

/* Sends all pending jobs that are due in one pipeline, then receives and posts their results in
 * order. False when the connection failed: the jobs without a result stay pending. */
static bool round_trip(struct tl_ingest *ingest, struct tl_error *err)
{
    int64_t start_us = tl_clock_us();
    bool has_batch = false, ok = true;
    struct tl_messages later;
    for (struct tl_message *message = ingest->pending.first; message != NULL;
         message = message->next) {
        struct job *job = job_of(message);
        job->due = job->retry_ms <= start_us / 1000;
        has_batch = has_batch || (job->due && is_batch(job));
        if (job->due && !append(ingest, job, err))
            return false;
    }
    tl_messages_init(&later);
    while (ok && ingest->pending.first != NULL) {
        struct job *job = job_of(ingest->pending.first);
        struct tl_error refusal = {0};
        ok = !job->due ||
             tl_exchange_receive(&job->exchange, connection_of(ingest, job), &refusal, err);
        if (!ok)
            break;
        (void)tl_messages_take(&ingest->pending);
        if (job->due && is_batch(job) && !job->exchange.past_limit)
            note_answer(ingest, &refusal);
        if (!job->due || (refusal.kind != TL_OK && try_later(ingest, job, &refusal)))
            tl_messages_add(&later, &job->message);
        else if (refusal.kind == TL_OK)
            post_result(ingest, job);
        else
            post_refusal(ingest, job, &refusal);
    }
    if (ok && later.first == NULL)
        tl_backoff_reset(&ingest->backoff);
    tl_messages_move(&ingest->pending, &later);
    if (ok && has_batch)
        tl_metrics_observe(ingest->settings.metrics, TL_WORKER_INGEST_TIME,
                           tl_clock_us() - start_us);
    return ok;
}

/* Does a store that refused a batch still refuse? */
static bool look_again(struct tl_ingest *ingest, struct tl_error *err)
{
    struct tl_error refusal = {0};
    bool ok = tl_exchange_probe(tl_store_common(ingest->store), &ingest->args,
                                ingest->settings.key_prefix, &refusal, err);
    if (ok)
        note_answer(ingest, &refusal);
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

/* The store's user is of an earlier release. Other refusals concern batches too, and are logged
 * with them. */
static void note_denied(struct tl_ingest *ingest, const struct job *job)
{
    unsigned suppressed;
    if (tl_log_allow(&ingest->denied_limit, tl_clock_ms(), DENIED_LOG_MS, &suppressed))
        tl_log(TL_LOG_WARN,
               &(struct tl_log_fields){.queue = job->exchange.queue, .error = &job->refusal},
               "%s: make the users of the store again (deploy/redis)",
               job->exchange.kind == TL_EXCHANGE_SIGNS
                   ? "signs of misuse are not kept for `tellerline top`"
               : job->exchange.kind == TL_EXCHANGE_PROMISED
                   ? "what came true of the waits told is not counted"
               : job->exchange.kind == TL_EXCHANGE_DRAWN
                   ? "visitors cannot read the list of the draw"
                   : "the site's feedback does not reach the store");
}

static void deliver(void *context, struct tl_message *message)
{
    const struct tl_ingest_settings *settings = &((struct tl_ingest *)context)->settings;
    const struct job *job = job_of(message);
    const struct tl_exchange *exchange = &job->exchange;
    if (!job->exchanges) {
        settings->store(settings->context, job->up, job->refuses);
        return;
    }
    bool denied = job->refused && job->refusal.kind == TL_ERR_DENIED;
    switch (exchange->kind) {
    case TL_EXCHANGE_BATCH:
        settings->sent(settings->context, exchange->queue,
                       &(struct tl_batch_receipt){.number = exchange->number,
                                                  .fate = !job->refused   ? TL_BATCH_TAKEN
                                                          : job->doubtful ? TL_BATCH_UNKNOWN
                                                                          : TL_BATCH_REFUSED,
                                                  .entry = exchange->entry,
                                                  .refusal = job->refused ? &job->refusal : NULL});
        break;
    case TL_EXCHANGE_CHECK:
        settings->checked(settings->context, exchange->queue, exchange->number, &exchange->check);
        break;
    case TL_EXCHANGE_LOOKUP:
        settings->found(settings->context, job->token, exchange->found, exchange->reason);
        break;
    case TL_EXCHANGE_SIGNS:
    case TL_EXCHANGE_FEEDBACK:
    case TL_EXCHANGE_PROMISED:
        if (denied)
            note_denied(context, job);
        break;
    case TL_EXCHANGE_DRAWN:
        if (denied)
            note_denied(context, job);
        settings->drawn(settings->context, job->token, job->refused ? NULL : exchange->bytes,
                        exchange->length);
        break;
    }
}

static struct job *new_job(enum tl_exchange_kind kind, const char *queue)
{
    struct job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return NULL;
    job->exchanges = true;
    job->exchange.kind = kind;
    snprintf(job->exchange.queue, sizeof(job->exchange.queue), "%s", queue);
    return job;
}

static void request(struct tl_ingest *ingest, struct job *job)
{
    tl_mailbox_put(ingest->requests, &job->message, sizeof(*job) + job->exchange.length);
}

bool tl_ingest_send(struct tl_ingest *ingest, const char *queue, uint64_t number, void *bytes,
                    size_t length, bool joins)
{
    struct job *job = new_job(TL_EXCHANGE_BATCH, queue);
    if (job == NULL)
        return false;
    job->joins = joins;
    job->exchange.number = number;
    job->exchange.bytes = bytes;
    job->exchange.length = length;
    request(ingest, job);
    return true;
}

bool tl_ingest_check(struct tl_ingest *ingest, const char *queue, const char *worker,
                     uint64_t number, const char *entry)
{
    struct job *job = new_job(TL_EXCHANGE_CHECK, queue);
    if (job == NULL)
        return false;
    struct tl_exchange *exchange = &job->exchange;
    exchange->number = number;
    exchange->check.waits = true;
    snprintf(exchange->worker, sizeof(exchange->worker), "%s", worker);
    snprintf(exchange->entry, sizeof(exchange->entry), "%s", entry);
    request(ingest, job);
    return true;
}

bool tl_ingest_look(struct tl_ingest *ingest, const char *queue, const struct tl_ticket *ticket,
                    uint64_t token)
{
    struct job *job = new_job(TL_EXCHANGE_LOOKUP, queue);
    if (job == NULL)
        return false;
    job->token = token;
    job->exchange.place = ticket->place;
    if (tl_place_seq(ticket->place) == 0)
        job->exchange.since_ms = ((int64_t)ticket->issued - TL_TICKET_CLOCK_S) * 1000;
    snprintf(job->exchange.visitor, sizeof(job->exchange.visitor), "%s", ticket->visitor);
    request(ingest, job);
    return true;
}

static bool send_note(struct tl_ingest *ingest, enum tl_exchange_kind kind, const char *queue,
                      const char *text)
{
    struct job *job = new_job(kind, queue);
    char *copy = strdup(text);
    if (job == NULL || copy == NULL) {
        free(job);
        free(copy);
        return false;
    }
    job->exchange.bytes = copy;
    job->exchange.length = strlen(copy);
    request(ingest, job);
    return true;
}

void tl_ingest_signs(struct tl_ingest *ingest, const char *queue, const char *text)
{
    (void)send_note(ingest, TL_EXCHANGE_SIGNS, queue, text);
}

bool tl_ingest_feedback(struct tl_ingest *ingest, const char *queue, const char *text)
{
    return send_note(ingest, TL_EXCHANGE_FEEDBACK, queue, text);
}

void tl_ingest_promised(struct tl_ingest *ingest, const char *queue,
                        const struct tl_promised *promised)
{
    struct job *job = new_job(TL_EXCHANGE_PROMISED, queue);
    if (job == NULL)
        return;
    job->exchange.promised = *promised;
    request(ingest, job);
}

bool tl_ingest_drawn(struct tl_ingest *ingest, const char *queue, uint64_t from, uint64_t n,
                     uint64_t token)
{
    struct job *job = new_job(TL_EXCHANGE_DRAWN, queue);
    if (job == NULL)
        return false;
    job->token = token;
    job->exchange.from = from;
    job->exchange.n = n;
    request(ingest, job);
    return true;
}

static bool start(struct tl_ingest *ingest, uv_loop_t *loop, struct tl_error *err)
{
    /* Unbounded in both directions: the loop must not wait, and there is at most one batch of a
     * queue, one lookup of a held request and a few pages of draws at a time. */
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
