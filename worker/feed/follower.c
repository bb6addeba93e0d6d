/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/store/blocks.h"
#include "common/store/memory.h"
#include "common/store/reply.h"
#include "common/store/store.h"
#include "common/store/troubles.h"
#include "worker/feed/followed_queues.h"
#include "worker/feed/follower.h"
#include "worker/feed/mailbox.h"

enum { RETRY_BASE_MS = 50, RETRY_LIMIT_MS = 2000, UPDATE_MS = 1000, LOG_EVERY_MS = 5000 };

/* An update costs six round trips, during which no events are read. Where Redis is far away, the
 * pause between two takes eight times as long as that. */
enum { UPDATE_PAUSE_TRIPS = 48 };

/* How long one read waits for events. The loop's requests wait behind it. They follow events, so
 * after a read that brought none the next one may wait longer, which saves the store work. */
enum { BLOCK_MS = 200, BLOCK_IDLE_MS = 500 };

/* The thread waits while the loop has more than this to process. */
enum { CHANGES_BYTES_MAX = 64 * 1024 * 1024 };

/* From the loop to the thread. */
struct request {
    struct tl_message message;
    bool rebuild; /* else: read the settings */
    char queue[TL_QUEUE_NAME_MAX + 1];
};

struct tl_follower {
    struct tl_follower_settings settings;
    pthread_t thread;
    bool started;
    struct tl_mailbox *requests; /* to the thread */
    struct tl_mailbox *changes;  /* to the loop */
    atomic_bool rebuild_all;     /* a request was lost: out of memory */
    /* The thread's own: */
    struct tl_store *store;
    struct tl_followed_queues *queues;
    uint64_t epoch;    /* of the connection */
    size_t n_open;     /* connections, in the last turn */
    int64_t update_ms; /* when the next update is due */
    int64_t trip_us;   /* what a round trip to Redis took */
    bool new_connection;
    uint64_t blocks_version;     /* of the blocked prefixes that the loop has; 0: it has none */
    bool blocks_failed;          /* they could not be read, which was logged */
    enum tl_memory_level memory; /* of the store */
    bool idle;                   /* the last read brought nothing */
    bool unread;                 /* the last read failed: the store is not up before one succeeds */
    bool up;
    bool reported; /* the loop knows whether the store is up */
    struct tl_backoff backoff;
    struct tl_log_limit limit;
};

/* ---- the thread ---- */

/* Takes the requests that come until then. False when it is time to stop. */
static bool take_requests(struct tl_follower *follower, int64_t until_ms)
{
    bool open;
    do {
        struct tl_messages requests = {0};
        struct tl_message *message;
        open = tl_mailbox_wait(follower->requests, until_ms, &requests);
        while ((message = tl_messages_take(&requests)) != NULL) {
            const struct request *request = (struct request *)message;
            if (request->rebuild)
                tl_followed_queues_rebuild(follower->queues, request->queue);
            else
                tl_followed_queues_reload(follower->queues, request->queue);
            free(message);
        }
        if (atomic_exchange(&follower->rebuild_all, false))
            tl_followed_queues_rebuild(follower->queues, NULL);
    } while (open && tl_clock_ms() < until_ms);
    return open;
}

/* A change of no queue. */
static bool post(const struct tl_follower *follower, const struct tl_change *change,
                 struct tl_error *err)
{
    return tl_change_post(follower->changes, "", change, err);
}

/* Is this the trouble of one node of a cluster? Its queues are set aside, and the others go on. */
static bool is_away(const struct tl_redis *redis, const struct tl_error *err)
{
    return tl_redis_is_node(redis) && tl_error_is_of_store(err);
}

/* Posts how far the store's clock is ahead of this one's. Assumes that the answer is half a round
 * trip old. */
static bool read_clock(struct tl_follower *follower, struct tl_redis *redis, struct tl_error *err)
{
    int64_t store_us;
    int64_t before_us = tl_clock_us();
    if (!tl_redis_time(redis, &store_us, err))
        return false;
    follower->trip_us = tl_clock_us() - before_us;
    int64_t offset_us = store_us - (before_us + follower->trip_us / 2);
    return post(follower,
                &(struct tl_change){.kind = TL_CHANGE_CLOCK, .offset_ms = offset_us / 1000}, err);
}

/* Logs each change of the level once. */
static void log_level(const struct tl_follower *follower, const struct tl_store_memory *memory,
                      enum tl_memory_level level)
{
    unsigned long long used = memory->used, limit = memory->limit;
    if (level == TL_MEMORY_FULL)
        tl_warn("the store uses %llu of %llu bytes (maxmemory): joins are refused until there is "
                "room",
                used, limit);
    else if (follower->memory == TL_MEMORY_FULL)
        tl_info("the store has room again: joins are accepted");
    else if (level == TL_MEMORY_SCARCE)
        tl_warn("the store uses %llu of %llu bytes (maxmemory): at 95 %% joins are refused", used,
                limit);
    else
        tl_info("the store has room again: it uses %llu of %llu bytes", used, limit);
}

