/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/role/role.h"
#include "common/store/library.h"

#define WAIT_MAX_MS 500 /* of a turn, also of one with nothing to do */

static const struct tl_queue_metrics_tables no_queue_metrics = {0};

static size_t common(const struct tl_process *process, size_t metric)
{
    return process->role->n_metrics + metric;
}

static void on_command(void *context, int64_t us)
{
    const struct tl_process *process = context;
    tl_metrics_observe(process->metrics, common(process, TL_ROLE_STORE_TIME), us);
}

/* ---- leases taken and gone ---- */

static void forget(struct tl_process *process, struct tl_held_queue *held)
{
    tl_tail_forget(process->tail, &held->keys);
    tl_queue_metrics_remove(process->queue_metrics, &held->series);
    free(held->state);
}

static bool take(void *context, struct tl_held_queue *held, struct tl_error *err)
{
    struct tl_process *process = context;
    const struct tl_role *role = process->role;
    const struct tl_log_fields fields = {.queue = held->keys.queue};
    held->state = calloc(1, role->queue_size);
    held->series = tl_queue_metrics_add(process->queue_metrics, held->keys.queue);
    bool ok = (held->state != NULL && held->series != NULL) ||
              tl_error_set(err, TL_ERR_NOMEM, "no memory for a queue");
    if (!ok || (role->take != NULL && !role->take(process->self, held, err))) {
        forget(process, held);
        return false;
    }
    tl_metrics_add(process->metrics, common(process, TL_ROLE_QUEUES), 1);
    if (role->fenced)
        tl_log(TL_LOG_INFO, &fields, "lease taken, fence %llu", (unsigned long long)held->fence);
    else
        tl_log(TL_LOG_INFO, &fields, "lease taken");
    return true;
}

static void drop(void *context, struct tl_held_queue *held)
{
    struct tl_process *process = context;
    process->role->drop(process->self, held);
    forget(process, held);
    tl_metrics_add(process->metrics, common(process, TL_ROLE_QUEUES), -1);
    tl_log(TL_LOG_INFO, &(struct tl_log_fields){.queue = held->keys.queue}, "lease released");
}

static bool on_event(void *context, const struct tl_keys *keys, const void *payload, size_t length)
{
    const struct tl_process *process = context;
    struct tl_held_queue *held = tl_roster_find(process->roster, keys->queue);
    return held != NULL && process->role->event(process->self, held, payload, length);
}

/* ---- making and freeing ---- */

static bool prepare_store(struct tl_process *process, struct tl_error *err)
{
    const struct tl_config *config = process->config;
    const struct tl_redis_settings redis = tl_redis_settings_of(config, NULL);
    process->store = tl_store_new(&redis, err);
    if (process->store == NULL)
        return false;
    tl_store_measure(process->store, on_command, process);
    const struct tl_roster_settings roster = {.role = process->role->name,
                                              .owner = process->id,
                                              .fenced = process->role->fenced,
                                              .store = process->store,
                                              .troubles = process->troubles,
                                              .context = process,
                                              .take = take,
                                              .drop = drop};
    process->roster = tl_roster_new(&roster, config, err);
    return process->roster != NULL;
}

struct tl_process *tl_process_new(const struct tl_role *role, const struct tl_config *config,
                                  const struct tl_signals *signals, struct tl_error *err)
{
    struct tl_process *process = calloc(1, sizeof(*process));
    if (process == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the role");
        return NULL;
    }
    process->role = role;
    process->config = config;
    process->signals = signals;
    tl_program_id(role->name, process->id);
    process->self = calloc(1, role->size);
    process->tail = tl_tail_new(on_event, process);
    process->troubles = tl_troubles_new();
    process->metrics = tl_metrics_new(role->metrics, role->n_metrics + TL_ROLE_METRICS);
    process->queue_metrics =
        tl_queue_metrics_new(role->queue_metrics != NULL ? role->queue_metrics : &no_queue_metrics,
                             config->metrics.max_queues);
    bool ok = (process->self != NULL && process->tail != NULL && process->troubles != NULL &&
               process->metrics != NULL && process->queue_metrics != NULL) ||
              tl_error_set(err, TL_ERR_NOMEM, "no memory for the role");
    ok = ok && role->open(process->self, process, err) &&
         (process->idle != NULL || prepare_store(process, err));
    if (!ok)
        tl_process_free(&process);
    return process;
}

void tl_process_free(struct tl_process **process_in)
{
    struct tl_process *process = *process_in;
    if (process == NULL)
        return;
    if (process->roster != NULL)
        tl_roster_release_all(process->roster);
    tl_roster_free(&process->roster);
    if (process->self != NULL)
        process->role->close(process->self);
    free(process->self);
    tl_tail_free(&process->tail);
    tl_troubles_free(&process->troubles);
    tl_store_free(&process->store);
    tl_queue_metrics_free(&process->queue_metrics);
    free(process->metrics);
    free(process);
    *process_in = NULL;
}

/* ---- the steps of a turn ---- */

static void mark_all_outdated(const struct tl_process *process)
{
    tl_troubles_retry(process->troubles, NULL);
    for (size_t i = 0; i < tl_roster_count(process->roster); i++)
        process->role->outdated(process->self, tl_roster_at(process->roster, i));
}

