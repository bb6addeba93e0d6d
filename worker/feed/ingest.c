#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sodium.h>

#include "common/base/backoff.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/keys.h"
#include "common/store/records.h"
#include "common/store/reply.h"
#include "common/store/store.h"
#include "worker/feed/job.h"
#include "worker/report/worker_metrics.h"

enum { RETRY_BASE_MS = 50, RETRY_LIMIT_MS = 2000 };

struct tl_ingest {
    struct tl_ingest_settings settings;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards inbox, outbox, stopping */
    pthread_cond_t wake;
    struct tl_jobs inbox, outbox;
    bool stopping;
    uv_async_t async;
    /* The thread's own: */
    struct tl_store *store;
    struct tl_jobs work; /* taken from the inbox, not yet settled */
    struct tl_backoff backoff;
    int64_t retry_ms; /* when to connect again */
    bool up;
    bool told; /* was the loop ever told whether the store is up? */
    struct tl_args args;
    struct tl_log_limit limit;
};

/* ---- the thread ---- */

static void post(struct tl_ingest *ingest, struct tl_job *job)
{
    pthread_mutex_lock(&ingest->mutex);
    tl_jobs_add(&ingest->outbox, job);
    pthread_mutex_unlock(&ingest->mutex);
    uv_async_send(&ingest->async);
}

static void set_up(struct tl_ingest *ingest, bool up)
{
    if (ingest->told && ingest->up == up)
        return;
    struct tl_job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return; /* not told: comes again at the next turn */
    ingest->up = up;
    ingest->told = true;
    job->kind = up ? TL_JOB_STORE_UP : TL_JOB_STORE_DOWN;
    post(ingest, job);
}

static void refuse(struct tl_ingest *ingest, struct tl_job *job, const struct tl_error *err)
{
    job->refusal = *err;
    job->taken = false;
    job->found = TL_LOOKUP_FAILED;
    if (job->kind == TL_JOB_SEND)
        tl_metrics_add(ingest->settings.metrics, TL_WORKER_BATCHES_REFUSED, 1);
    post(ingest, job);
}

/* Without a connection: what was never sent is refused, what may have arrived is kept for another
 * try. */
static void give_up_unsent(struct tl_ingest *ingest, const struct tl_error *err)
{
    struct tl_jobs all = {0};
    tl_jobs_init(&all);
    tl_jobs_move(&all, &ingest->work);
    struct tl_job *job;
    while ((job = tl_jobs_take(&all)) != NULL) {
        if (job->kind == TL_JOB_SEND && job->tried)
            tl_jobs_add(&ingest->work, job);
        else
            refuse(ingest, job, err);
    }
}

static void trouble(struct tl_ingest *ingest, const struct tl_error *err)
{
    unsigned suppressed;
    int64_t now = tl_clock_ms();
    tl_redis_close(tl_store_of(ingest->store, NULL));
    ingest->retry_ms = now + tl_backoff_next(&ingest->backoff, randombytes_random());
    if (tl_log_allow(&ingest->limit, now, 5000, &suppressed))
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = err},
               "batches cannot be handed to the store; trying again");
    set_up(ingest, false);
    give_up_unsent(ingest, err);
}

static bool append_send(struct tl_ingest *ingest, const struct tl_keys *keys,
                        const struct tl_job *job, struct tl_error *err)
{
    struct tl_args *args = &ingest->args;
    tl_args_reset(args);
    /* NOMKSTREAM: a queue that was deleted must not come back as a lone stream. */
    tl_args_strs(args, "XADD", keys->names[TL_KEY_INGEST], "NOMKSTREAM", "*", "d", NULL);
    tl_args_bin(args, job->bytes, job->length);
    return tl_redis_append(tl_store_of(ingest->store, job->queue), args, err);
}

/* Asked in the order in which a visitor moves on, so that nobody is missed between two answers. */
static bool append_look(struct tl_ingest *ingest, const struct tl_keys *keys,
                        const struct tl_job *job, struct tl_error *err)
{
    const struct {
        const char *command;
        enum tl_key key;
    } questions[] = {
        {"ZSCORE", TL_KEY_WAITING}, {"HGET", TL_KEY_SESSIONS}, {"ZSCORE", TL_KEY_ENDED}};
    for (size_t i = 0; i < 3; i++) {
        tl_args_reset(&ingest->args);
        tl_args_strs(&ingest->args, questions[i].command, keys->names[questions[i].key],
                     job->visitor, NULL);
        if (!tl_redis_append(tl_store_of(ingest->store, job->queue), &ingest->args, err))
            return false;
    }
    return true;
}

static bool append(struct tl_ingest *ingest, struct tl_job *job, struct tl_error *err)
{
    struct tl_keys keys;
    tl_keys_init(&keys, ingest->settings.key_prefix, job->queue);
    if (job->kind == TL_JOB_LOOK)
        return append_look(ingest, &keys, job, err);
    if (job->tried)
        tl_metrics_add(ingest->settings.metrics, TL_WORKER_BATCHES_REPEATED, 1);
    job->tried = true;
    return append_send(ingest, &keys, job, err);
}