/* Posts how full the store's memory is: in a cluster, that of the fullest node, but joins are
 * refused here only while all are full. Else a node that is full refuses those of its own queues.
 * Warns on a new connection if the store may delete keys. */
static bool read_memory(struct tl_follower *follower, struct tl_error *err)
{
    struct tl_change change = {.kind = TL_CHANGE_MEMORY, .level = TL_MEMORY_FULL};
    bool any = false;
    for (size_t i = 0; i < tl_store_nodes(follower->store); i++) {
        struct tl_redis *redis = tl_store_node(follower->store, i);
        struct tl_store_memory memory;
        if (!tl_store_memory_read(redis, &memory, err)) {
            if (is_away(redis, err))
                continue;
            return false;
        }
        if (follower->new_connection && tl_store_memory_evicts(&memory))
            tl_warn("the store deletes keys of queues when it is full (maxmemory-policy %s): set "
                    "it to noeviction",
                    memory.policy);
        enum tl_memory_level level = tl_store_memory_level(&memory, follower->memory);
        change.level = level < change.level ? level : change.level;
        if (!any || tl_store_memory_percent(&memory) > tl_store_memory_percent(&change.memory))
            change.memory = memory;
        any = true;
    }
    follower->new_connection = false;
    if (!any)
        return true;
    if (change.level != follower->memory)
        log_level(follower, &change.memory, change.level);
    follower->memory = change.level;
    return post(follower, &change, err);
}

/* Reads the blocked prefixes, if they have changed, and posts them. A table that the store has lost
 * stays in force here; one that cannot be read stops nothing else. */
static bool read_blocks(struct tl_follower *follower, struct tl_redis *redis, struct tl_error *err)
{
    const char *prefix = follower->settings.key_prefix;
    uint64_t version;
    struct tl_blocks *blocks = NULL;
    bool ok = tl_blocks_version(redis, prefix, &version, err);
    bool lost = ok && version == 0 && follower->blocks_version != 0;
    bool changed = ok && version != 0 && version != follower->blocks_version;
    if (changed)
        blocks = tl_blocks_read(redis, prefix, err);
    ok = ok && (!changed || blocks != NULL);
    if ((!ok || lost) && !follower->blocks_failed)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = ok ? NULL : err},
               "%s; those known here stay in force until this process ends",
               lost ? "the store has lost the blocked prefixes: block them again"
                    : "the blocked prefixes cannot be read");
    follower->blocks_failed = !ok || lost;
    if (!ok)
        return tl_redis_connected(redis) || tl_redis_is_node(redis);
    if (!changed)
        return true;
    tl_info("%zu prefixes of addresses are blocked", blocks->n);
    follower->blocks_version = version;
    return post(follower, &(struct tl_change){.kind = TL_CHANGE_BLOCKS, .blocks = blocks}, err);
}

/* Tells the loop when the state of the store has changed. */
static void report_store(struct tl_follower *follower, bool up)
{
    if (follower->reported && follower->up == up)
        return;
    follower->reported =
        post(follower, &(struct tl_change){.kind = TL_CHANGE_STORE, .up = up}, NULL);
    follower->up = up;
}

/* How many connections are open? */
static size_t count_open(const struct tl_follower *follower)
{
    size_t n = 0;
    for (size_t i = 0; i < tl_store_nodes(follower->store); i++)
        n += tl_redis_connected(tl_store_node(follower->store, i));
    return n;
}

/* The clock, of any node, and what is kept on the common one. */
static bool read_common(struct tl_follower *follower, struct tl_error *err)
{
    struct tl_redis *common = tl_store_common(follower->store);
    struct tl_redis *redis = common;
    for (size_t i = 0; !tl_redis_connected(redis) && i < tl_store_nodes(follower->store); i++)
        redis = tl_store_node(follower->store, i);
    return (read_clock(follower, redis, err) || is_away(redis, err)) &&
           read_memory(follower, err) && (redis != common || read_blocks(follower, common, err));
}

/* Connects, does what is due, and waits for events once. */
static bool turn(struct tl_follower *follower, struct tl_error *err)
{
    if (!tl_store_connect(follower->store, err))
        return false;
    if (tl_store_epoch(follower->store) != follower->epoch) {
        if (!tl_followed_queues_reconnected(follower->queues, err))
            return false;
        follower->epoch = tl_store_epoch(follower->store);
        follower->update_ms = 0;
        follower->new_connection = true;
    }
    if (count_open(follower) < follower->n_open)
        follower->update_ms = 0; /* which queues can no longer be served? */
    follower->n_open = count_open(follower);
    int64_t now_ms = tl_clock_ms();
    if (now_ms >= follower->update_ms) {
        if (!read_common(follower, err) || !tl_followed_queues_update(follower->queues, err) ||
            (tl_followed_queues_loaded(follower->queues) &&
             !post(follower, &(struct tl_change){.kind = TL_CHANGE_LISTED}, err)))
            return false;
        int64_t pause_ms = UPDATE_PAUSE_TRIPS * follower->trip_us / 1000;
        follower->update_ms = now_ms + (pause_ms > UPDATE_MS ? pause_ms : UPDATE_MS);
    }
    if (!tl_followed_queues_serve(follower->queues, err))
        return false;
    size_t entries;
    int64_t block_ms = follower->idle ? BLOCK_IDLE_MS : BLOCK_MS;
    if (!follower->unread)
        report_store(follower, true);
    follower->unread = !tl_followed_queues_read(follower->queues, block_ms, &entries, err);
    if (follower->unread)
        return false;
    report_store(follower, true);
    tl_backoff_reset(&follower->backoff);
    follower->idle = entries == 0;
    return true;
}

