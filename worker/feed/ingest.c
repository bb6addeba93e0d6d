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
    MOVED_MS = 5000,   /* how long a slot of a cluster may be on its way */
    IDLE_MS = 1000,    /* without a batch, the connection is checked this often */
    LOG_EVERY_MS = 5000,
    LIBRARY_AGAIN_MS = 5000,
    NODE_WAIT_MS = 5, /* with replies due from nodes, new jobs are looked for this often */
    DENIED_LOG_MS = 600000,
};

/* A connection to the store: the only one, or that to one node of a cluster. */
struct link {
    struct tl_redis *redis;
    enum tl_error_kind refuses;        /* what the store answered to the last batch... */
    char queue[TL_QUEUE_NAME_MAX + 1]; /* ...which was of this queue */
    struct tl_error failure;           /* why it broke in this round trip */
    bool silent;                       /* nothing more can be read from it at the moment */
};

struct tl_ingest {
    struct tl_ingest_settings settings;
    pthread_t thread;
    bool started;
    struct tl_mailbox *requests; /* to the thread */
    struct tl_mailbox *results;  /* to the loop */
    /* The thread's own: */
    struct tl_store *store;
    struct tl_messages pending; /* jobs taken from the requests, without a result yet... */
    struct tl_messages sent;    /* ...and those whose replies are due, in the order of sending */
    struct tl_backoff backoff;
    int64_t retry_ms; /* when to connect again, while no node is connected */
    bool up;
    struct link links[TL_STORE_NODES_MAX + 1]; /* those that were used so far */
    size_t n_links;
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

/* The connection for a job. */
static struct tl_redis *redis_of(const struct tl_ingest *ingest, const struct tl_job *job)
{
    return tl_store_of(ingest->store, job->queue);
}

/* Is any node of the store connected? */
static bool connected(const struct tl_ingest *ingest)
{
    for (size_t i = 0; i < tl_store_nodes(ingest->store); i++)
        if (tl_redis_connected(tl_store_node(ingest->store, i)))
            return true;
    return false;
}

static struct link *link_of(struct tl_ingest *ingest, struct tl_redis *redis)
{
    size_t i = 0;
    while (i < ingest->n_links && ingest->links[i].redis != redis)
        i++;
    if (i == ingest->n_links)
        ingest->links[ingest->n_links++] = (struct link){.redis = redis};
    return &ingest->links[i];
}

/* Notes from the answer to a batch of this queue whether the store refuses all batches. */
static void note_answer(struct tl_ingest *ingest, const char *queue, const struct tl_error *refusal)
{
    bool all = refusal->kind == TL_ERR_MISCONF || refusal->kind == TL_ERR_OOM;
    struct link *link = link_of(ingest, tl_store_of(ingest->store, queue));
    if (!all && refusal->kind != TL_OK)
        return;
    link->refuses = all ? refusal->kind : TL_OK;
    snprintf(link->queue, sizeof(link->queue), "%s", queue);
}

/* Why every node refuses all batches; TL_OK: one does not. */
static enum tl_error_kind refuses(struct tl_ingest *ingest)
{
    enum tl_error_kind kind = TL_OK;
    for (size_t i = 0; i < tl_store_nodes(ingest->store); i++) {
        kind = link_of(ingest, tl_store_node(ingest->store, i))->refuses;
        if (kind == TL_OK)
            return TL_OK;
    }
    return kind;
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
    const enum tl_error_kind kind = refuses(ingest);
    if (ingest->reported && ingest->up == up && kind == ingest->refuses_known)
        return;
    struct tl_job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return; /* the next turn of the thread tries again */
    ingest->up = up;
    ingest->refuses_known = kind;
    ingest->reported = true;
    job->kind = TL_INGEST_STORE;
    job->up = up;
    job->refuses = kind;
    post(ingest, job);
}

/* Refuses what the store does not have, and keeps batches that may have arrived: of one node, or of
 * all that are not connected (NULL). */
static void refuse_unsent(struct tl_ingest *ingest, const struct tl_redis *redis,
                          const struct tl_error *err)
{
    struct tl_messages all = ingest->pending;
    struct tl_message *message;
    ingest->pending.first = NULL;
    while ((message = tl_messages_take(&all)) != NULL) {
        struct tl_job *job = job_of(message);
        const struct tl_redis *its = redis_of(ingest, job);
        bool is_concerned = redis == NULL ? !tl_redis_connected(its) : its == redis;
        if (is_concerned && !job->doubtful) {
            job->refusal = *err;
            post(ingest, job);
            continue;
        }
        if (is_concerned)
            job->retry_ms = tl_clock_ms() + RETRY_BASE_MS;
        tl_messages_add(&ingest->pending, message);
    }
}

/* To one node, or to all (NULL). */
static void connection_failed(struct tl_ingest *ingest, struct tl_redis *redis,
                              const struct tl_error *err)
{
    unsigned suppressed;
    int64_t now_ms = tl_clock_ms();
    ingest->retry_ms = now_ms + tl_backoff_next(&ingest->backoff, randombytes_random());
    if (tl_log_allow(&ingest->limit, now_ms, LOG_EVERY_MS, &suppressed))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = err},
               "cannot send batches to the store; trying again");
    report_store(ingest, connected(ingest));
    refuse_unsent(ingest, redis, err);
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
        ok = tl_redis_append(job->redis, &job->commands[i], err);
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
static bool receive(struct tl_job *job, struct tl_error *err)
{
    job->refusal = (struct tl_error){0};
    for (size_t i = 0; i < job->n; i++) {
        struct tl_error problem = {0};
        tl_reply_free(job->replies[i]); /* of an earlier attempt */
        job->replies[i] = tl_redis_next(job->redis, &problem);
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
 * full. What nothing came of as its slot moves to another node. Else only a batch that the store
 * may have from an earlier attempt, while the queue exists: what it took is gone with the queue. */
static bool try_later(struct tl_ingest *ingest, struct tl_job *job)
{
    unsigned suppressed;
    int64_t now_ms = tl_clock_ms();
    if (is_batch(job) && job->refusal.kind == TL_ERR_OOM && !job->joins && !job->past_limit) {
        job->past_limit = true;
        return true;
    }
    const bool moves = job->refusal.kind == TL_ERR_MOVED && job->kind != TL_INGEST_NOTE;
    if ((!job->doubtful && !moves) || job->refusal.kind == TL_ERR_NOQUEUE)
        return false;
    if (job->give_up_ms == 0)
        job->give_up_ms = now_ms + (job->doubtful ? REPEAT_MS : MOVED_MS);
    job->retry_ms =
        now_ms + (moves ? RETRY_BASE_MS : tl_backoff_next(&ingest->backoff, randombytes_random()));
    if (job->doubtful && tl_log_allow(&ingest->limit, now_ms, LOG_EVERY_MS, &suppressed))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = job->queue, .error = &job->refusal},
               "the store refuses to take a batch that it may have; trying again");
    return now_ms < job->give_up_ms;
}