/* Is the outcome unknown after this error, or did the store refuse? */
static bool is_broken(const struct tl_error *err)
{
    return err->kind == TL_ERR_CONNECT || err->kind == TL_ERR_TIMEOUT ||
           err->kind == TL_ERR_PROTOCOL;
}

/* False when the connection broke; then nothing of the job is settled. */
static bool receive_send(struct tl_ingest *ingest, struct tl_job *job)
{
    struct tl_error err = {0};
    struct tl_reply *reply = tl_redis_next(tl_store_of(ingest->store, job->queue), &err);
    if (reply == NULL && is_broken(&err)) {
        trouble(ingest, &err);
        return false;
    }
    job->taken = tl_reply_type(reply) == TL_REPLY_STRING;
    if (reply != NULL && !job->taken)
        tl_error_set(&err, TL_ERR_NOQUEUE, "the queue's stream is gone");
    tl_reply_free(reply);
    (void)tl_jobs_take(&ingest->work);
    if (job->taken)
        post(ingest, job);
    else
        refuse(ingest, job, &err);
    return true;
}

static void judge(struct tl_job *job, const struct tl_reply *waiting,
                  const struct tl_reply *session, const struct tl_reply *ended)
{
    tl_place held = 0;
    struct tl_session_record active;
    struct tl_end_record end;
    if (tl_record_session(tl_reply_string(session, NULL), &active))
        held = active.place;
    else
        (void)tl_record_place(tl_reply_string(waiting, NULL), &held);
    if (held == job->place && held != 0) {
        job->found = TL_LOOKUP_ALIVE;
    } else if (tl_record_end(tl_reply_string(ended, NULL), &end)) {
        job->found = TL_LOOKUP_ENDED;
        job->reason = end.reason;
    } else {
        job->found = TL_LOOKUP_NOWHERE;
    }
}

static bool receive_look(struct tl_ingest *ingest, struct tl_job *job)
{
    struct tl_error err = {0};
    struct tl_error refusal = {0};
    struct tl_reply *replies[3] = {NULL, NULL, NULL};
    bool broken = false;
    for (size_t i = 0; i < 3 && !broken; i++) {
        err.kind = TL_OK;
        replies[i] = tl_redis_next(tl_store_of(ingest->store, job->queue), &err);
        broken = replies[i] == NULL && is_broken(&err);
        if (replies[i] == NULL)
            refusal = err;
    }
    if (!broken) {
        (void)tl_jobs_take(&ingest->work);
        if (refusal.kind == TL_OK) {
            judge(job, replies[0], replies[1], replies[2]);
            post(ingest, job);
        } else {
            refuse(ingest, job, &refusal);
        }
    }
    for (size_t i = 0; i < 3; i++)
        tl_reply_free(replies[i]);
    if (broken)
        trouble(ingest, &err);
    return !broken;
}

/* One pipeline with everything there is to do. */
static void round_trip(struct tl_ingest *ingest)
{
    struct tl_error err = {0};
    int64_t start = tl_clock_us();
    for (struct tl_job *job = ingest->work.first; job != NULL; job = job->next) {
        if (!append(ingest, job, &err)) {
            trouble(ingest, &err);
            return;
        }
    }
    bool sent = false;
    while (ingest->work.first != NULL) {
        struct tl_job *job = ingest->work.first;
        sent = sent || job->kind == TL_JOB_SEND;
        if (!(job->kind == TL_JOB_SEND ? receive_send(ingest, job) : receive_look(ingest, job)))
            return;
    }
    if (sent)
        tl_metrics_observe(ingest->settings.metrics, TL_WORKER_INGEST_TIME, tl_clock_us() - start);
}

/* Waits until there is work, or time to connect again, or it is time to stop (then false). */
static bool wait_for_work(struct tl_ingest *ingest)
{
    bool connected = tl_redis_connected(tl_store_of(ingest->store, NULL));
    pthread_mutex_lock(&ingest->mutex);
    while (!ingest->stopping && ingest->inbox.first == NULL) {
        if (connected && ingest->work.first == NULL) {
            pthread_cond_wait(&ingest->wake, &ingest->mutex);
            continue;
        }
        int64_t now = tl_clock_ms();
        if (now >= ingest->retry_ms)
            break;
        struct timespec until = {.tv_sec = ingest->retry_ms / 1000,
                                 .tv_nsec = ingest->retry_ms % 1000 * 1000000};
        pthread_cond_timedwait(&ingest->wake, &ingest->mutex, &until);
    }
    tl_jobs_move(&ingest->work, &ingest->inbox);
    bool stopping = ingest->stopping;
    pthread_mutex_unlock(&ingest->mutex);
    return !stopping;
}

