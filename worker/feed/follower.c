#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "worker/feed/sources.h"

enum { RETRY_BASE_MS = 50, RETRY_LIMIT_MS = 2000, ROUND_MS = 1000 };
/* How long one read waits for events. What the loop asks for (a rebuild, settings) waits behind it,
 * and it asks after something has come; while nothing does, reading the streams of all queues
 * seldom is what counts. */
enum { BLOCK_MS = 200, BLOCK_IDLE_MS = 500 };

/* The tail's handler. Without memory the queue is rebuilt: an entry that was dropped is a gap. */
static bool on_entry(void *context, const struct tl_keys *keys, const void *payload, size_t length)
{
    struct tl_follower *follower = context;
    struct tl_message *message = tl_message_new(TL_MESSAGE_ENTRY, keys->queue, length);
    if (message == NULL) {
        tl_follower_rebuild(follower, keys->queue);
        return false;
    }
    if (length > 0)
        memcpy(message->bytes, payload, length);
    tl_mailbox_put(follower->box, message);
    return true;
}

/* ---- rounds ---- */

/* How far the store's clock is ahead of ours, taking the answer to be half a round trip old. */
static bool read_clock(struct tl_follower *follower, struct tl_redis *redis, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_str(&args, "TIME");
    int64_t before_us = tl_clock_us();
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    int64_t after_us = tl_clock_us();
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    int64_t store_us =
        tl_reply_integer(tl_reply_at(reply, 0)) * 1000000 + tl_reply_integer(tl_reply_at(reply, 1));
    tl_reply_free(reply);
    int64_t offset_us = store_us - (before_us + (after_us - before_us) / 2);
    return tl_follower_post_number(follower, TL_MESSAGE_CLOCK, offset_us / 1000, err);
}

/* Creates what is configured and missing: after a connection was made, and when a look showed that
 * the store lacks something. */
static bool ensure_queues(struct tl_follower *follower, struct tl_redis *redis,
                          struct tl_error *err)
{
    for (size_t i = 0; follower->ensure && i < follower->n_configured; i++) {
        if (!tl_queue_ensure(redis, follower->settings.key_prefix, follower->configured[i].name,
                             &follower->configured[i].settings, NULL, err))
            return false;
    }
    follower->ensure = false;
    return true;
}

static bool round_due(struct tl_follower *follower, struct tl_error *err)
{
    struct tl_redis *redis = tl_store_of(follower->store, NULL);
    if (!read_clock(follower, redis, err) || !ensure_queues(follower, redis, err) ||
        !tl_sources_list(follower, redis, err))
        return false;
    if (follower->ensure && /* one that is configured is not listed */
        (!ensure_queues(follower, redis, err) || !tl_sources_list(follower, redis, err)))
        return false;
    if (!tl_sources_check(follower, redis, err))
        return false;
    return tl_follower_post_number(follower, TL_MESSAGE_LISTED, 0, err);
}

static void set_up(struct tl_follower *follower, bool up)
{
    if (follower->told && follower->up == up)
        return;
    follower->told = tl_follower_post_number(follower, TL_MESSAGE_STORE, up, NULL);
    follower->up = up;
}

/* One turn: connect, what is due, and a while of following. */
static bool turn(struct tl_follower *follower, struct tl_error *err)
{
    if (!tl_store_connect(follower->store, err))
        return false;
    struct tl_redis *redis = tl_store_of(follower->store, NULL);
    if (tl_redis_epoch(redis) != follower->epoch) {
        follower->epoch = tl_redis_epoch(redis);
        follower->round_ms = 0;
        follower->ensure = true;
    }
    int64_t now = tl_clock_ms();
    if (now >= follower->round_ms) {
        if (!round_due(follower, err))
            return false;
        follower->round_ms = now + ROUND_MS;
    }
    if (!tl_sources_serve(follower, redis, err))
        return false;
    set_up(follower, true);
    tl_backoff_reset(&follower->backoff);
    int64_t block_ms = follower->quiet ? BLOCK_IDLE_MS : BLOCK_MS;
    size_t entries;
    if (!tl_tail_read(follower->tail, redis, block_ms, &entries, err))
        return false;
    follower->quiet = entries == 0;
    return true;
}

/* Waits until then, or until it is time to stop. */
static void wait_until(struct tl_follower *follower, int64_t until_ms)
{
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    pthread_mutex_lock(&follower->mutex);
    while (!follower->stopping && tl_clock_ms() < until_ms)
        pthread_cond_timedwait(&follower->wake, &follower->mutex, &until);
    pthread_mutex_unlock(&follower->mutex);
}

static bool is_stopping(struct tl_follower *follower)
{
    pthread_mutex_lock(&follower->mutex);
    bool stopping = follower->stopping;
    pthread_mutex_unlock(&follower->mutex);
    return stopping;
}

