/* SPDX-License-Identifier: Apache-2.0 */
/* One queue with an environment that records its requests. Included by the one file of a
 * test. */
#ifndef TL_TEST_WORLD_H
#define TL_TEST_WORLD_H

#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/wire/pack.h"
#include "worker/feed/follower.h"
#include "worker/queue/queue.h"
#include "worker/report/worker_metrics.h"

/* The store's clock is ahead of the local one by this. */
#define WORLD_STORE_MS 1700000000000

struct world {
    struct tl_queue_env env;
    void *metrics_memory;
    struct tl_queue *queue;
    uint64_t event; /* number of the last entry */
    int rebuilds, reloads;
    int changes; /* entries that the line has */
    /* What those above do with them; or NULL. */
    void (*taken)(struct world *world, const struct tl_event_entry *entry, int64_t now_ms);
    int applied, refused, lost;      /* pending commands settled */
    struct tl_pending_result result; /* of the last one */
};

/* Instead of the follower, which is the world itself. */
void tl_follower_rebuild(struct tl_follower *follower, const char *queue)
{
    (void)queue;
    ((struct world *)(void *)follower)->rebuilds++;
}

void tl_follower_reload(struct tl_follower *follower, const char *queue)
{
    (void)queue;
    ((struct world *)(void *)follower)->reloads++;
}

/* tl_queue_env.settle */
static inline void world_settle(void *context, struct tl_pending_command *pending,
                                const struct tl_pending_result *result)
{
    struct tl_queue *queue = context;
    struct world *world = (void *)queue->env->worker;
    tl_queue_settled(queue, pending, result);
    world->applied += result->end == TL_PENDING_APPLIED;
    world->refused += result->end == TL_PENDING_REFUSED;
    world->lost += result->end == TL_PENDING_LOST;
    world->result = *result;
}

/* An environment without a queue. */
static inline void world_start_env(struct world *world)
{
    size_t size = tl_metrics_size(tl_worker_metrics, TL_WORKER_METRICS);
    *world = (struct world){.event = 10};
    world->metrics_memory = aligned_alloc(64, (size + 63) / 64 * 64);
    if (world->metrics_memory == NULL)
        abort();
    memset(world->metrics_memory, 0, (size + 63) / 64 * 64);
    world->env = (struct tl_queue_env){
        .worker_id = "w",
        .metrics = tl_metrics_init(world->metrics_memory, tl_worker_metrics, TL_WORKER_METRICS),
        .ingest_up = true,
        .follower_up = true,
        .store_offset_ms = WORLD_STORE_MS,
        .follower = (void *)world,
        .worker = (void *)world,
        .settle = world_settle,
    };
}

static inline struct tl_queue_settings world_settings(void)
{
    return (struct tl_queue_settings){.policy = TL_POLICY_COUNTER,
                                      .capacity = 3,
                                      .session_ttl_ms = 60000,
                                      .claim_ttl_ms = 30000,
                                      .waiting_ttl_ms = 8000,
                                      .n_lanes = 1};
}

/* A line of generation 7 at event 10: the seqs 1 to 3 are active, `waiting` ones from 4 on wait. */
static inline struct tl_line *world_line(uint64_t waiting)
{
    struct tl_line *line = tl_line_new();
    if (line == NULL)
        abort();
    tl_line_start(line, 7, 10);
    for (uint64_t seq = 1; seq <= 3; seq++)
        if (!tl_line_add_active(line, seq, WORLD_STORE_MS + 60000))
            abort();
    if (waiting > 0 && !tl_line_add_waiting(line, 4, waiting))
        abort();
    return line;
}

static inline void world_start(struct world *world, uint64_t waiting)
{
    const struct tl_queue_settings settings = world_settings();
    world_start_env(world);
    world->queue = tl_queue_new(&world->env, "q");
    if (world->queue == NULL)
        abort();
    tl_queue_set_settings(world->queue, &settings, 0);
    tl_queue_set_line(world->queue, world_line(waiting), 0);
}

static inline void world_end(struct world *world)
{
    tl_queue_free(&world->queue);
    free(world->metrics_memory);
}

static inline int64_t world_metric(const struct world *world, enum tl_worker_metric metric)
{
    return tl_metrics_get(world->env.metrics, metric);
}

/* Applies an entry written as in pack.h. */
static inline void world_apply_text(struct world *world, const char *text, int64_t now_ms)
{
    struct packed buffer;
    struct tl_event_entry entry;
    pack_text(&buffer, text);
    if (tl_queue_apply(world->queue, buffer.data, buffer.size, now_ms, &entry)) {
        world->changes++;
        if (world->taken != NULL)
            world->taken(world, &entry, now_ms);
        tl_events_free(&entry);
    }
    pack_free(&buffer);
}

/* Applies the next entry of generation 7, with these events. */
static inline void world_apply(struct world *world, uint64_t waiting, uint64_t active,
                               const char *events, int64_t now_ms)
{
    char text[512];
    snprintf(text, sizeof(text), "[1,%llu,7,%llu,%llu,[%s]]", (unsigned long long)++world->event,
             (unsigned long long)waiting, (unsigned long long)active, events);
    world_apply_text(world, text, now_ms);
}

/* The number of commands in the next batch, which the store takes; 0: there is none. */
static inline size_t world_send(struct world *world)
{
    struct tl_outbox *outbox = world->queue->outbox;
    struct tl_outbox_payload payload;
    if (!tl_outbox_next(outbox, &payload))
        return 0;
    free(payload.bytes);
    tl_outbox_sent(outbox, payload.number, TL_BATCH_TAKEN, "1-1", 0);
    return payload.n_commands;
}

#endif