static void *run(void *context)
{
    struct tl_follower *follower = context;
    int64_t next_ms = 0; /* at once */
    while (take_requests(follower, next_ms)) {
        struct tl_error err = {0};
        if (turn(follower, &err)) {
            /* With no queue to follow, reading returns at once. */
            next_ms = tl_followed_queues_count(follower->queues) == 0 ? follower->update_ms : 0;
            continue;
        }
        unsigned suppressed;
        int64_t now_ms = tl_clock_ms();
        if (tl_log_allow(&follower->limit, now_ms, LOG_EVERY_MS, &suppressed))
            tl_log(err.kind == TL_ERR_INVALID ? TL_LOG_ERROR : TL_LOG_WARN,
                   &(struct tl_log_fields){.error = &err},
                   "cannot follow the events in the store; trying again");
        report_store(follower, false);
        next_ms = now_ms + tl_backoff_next(&follower->backoff, randombytes_random());
    }
    return NULL;
}

/* ---- the loop's side ---- */

static void deliver(void *context, struct tl_message *message)
{
    const struct tl_follower_settings *settings = &((struct tl_follower *)context)->settings;
    struct tl_change *change = (struct tl_change *)message;
    settings->changed(settings->context, change);
    tl_change_free(change);
}

struct tl_follower *tl_follower_new(uv_loop_t *loop, const struct tl_follower_settings *settings,
                                    const struct tl_config *config, struct tl_error *err)
{
    struct tl_follower *follower = calloc(1, sizeof(*follower));
    if (follower == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the follower");
        return NULL;
    }
    follower->settings = *settings;
    tl_backoff_init(&follower->backoff, RETRY_BASE_MS, RETRY_LIMIT_MS);
    bool ok = (follower->store = tl_store_new(&settings->redis, err)) != NULL &&
              (follower->requests = tl_mailbox_new(NULL, SIZE_MAX, NULL, NULL, err)) != NULL &&
              (follower->changes =
                   tl_mailbox_new(loop, CHANGES_BYTES_MAX, deliver, follower, err)) != NULL;
    if (ok) {
        follower->queues = tl_followed_queues_new(follower->store, settings->key_prefix, config,
                                                  follower->changes, settings->compares);
        ok = follower->queues != NULL ||
             tl_error_set(err, TL_ERR_NOMEM, "no memory for the follower");
    }
    int problem = ok ? pthread_create(&follower->thread, NULL, run, follower) : 0;
    follower->started = ok && problem == 0;
    if (problem != 0)
        tl_error_set(err, TL_ERR_SYSTEM, "cannot start the follower thread: %s", strerror(problem));
    if (!follower->started)
        tl_follower_free(&follower);
    return follower;
}

/* A lost request for a rebuild would leave a queue without a line, so all queues are rebuilt. After
 * a lost request for settings, the next updates find the change. */
static void request(struct tl_follower *follower, const char *queue, bool rebuild)
{
    struct request *request = calloc(1, sizeof(*request));
    if (request == NULL) {
        if (rebuild)
            atomic_store(&follower->rebuild_all, true);
        return;
    }
    request->rebuild = rebuild;
    snprintf(request->queue, sizeof(request->queue), "%s", queue);
    tl_mailbox_put(follower->requests, &request->message, sizeof(*request));
}

void tl_follower_rebuild(struct tl_follower *follower, const char *queue)
{
    request(follower, queue, true);
}

void tl_follower_reload(struct tl_follower *follower, const char *queue)
{
    request(follower, queue, false);
}

void tl_follower_free(struct tl_follower **follower)
{
    struct tl_follower *old = *follower;
    struct tl_messages requests = {0}, changes = {0};
    struct tl_message *message;
    *follower = NULL;
    if (old == NULL)
        return;
    if (old->started) {
        tl_mailbox_close(old->requests);
        tl_mailbox_close(old->changes);
        pthread_join(old->thread, NULL);
    }
    tl_followed_queues_free(&old->queues);
    tl_mailbox_free(&old->requests, &requests);
    while ((message = tl_messages_take(&requests)) != NULL)
        free(message);
    tl_mailbox_free(&old->changes, &changes);
    while ((message = tl_messages_take(&changes)) != NULL)
        tl_change_free((struct tl_change *)message);
    tl_store_free(&old->store);
    free(old);
}