static void *run(void *context)
{
    struct tl_follower *follower = context;
    while (!is_stopping(follower)) {
        struct tl_error err = {0};
        if (turn(follower, &err)) {
            if (tl_tail_count(follower->tail) == 0) /* then reading returned at once */
                wait_until(follower, follower->round_ms);
            continue;
        }
        unsigned suppressed;
        int64_t now = tl_clock_ms();
        if (tl_log_allow(&follower->limit, now, 5000, &suppressed))
            tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = &err},
                   "the store cannot be followed; trying again");
        set_up(follower, false);
        wait_until(follower, now + tl_backoff_next(&follower->backoff, randombytes_random()));
    }
    return NULL;
}

/* ---- the loop's side ---- */

static void deliver(void *context, struct tl_message *message)
{
    const struct tl_follower_settings *settings = &((struct tl_follower *)context)->settings;
    switch (message->kind) {
    case TL_MESSAGE_LINE:
        settings->line(settings->context, message->queue, message->settings, message->line);
        message->line = NULL;
        break;
    case TL_MESSAGE_ENTRY:
        settings->entry(settings->context, message->queue, message->bytes, message->length);
        break;
    case TL_MESSAGE_SETTINGS:
        settings->settings(settings->context, message->queue, message->settings);
        break;
    case TL_MESSAGE_NOTICE:
        settings->notice(settings->context, message->queue, (const char *)message->bytes,
                         message->length);
        break;
    case TL_MESSAGE_GONE:
        settings->gone(settings->context, message->queue);
        break;
    case TL_MESSAGE_LISTED:
        settings->listed(settings->context);
        break;
    case TL_MESSAGE_CLOCK:
        settings->clock(settings->context, message->number);
        break;
    case TL_MESSAGE_STORE:
        settings->store(settings->context, message->number != 0);
        break;
    }
}

static void destroy(struct tl_follower *follower)
{
    for (size_t i = 0; i < follower->n; i++)
        free(follower->sources[i]);
    free(follower->sources);
    free(follower->configured);
    tl_tail_free(&follower->tail);
    tl_store_free(&follower->store);
    tl_mailbox_free(&follower->box);
    pthread_cond_destroy(&follower->wake);
    pthread_mutex_destroy(&follower->mutex);
    free(follower);
}

static bool start(struct tl_follower *follower, uv_loop_t *loop, const struct tl_config *config,
                  struct tl_error *err)
{
    follower->n_configured = config->n_queues;
    follower->configured =
        calloc(config->n_queues > 0 ? config->n_queues : 1, sizeof(*follower->configured));
    follower->tail = tl_tail_new(on_entry, follower);
    follower->box = tl_mailbox_new(loop, follower, deliver);
    if (follower->configured == NULL || follower->tail == NULL || follower->box == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the follower");
    if (config->n_queues > 0)
        memcpy(follower->configured, config->queues,
               config->n_queues * sizeof(*follower->configured));
    follower->store = tl_store_new(&follower->settings.redis, err);
    if (follower->store == NULL)
        return false;
    int problem = pthread_create(&follower->thread, NULL, run, follower);
    return problem == 0 || tl_error_set(err, TL_ERR_SYSTEM, "cannot start the follower thread: %s",
                                        strerror(problem));
}

struct tl_follower *tl_follower_new(uv_loop_t *loop, const struct tl_follower_settings *settings,
                                    const struct tl_config *config, struct tl_error *err)
{
    struct tl_follower *follower = calloc(1, sizeof(*follower));
    if (follower == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the follower");
        return NULL;
    }
    pthread_condattr_t attributes;
    follower->settings = *settings;
    pthread_mutex_init(&follower->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&follower->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    tl_backoff_init(&follower->backoff, RETRY_BASE_MS, RETRY_LIMIT_MS);
    if (!start(follower, loop, config, err)) {
        destroy(follower);
        return NULL;
    }
    return follower;
}

void tl_follower_rebuild(struct tl_follower *follower, const char *queue)
{
    pthread_mutex_lock(&follower->mutex);
    struct tl_source *source = tl_sources_find(follower, queue);
    if (source != NULL)
        source->rebuild = true;
    pthread_mutex_unlock(&follower->mutex);
}

void tl_follower_reload(struct tl_follower *follower, const char *queue)
{
    pthread_mutex_lock(&follower->mutex);
    struct tl_source *source = tl_sources_find(follower, queue);
    if (source != NULL)
        source->reload = true;
    pthread_mutex_unlock(&follower->mutex);
}

void tl_follower_free(struct tl_follower **follower)
{
    if (*follower == NULL)
        return;
    pthread_mutex_lock(&(*follower)->mutex);
    (*follower)->stopping = true;
    pthread_cond_signal(&(*follower)->wake);
    pthread_mutex_unlock(&(*follower)->mutex);
    tl_mailbox_close((*follower)->box);
    pthread_join((*follower)->thread, NULL);
    destroy(*follower);
    *follower = NULL;
}