static void *run(void *context)
{
    struct tl_ingest *ingest = context;
    while (wait_for_work(ingest)) {
        struct tl_error err = {0};
        bool connected = tl_redis_connected(tl_store_of(ingest->store, NULL));
        if (!connected && tl_clock_ms() < ingest->retry_ms) {
            tl_error_set(&err, TL_ERR_CONNECT, "the store cannot be reached");
            give_up_unsent(ingest, &err);
            continue;
        }
        if (!tl_store_connect(ingest->store, &err)) {
            trouble(ingest, &err);
            continue;
        }
        set_up(ingest, true);
        if (ingest->work.first == NULL) {
            tl_backoff_reset(&ingest->backoff);
            continue;
        }
        round_trip(ingest);
        if (tl_redis_connected(tl_store_of(ingest->store, NULL)))
            tl_backoff_reset(&ingest->backoff);
    }
    return NULL;
}

/* ---- the loop's side ---- */

static void deliver(struct tl_ingest *ingest, struct tl_job *job)
{
    const struct tl_ingest_settings *settings = &ingest->settings;
    if (job->kind == TL_JOB_SEND)
        settings->sent(settings->context, job->queue, job->number,
                       job->taken ? NULL : &job->refusal);
    else if (job->kind == TL_JOB_LOOK)
        settings->found(settings->context, job->token, job->found, job->reason);
    else
        settings->store(settings->context, job->kind == TL_JOB_STORE_UP);
}

static void on_async(uv_async_t *async)
{
    struct tl_ingest *ingest = async->data;
    struct tl_jobs done;
    struct tl_job *job;
    tl_jobs_init(&done);
    pthread_mutex_lock(&ingest->mutex);
    tl_jobs_move(&done, &ingest->outbox);
    pthread_mutex_unlock(&ingest->mutex);
    while ((job = tl_jobs_take(&done)) != NULL) {
        deliver(ingest, job);
        tl_job_free(job);
    }
}

static bool submit(struct tl_ingest *ingest, struct tl_job *job)
{
    pthread_mutex_lock(&ingest->mutex);
    tl_jobs_add(&ingest->inbox, job);
    pthread_cond_signal(&ingest->wake);
    pthread_mutex_unlock(&ingest->mutex);
    return true;
}

bool tl_ingest_send(struct tl_ingest *ingest, const char *queue, uint64_t number, void *bytes,
                    size_t length)
{
    struct tl_job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return false;
    job->kind = TL_JOB_SEND;
    job->number = number;
    job->bytes = bytes;
    job->length = length;
    snprintf(job->queue, sizeof(job->queue), "%s", queue);
    return submit(ingest, job);
}

bool tl_ingest_look(struct tl_ingest *ingest, const char *queue, const char *visitor,
                    tl_place place, uint64_t token)
{
    struct tl_job *job = calloc(1, sizeof(*job));
    if (job == NULL)
        return false;
    job->kind = TL_JOB_LOOK;
    job->place = place;
    job->token = token;
    snprintf(job->queue, sizeof(job->queue), "%s", queue);
    snprintf(job->visitor, sizeof(job->visitor), "%s", visitor);
    return submit(ingest, job);
}

static void on_closed(uv_handle_t *handle)
{
    struct tl_ingest *ingest = uv_handle_get_data(handle);
    tl_jobs_free(&ingest->inbox);
    tl_jobs_free(&ingest->outbox);
    tl_jobs_free(&ingest->work);
    tl_args_free(&ingest->args);
    tl_store_free(&ingest->store);
    pthread_cond_destroy(&ingest->wake);
    pthread_mutex_destroy(&ingest->mutex);
    free(ingest);
}

static bool start_thread(struct tl_ingest *ingest, struct tl_error *err)
{
    pthread_condattr_t attributes;
    pthread_mutex_init(&ingest->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&ingest->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    int problem = pthread_create(&ingest->thread, NULL, run, ingest);
    return problem == 0 || tl_error_set(err, TL_ERR_SYSTEM, "cannot start the ingest thread: %s",
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
    tl_jobs_init(&ingest->inbox);
    tl_jobs_init(&ingest->outbox);
    tl_jobs_init(&ingest->work);
    tl_backoff_init(&ingest->backoff, RETRY_BASE_MS, RETRY_LIMIT_MS);
    ingest->store = tl_store_new(&settings->redis, err);
    if (ingest->store == NULL || uv_async_init(loop, &ingest->async, on_async) != 0) {
        tl_store_free(&ingest->store);
        free(ingest);
        return NULL;
    }
    ingest->async.data = ingest;
    if (!start_thread(ingest, err)) {
        uv_close((uv_handle_t *)&ingest->async, on_closed);
        return NULL;
    }
    return ingest;
}

void tl_ingest_free(struct tl_ingest **ingest)
{
    if (*ingest == NULL)
        return;
    pthread_mutex_lock(&(*ingest)->mutex);
    (*ingest)->stopping = true;
    pthread_cond_signal(&(*ingest)->wake);
    pthread_mutex_unlock(&(*ingest)->mutex);
    pthread_join((*ingest)->thread, NULL);
    uv_close((uv_handle_t *)&(*ingest)->async, on_closed);
    *ingest = NULL;
}