/* The connection broke: nothing more is read from it in this round trip. */
static void broken(struct tl_ingest *ingest, struct tl_redis *redis, const struct tl_error *err)
{
    struct link *link = link_of(ingest, redis);
    tl_redis_close(redis);
    if (link->failure.kind == TL_OK)
        link->failure = *err;
}

/* Sends all pending jobs that are due, in one pipeline for each node. */
static void send_due(struct tl_ingest *ingest, int64_t now_ms)
{
    struct tl_messages all = ingest->pending;
    struct tl_message *message;
    ingest->pending.first = NULL;
    while ((message = tl_messages_take(&all)) != NULL) {
        struct tl_job *job = job_of(message);
        struct tl_error problem = {0};
        bool due = job->retry_ms <= now_ms;
        job->redis = redis_of(ingest, job);
        job->epoch = tl_redis_epoch(job->redis);
        job->sent_us = tl_clock_us();
        if (due && append(ingest, job, &problem)) {
            tl_messages_add(&ingest->sent, message);
            continue;
        }
        if (due)
            broken(ingest, job->redis, &problem);
        tl_messages_add(&ingest->pending, message);
    }
    for (size_t i = 0; i < tl_store_nodes(ingest->store); i++) {
        struct tl_redis *redis = tl_store_node(ingest->store, i);
        struct tl_error problem = {0};
        if (tl_redis_connected(redis) && !tl_redis_flush(redis, &problem))
            broken(ingest, redis, &problem);
    }
}

