/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/base/log.h"
#include "common/role/held_queues.h"
#include "common/store/library.h"
#include "common/store/store.h"

#define WAIT_MAX_MS 500

struct tl_held_queues {
    struct tl_held_queues_settings settings;
    const struct tl_config *config;
    struct tl_metrics *metrics;
    struct tl_store *store;
    struct tl_roster *roster;
    struct tl_troubles *troubles;
    struct tl_tail *tail;
    uint64_t epoch;     /* of the connection in the last turn */
    int64_t library_ms; /* when the store is told again that this library is in use */
};

/* ---- leases acquired and lost ---- */

static bool acquired(void *context, struct tl_held_queue *held, struct tl_error *err)
{
    struct tl_held_queues *queues = context;
    const struct tl_held_queues_settings *settings = &queues->settings;
    const struct tl_log_fields fields = {.queue = held->keys.queue};
    held->state = calloc(1, settings->state_size);
    if (held->state == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the state of a queue");
    if (settings->acquired != NULL && !settings->acquired(settings->context, held, err)) {
        tl_tail_forget(queues->tail, &held->keys);
        free(held->state);
        return false;
    }
    tl_metrics_add(queues->metrics, settings->gauge, 1);
    if (settings->fenced)
        tl_log(TL_LOG_INFO, &fields, "lease taken, fence %llu", (unsigned long long)held->fence);
    else
        tl_log(TL_LOG_INFO, &fields, "lease taken");
    return true;
}

static void lost(void *context, struct tl_held_queue *held)
{
    struct tl_held_queues *queues = context;
    const struct tl_log_fields fields = {.queue = held->keys.queue};
    tl_tail_forget(queues->tail, &held->keys);
    if (queues->settings.lost != NULL)
        queues->settings.lost(queues->settings.context, held);
    free(held->state);
    tl_metrics_add(queues->metrics, queues->settings.gauge, -1);
    tl_log(TL_LOG_INFO, &fields, "lease released");
}

static void on_command(void *context, int64_t us)
{
    const struct tl_held_queues *queues = context;
    tl_metrics_observe(queues->metrics, queues->settings.latency, us);
}

static bool on_entry(void *context, const struct tl_keys *keys, const void *payload, size_t length)
{
    const struct tl_held_queues *queues = context;
    struct tl_held_queue *held = tl_roster_find(queues->roster, keys->queue);
    return held != NULL &&
           queues->settings.on_entry(queues->settings.context, held, payload, length);
}

struct tl_held_queues *tl_held_queues_new(const struct tl_held_queues_settings *settings,
                                          const struct tl_config *config, const char *owner,
                                          struct tl_metrics *metrics, struct tl_error *err)
{
    const struct tl_redis_settings redis = {.url = config->redis.url,
                                            .ca_file = config->redis.ca_file,
                                            .timeout_ms = config->redis.timeout_ms};
    struct tl_held_queues *queues = calloc(1, sizeof(*queues));
    if (queues == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the queues");
        return NULL;
    }
    queues->settings = *settings;
    queues->config = config;
    queues->metrics = metrics;
    queues->tail = tl_tail_new(on_entry, queues);
    queues->troubles = tl_troubles_new();
    const struct tl_roster_settings roster = {.role = settings->role,
                                              .owner = owner,
                                              .fenced = settings->fenced,
                                              .troubles = queues->troubles,
                                              .context = queues,
                                              .acquired = acquired,
                                              .lost = lost};
    if (queues->tail == NULL || queues->troubles == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory to follow events");
    else if ((queues->store = tl_store_new(&redis, err)) != NULL)
        queues->roster = tl_roster_new(&roster, config, err);
    if (queues->roster == NULL)
        tl_held_queues_free(&queues);
    else
        tl_store_measure(queues->store, on_command, queues);
    return queues;
}

void tl_held_queues_free(struct tl_held_queues **queues_in)
{
    struct tl_held_queues *queues = *queues_in;
    if (queues == NULL)
        return;
    if (queues->roster != NULL && tl_redis_connected(tl_held_queues_redis(queues, NULL)))
        tl_roster_release_all(queues->roster, queues->store);
    tl_roster_free(&queues->roster);
    tl_tail_free(&queues->tail);
    tl_troubles_free(&queues->troubles);
    tl_store_free(&queues->store);
    free(queues);
    *queues_in = NULL;
}

size_t tl_held_queues_count(const struct tl_held_queues *queues)
{
    return tl_roster_count(queues->roster);
}

struct tl_held_queue *tl_held_queues_at(const struct tl_held_queues *queues, size_t i)
{
    return tl_roster_at(queues->roster, i);
}

struct tl_redis *tl_held_queues_redis(const struct tl_held_queues *queues, const char *queue)
{
    return tl_store_of(queues->store, queue);
}

/* ---- the steps of a turn ---- */

static void mark_outdated(const struct tl_held_queues *queues, struct tl_held_queue *held)
{
    if (queues->settings.outdated != NULL)
        queues->settings.outdated(queues->settings.context, held);
}

static void mark_all_outdated(const struct tl_held_queues *queues)
{
    tl_troubles_retry(queues->troubles);
    for (size_t i = 0; i < tl_roster_count(queues->roster); i++)
        mark_outdated(queues, tl_roster_at(queues->roster, i));
}

/* False with err while the store lacks the library: no role works without it. */
static bool note_library(struct tl_held_queues *queues, int64_t now_ms, struct tl_error *err)
{
    struct tl_redis *redis = tl_held_queues_redis(queues, NULL);
    struct tl_error problem = {0};
    if (tl_library_note(redis, queues->config->redis.key_prefix, &queues->library_ms, now_ms,
                        &problem))
        return true;
    if (tl_redis_connected(redis) && problem.kind == TL_ERR_DENIED) {
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = &problem},
               "the store is not told which library is in use, and another release may delete it: "
               "make the users of the store again (deploy/redis)");
        return true;
    }
    queues->library_ms = 0;
    *err = problem;
    return false;
}