/* The connection is another one, or a cluster has changed: what is known of the queues whose node
 * is another one may be out of date. */
static void note_epoch(struct tl_process *process)
{
    uint64_t epoch = tl_store_epoch(process->store);
    if (epoch == process->epoch)
        return;
    process->epoch = epoch;
    process->library_ms = 0;
    for (size_t i = 0; i < tl_roster_count(process->roster); i++) {
        struct tl_held_queue *held = tl_roster_at(process->roster, i);
        if (tl_roster_reconnect(process->roster, held))
            process->role->outdated(process->self, held);
    }
}

/* False with err while the store lacks the library: no role works without it. The node of a cluster
 * that notes it may be away. */
static bool note_library(struct tl_process *process, int64_t now_ms, struct tl_error *err)
{
    struct tl_redis *redis = tl_store_common(process->store);
    struct tl_error problem = {0};
    if (tl_library_note(redis, process->config->redis.key_prefix, &process->library_ms, now_ms,
                        &problem))
        return true;
    if (tl_redis_connected(redis) && problem.kind == TL_ERR_DENIED) {
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.error = &problem},
               "the store is not told which library is in use, and another release may delete it: "
               "make the users of the store again (deploy/redis)");
        return true;
    }
    process->library_ms = 0;
    if (tl_redis_is_node(redis) && tl_error_is_of_store(&problem))
        return true;
    *err = problem;
    return false;
}

bool tl_process_refresh(struct tl_process *process, int64_t now_ms, struct tl_error *err)
{
    if (!tl_store_connect(process->store, err))
        return false;
    note_epoch(process);
    bool ok = note_library(process, now_ms, err) && tl_roster_round(process->roster, now_ms, err);
    tl_metrics_set(process->metrics, common(process, TL_ROLE_TROUBLED),
                   (int64_t)tl_troubles_count(process->troubles));
    tl_metrics_set(process->metrics, common(process, TL_ROLE_LISTED),
                   (int64_t)tl_roster_listed(process->roster));
    return ok;
}

bool tl_process_set_aside(struct tl_process *process, struct tl_held_queue *held, int64_t now_ms,
                          struct tl_error *err)
{
    if (!tl_roster_set_aside(process->roster, held->keys.queue, now_ms, err))
        return false;
    process->role->outdated(process->self, held);
    return true;
}

bool tl_process_serve(struct tl_process *process, int64_t now_ms, int64_t *due_ms,
                      struct tl_error *err)
{
    const struct tl_role *role = process->role;
    for (size_t i = 0; i < tl_roster_count(process->roster); i++) {
        struct tl_held_queue *held = tl_roster_at(process->roster, i);
        if (tl_troubles_resting(process->troubles, held->keys.queue, now_ms)) {
            if (role->serve_resting != NULL)
                role->serve_resting(process->self, held, now_ms, due_ms);
        } else if (role->serve(process->self, held, now_ms, due_ms, err)) {
            (void)tl_troubles_end(process->troubles, held->keys.queue, now_ms);
        } else if (!tl_process_set_aside(process, held, now_ms, err)) {
            return false;
        }
    }
    return true;
}

bool tl_process_able(const struct tl_process *process, char detail[160])
{
    size_t troubled = tl_troubles_count(process->troubles);
    if (process->idle != NULL)
        snprintf(detail, 160, "%s", process->idle);
    else if (process->hindrance != NULL)
        snprintf(detail, 160, "%.150s", process->hindrance);
    else
        tl_troubles_describe(process->troubles, detail, 160);
    return process->hindrance == NULL &&
           (troubled == 0 || troubled < tl_roster_listed(process->roster));
}

int64_t tl_process_wait_ms(const struct tl_process *process, int64_t due_ms, int64_t now_ms)
{
    char detail[160];
    int64_t round_ms = tl_roster_due(process->roster);
    int64_t retry_ms = tl_troubles_due(process->troubles, now_ms);
    int64_t next_ms = round_ms < retry_ms ? round_ms : retry_ms;
    int64_t wait_ms = (due_ms < next_ms ? due_ms : next_ms) - now_ms;
    if (wait_ms < 0 || (!process->ready && tl_process_able(process, detail)))
        return 0;
    return wait_ms > WAIT_MAX_MS ? WAIT_MAX_MS : wait_ms;
}

bool tl_process_wait(struct tl_process *process, int64_t wait_ms, struct tl_error *err)
{
    if (tl_tail_count(process->tail) > 0)
        return tl_tail_read(process->tail, process->store, wait_ms, NULL, err);
    (void)tl_signals_wait(process->signals, wait_ms);
    return true;
}

bool tl_process_turn(struct tl_process *process, int64_t now_ms, struct tl_error *err)
{
    if (process->idle != NULL) {
        (void)tl_signals_wait(process->signals, WAIT_MAX_MS);
        return true;
    }
    if (process->role->turn(process->self, now_ms, err))
        return true;
    mark_all_outdated(process);
    tl_roster_recheck_now(process->roster);
    /* Not an error: the lease moved, or the library was loaded again. */
    return err->kind == TL_ERR_STALE || err->kind == TL_ERR_NOFUNCTION;
}