/* Are the replies of this job there, or is the only store to be waited for? False with err when
 * they can no longer come. */
static bool is_answered(const struct tl_ingest *ingest, const struct tl_job *job,
                        struct tl_error *err)
{
    if (!tl_redis_connected(job->redis) || tl_redis_epoch(job->redis) != job->epoch)
        return tl_error_set(err, TL_ERR_CONNECT, "the connection to the store broke");
    if (!tl_redis_is_node(job->redis) || tl_redis_readable(job->redis))
        return true;
    if (tl_clock_us() - job->sent_us >= 1000 * ingest->settings.redis.timeout_ms)
        tl_error_set(err, TL_ERR_TIMEOUT, "the store did not answer within %lld ms",
                     (long long)ingest->settings.redis.timeout_ms);
    return false;
}

/* The store may have taken what was sent, or not: a batch must be sent again. */
static void unanswered(struct tl_ingest *ingest, struct tl_job *job)
{
    if (is_batch(job) && !job->doubtful) {
        job->doubtful = true;
        job->give_up_ms = 0; /* that of a slot that moves was sooner */
    }
    tl_messages_add(&ingest->pending, &job->message);
}

/* The replies of a job have come. False: it is to be sent again. */
static bool answered(struct tl_ingest *ingest, struct tl_job *job)
{
    if (is_batch(job) && !job->past_limit)
        note_answer(ingest, job->queue, &job->refusal);
    if (job->refusal.kind != TL_OK && try_later(ingest, job)) {
        tl_messages_add(&ingest->pending, &job->message);
        return false;
    }
    post(ingest, job);
    return true;
}

/* Receives the replies that are there, and posts the results in order. False: none were. */
static bool receive_sent(struct tl_ingest *ingest)
{
    bool any = false, ok = true;
    int64_t batch_us = INT64_MAX; /* when the first of the batches was sent */
    struct tl_messages all = ingest->sent;
    struct tl_message *message;
    ingest->sent.first = NULL;
    for (size_t i = 0; i < ingest->n_links; i++)
        ingest->links[i].silent = false;
    while ((message = tl_messages_take(&all)) != NULL) {
        struct tl_job *job = job_of(message);
        struct link *link = link_of(ingest, job->redis);
        struct tl_error problem = {0};
        bool is_there = !link->silent && is_answered(ingest, job, &problem);
        if (is_there && receive(job, &problem)) {
            any = true;
            batch_us = is_batch(job) && job->sent_us < batch_us ? job->sent_us : batch_us;
            ok = answered(ingest, job) && ok;
        } else if (problem.kind != TL_OK) {
            ok = false;
            if (tl_redis_epoch(job->redis) == job->epoch)
                broken(ingest, job->redis, &problem);
            unanswered(ingest, job);
        } else {
            link->silent = true;
            tl_messages_add(&ingest->sent, message);
        }
    }
    if (any && ok)
        tl_backoff_reset(&ingest->backoff);
    if (batch_us != INT64_MAX && ok)
        tl_metrics_observe(ingest->settings.metrics, TL_WORKER_INGEST_TIME,
                           tl_clock_us() - batch_us);
    return any;
}

static void round_trip(struct tl_ingest *ingest)
{
    struct tl_redis *silent[TL_STORE_NODES_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i < ingest->n_links; i++) /* what broke with all of them was told */
        ingest->links[i].failure = (struct tl_error){0};
    send_due(ingest, tl_clock_ms());
    if (!receive_sent(ingest) && ingest->sent.first != NULL) {
        for (size_t i = 0; i < ingest->n_links; i++)
            if (ingest->links[i].silent)
                silent[n++] = ingest->links[i].redis;
        tl_redis_await_any(silent, n, NODE_WAIT_MS);
        (void)receive_sent(ingest);
    }
    for (size_t i = 0; i < ingest->n_links; i++)
        if (ingest->links[i].failure.kind != TL_OK)
            connection_failed(ingest, ingest->links[i].redis, &ingest->links[i].failure);
}

/* Does a node that refused a batch of this queue still refuse? The same command on a stream that
 * does not exist changes nothing, and is refused for the same reasons. */