bool tl_held_queues_refresh(struct tl_held_queues *queues, int64_t now_ms, struct tl_error *err)
{
    if (!tl_store_connect(queues->store, err))
        return false;
    uint64_t epoch = tl_redis_epoch(tl_held_queues_redis(queues, NULL));
    if (epoch != queues->epoch) {
        mark_all_outdated(queues);
        queues->library_ms = 0;
    }
    queues->epoch = epoch;
    bool ok = note_library(queues, now_ms, err) &&
              tl_roster_round(queues->roster, queues->store, now_ms, err);
    tl_metrics_set(queues->metrics, queues->settings.troubled,
                   (int64_t)tl_troubles_count(queues->troubles));
    tl_metrics_set(queues->metrics, queues->settings.listed,
                   (int64_t)tl_roster_listed(queues->roster));
    return ok;
}

bool tl_held_queues_resting(const struct tl_held_queues *queues, const struct tl_held_queue *held,
                            int64_t now_ms)
{
    return tl_troubles_resting(queues->troubles, held->keys.queue, now_ms);
}

bool tl_held_queues_set_aside(struct tl_held_queues *queues, struct tl_held_queue *held,
                              struct tl_error *err, int64_t now_ms)
{
    struct tl_redis *redis = tl_held_queues_redis(queues, held->keys.queue);
    if (!tl_roster_set_aside(queues->roster, redis, &held->keys, err, now_ms))
        return false;
    mark_outdated(queues, held);
    return true;
}

void tl_held_queues_served(struct tl_held_queues *queues, const struct tl_held_queue *held,
                           int64_t now_ms)
{
    (void)tl_troubles_end(queues->troubles, held->keys.queue, now_ms);
}

void tl_held_queues_report(const struct tl_held_queues *queues, struct tl_daemon *daemon)
{
    char detail[160];
    size_t troubled = tl_troubles_count(queues->troubles);
    tl_troubles_describe(queues->troubles, detail, sizeof(detail));
    tl_daemon_report(daemon, troubled == 0 || troubled < tl_roster_listed(queues->roster), detail);
}

bool tl_held_queues_serve(struct tl_held_queues *queues, int64_t now_ms, int64_t *due_ms,
                          struct tl_error *err)
{
    const struct tl_held_queues_settings *settings = &queues->settings;
    for (size_t i = 0; i < tl_roster_count(queues->roster); i++) {
        struct tl_held_queue *held = tl_roster_at(queues->roster, i);
        if (tl_held_queues_resting(queues, held, now_ms)) {
            if (settings->serve_resting != NULL)
                settings->serve_resting(settings->context, held, now_ms, due_ms);
            continue;
        }
        if (settings->serve(settings->context, held, now_ms, due_ms, err))
            tl_held_queues_served(queues, held, now_ms);
        else if (!tl_held_queues_set_aside(queues, held, err, now_ms))
            return false;
    }
    return true;
}

void tl_held_queues_recheck(struct tl_held_queues *queues)
{
    mark_all_outdated(queues);
    tl_roster_recheck_now(queues->roster);
}

int64_t tl_held_queues_wait_ms(const struct tl_held_queues *queues, int64_t due_ms, int64_t now_ms)
{
    int64_t round_ms = tl_roster_due(queues->roster);
    int64_t wait_ms = (due_ms < round_ms ? due_ms : round_ms) - now_ms;
    return wait_ms < 0 ? 0 : wait_ms > WAIT_MAX_MS ? WAIT_MAX_MS : wait_ms;
}

/* ---- events ---- */

bool tl_held_queues_follow(struct tl_held_queues *queues, const struct tl_held_queue *held,
                           const struct tl_tail_head *head, struct tl_error *err)
{
    return tl_tail_follow(queues->tail, &held->keys, head, err);
}

bool tl_held_queues_follows(const struct tl_held_queues *queues, const struct tl_held_queue *held)
{
    return tl_tail_follows(queues->tail, &held->keys);
}

size_t tl_held_queues_followed(const struct tl_held_queues *queues)
{
    return tl_tail_count(queues->tail);
}

bool tl_held_queues_read_events(struct tl_held_queues *queues, int64_t block_ms,
                                struct tl_error *err)
{
    return tl_tail_read(queues->tail, tl_held_queues_redis(queues, NULL), block_ms, NULL, err);
}