static void look_again(struct tl_ingest *ingest, struct tl_redis *redis, const char *queue)
{
    struct tl_error refusal = {0};
    struct tl_keys keys;
    char none[TL_QUEUE_NAME_MAX + 8]; /* no queue's name, in the slot of the queue */
    snprintf(none, sizeof(none), "%s}:none", queue);
    tl_keys_init(&keys, ingest->settings.key_prefix, none);
    struct tl_reply *reply = tl_ask(redis, &refusal, "XADD", keys.names[TL_KEY_INGEST],
                                    "NOMKSTREAM", "*", "d", "", NULL);
    bool ok = reply != NULL || !outcome_unknown(&refusal);
    tl_reply_free(reply);
    if (ok) {
        note_answer(ingest, queue, &refusal);
        return;
    }
    tl_redis_close(redis);
    connection_failed(ingest, redis, &refusal);
}

/* Asks the nodes that refused a batch. False: none did. */
static bool look_at_refusals(struct tl_ingest *ingest)
{
    bool any = false;
    for (size_t i = 0; i < ingest->n_links; i++) {
        struct link *link = &ingest->links[i];
        if (link->refuses == TL_OK || !tl_redis_connected(link->redis))
            continue;
        any = true;
        if (tl_store_of(ingest->store, link->queue) == link->redis)
            look_again(ingest, link->redis, link->queue);
        else
            link->refuses = TL_OK; /* the queue has moved: the next batch tells */
    }
    return any;
}

/* Are replies due from this connection? Then nothing else can be asked. */
static bool is_due(const struct tl_ingest *ingest, const struct tl_redis *redis)
{
    for (const struct tl_message *message = ingest->sent.first; message != NULL;
         message = message->next)
        if (((const struct tl_job *)message)->redis == redis)
            return true;
    return false;
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
    if (!tl_redis_connected(redis) || is_due(ingest, redis))
        return true; /* a node of a cluster: it is told later */
    if (tl_library_note(redis, ingest->settings.key_prefix, &ingest->library_ms, now_ms, &problem))
        return true;
    if (!tl_redis_connected(redis) && !tl_redis_is_node(redis)) {
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

/* The next turn, unless something comes before. */
static int64_t next_turn_ms(const struct tl_ingest *ingest)
{
    int64_t due_ms = tl_clock_ms() + IDLE_MS;
    if (!connected(ingest))
        return ingest->retry_ms;
    if (ingest->sent.first != NULL)
        return 0;
    for (const struct tl_message *message = ingest->pending.first; message != NULL;
         message = message->next) {
        const struct tl_job *job = (const struct tl_job *)message;
        due_ms = job->retry_ms < due_ms ? job->retry_ms : due_ms;
    }
    return due_ms;
}

static void *run(void *context)
{
    struct tl_ingest *ingest = context;
    for (;;) {
        struct tl_error err = {0};
        if (!tl_mailbox_wait(ingest->requests, next_turn_ms(ingest), &ingest->pending))
            return NULL;
        if (!connected(ingest) && tl_clock_ms() < ingest->retry_ms) {
            tl_error_set(&err, TL_ERR_CONNECT, "the store cannot be reached");
            (void)receive_sent(ingest); /* nothing can come: it joins what is pending */
            refuse_unsent(ingest, NULL, &err);
            continue;
        }
        if (!tl_store_connect(ingest->store, &err) || !note_library(ingest, &err)) {
            tl_redis_close(tl_store_common(ingest->store));
            (void)receive_sent(ingest);
            connection_failed(ingest, NULL, &err);
            continue;
        }
        report_store(ingest, true);
        tl_error_set(&err, TL_ERR_CONNECT, "the node of this queue is away");
        refuse_unsent(ingest, NULL, &err);
        if (ingest->pending.first != NULL || ingest->sent.first != NULL ||
            !look_at_refusals(ingest))
            round_trip(ingest);
        report_store(ingest, connected(ingest));
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
    while ((message = tl_messages_take(&old->pending)) != NULL ||
           (message = tl_messages_take(&old->sent)) != NULL)
        free_job(job_of(message));
    tl_store_free(&old->store);
    free(old);
}
