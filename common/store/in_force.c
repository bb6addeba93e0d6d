/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/named.h"
#include "common/store/in_force.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/retired.h"

/* Queues read in one call: a thousand of them cost the store no more than these. */
enum { READ_AT_ONCE = 32 };

struct known {
    char queue[TL_QUEUE_NAME_MAX + 1];
    bool refused; /* it cannot be made again, which was logged */
    struct tl_queue_settings settings;
};

struct tl_in_force {
    const char *key_prefix;
    const struct tl_actor *actor;
    struct tl_named list; /* struct known */
    size_t next;          /* the first name to read in the next call */
};

struct tl_in_force *tl_in_force_new(const char *key_prefix, const struct tl_actor *actor)
{
    struct tl_in_force *self = calloc(1, sizeof(*self));
    if (self != NULL)
        *self = (struct tl_in_force){.key_prefix = key_prefix, .actor = actor};
    return self;
}

void tl_in_force_free(struct tl_in_force **in_force)
{
    struct tl_in_force *old = *in_force;
    *in_force = NULL;
    if (old == NULL)
        return;
    for (size_t i = 0; i < old->list.n; i++)
        free(old->list.all[i].thing);
    tl_named_free(&old->list);
    free(old);
}

const struct tl_queue_settings *tl_in_force_of(const struct tl_in_force *in_force,
                                               const char *queue)
{
    const struct known *known = tl_named_find(&in_force->list, queue);
    return known != NULL ? &known->settings : NULL;
}

/* Without memory the queue stays unknown, and the next time comes soon. */
static void remember(struct tl_in_force *self, const char *queue,
                     const struct tl_queue_settings *settings)
{
    struct known *known = tl_named_find(&self->list, queue);
    if (known == NULL) {
        known = malloc(sizeof(*known));
        if (known == NULL)
            return;
        snprintf(known->queue, sizeof(known->queue), "%s", queue);
        if (!tl_named_add(&self->list, known->queue, known)) {
            free(known);
            return;
        }
    }
    known->settings = *settings;
    known->refused = false;
}

/* ---- reading ---- */

/* Gives the store the settings known here. listed: it has the queue. False when it cannot be used.
 */
static bool bring_back(const struct tl_in_force *self, struct tl_redis *redis, struct known *known,
                       bool listed, bool *done, struct tl_error *err)
{
    struct tl_error problem = {0};
    bool created = false;
    *done = tl_queue_bring_back(redis, self->key_prefix, known->queue, &known->settings,
                                self->actor, &created, &problem);
    const struct tl_log_fields fields = {.queue = known->queue, .error = &problem};
    if (!*done && !tl_redis_connected(redis)) {
        *err = problem;
        return false;
    }
    const bool denied = problem.kind == TL_ERR_DENIED; /* the other programs do it */
    if (!*done && !denied && !known->refused)
        tl_log(TL_LOG_WARN, &fields, "the store has lost settings of the queue");
    else if (created)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = known->queue},
               "the store has lost the queue, which was made again with the settings in force");
    else if (*done && listed) /* else another program was first */
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = known->queue},
               "the store has lost the last change of the settings, which was made again");
    known->refused = !*done;
    return true;
}

/* Queues that are read together. */
struct batch {
    size_t n;
    const char *names[READ_AT_ONCE];
    bool wanted[READ_AT_ONCE];
};

/* Of each queue in turn, as long as `wanted` says so: asks with this command, whose last argument
 * may be NULL. */
static bool ask(const struct tl_in_force *self, struct tl_redis *redis, const struct batch *batch,
                const char *command, const char *argument, struct tl_error *err)
{
    struct tl_args args = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < batch->n; i++) {
        struct tl_keys keys;
        if (!batch->wanted[i])
            continue;
        tl_keys_init(&keys, self->key_prefix, batch->names[i]);
        tl_args_reset(&args);
        tl_args_strs(&args, command, keys.names[TL_KEY_CONFIG], argument, NULL);
        ok = tl_redis_append(redis, &args, err);
    }
    tl_args_free(&args);
    return ok;
}

/* Wants those whose settings were changed since they were read, or are not known. */
static bool want_changed(const struct tl_in_force *self, struct tl_redis *redis,
                         struct batch *batch, struct tl_error *err)
{
    if (!ask(self, redis, batch, "HGET", TL_QUEUE_CHANGED, err))
        return false;
    for (size_t i = 0; i < batch->n; i++) {
        const struct tl_queue_settings *known = tl_in_force_of(self, batch->names[i]);
        struct tl_reply *reply = tl_redis_next(redis, err);
        if (reply == NULL && !tl_redis_connected(redis))
            return false;
        batch->wanted[i] =
            reply != NULL && (known == NULL || known->changed_us != tl_reply_integer(reply));
        tl_reply_free(reply);
    }
    return true;
}

/* Remembers the settings of those that are wanted, and then wants those whose settings in the store
 * are older. */
static bool want_older(struct tl_in_force *self, struct tl_redis *redis, struct batch *batch,
                       struct tl_error *err)
{
    if (!ask(self, redis, batch, "HGETALL", NULL, err))
        return false;
    for (size_t i = 0; i < batch->n; i++) {
        struct tl_queue_settings settings;
        if (!batch->wanted[i])
            continue;
        const struct tl_queue_settings *known = tl_in_force_of(self, batch->names[i]);
        struct tl_reply *reply = tl_redis_next(redis, err);
        if (reply == NULL && !tl_redis_connected(redis))
            return false;
        bool sound = reply != NULL && tl_queue_settings_read(reply, &settings);
        tl_reply_free(reply);
        batch->wanted[i] = sound && known != NULL && known->changed_us > settings.changed_us;
        if (sound && !batch->wanted[i])
            remember(self, batch->names[i], &settings);
    }
    return true;
}

/* Reads some queues in one pipeline. *older: the store had older settings of one. */
static bool read_next(struct tl_in_force *self, struct tl_redis *redis,
                      char (*names)[TL_QUEUE_NAME_MAX + 1], size_t n, bool *older,
                      struct tl_error *err)
{
    struct batch batch = {.n = n < READ_AT_ONCE ? n : READ_AT_ONCE};
    for (size_t i = 0; i < batch.n; i++) {
        batch.names[i] = names[(self->next + i) % n];
        batch.wanted[i] = true;
    }
    if (!want_changed(self, redis, &batch, err) || !want_older(self, redis, &batch, err))
        return false;
    for (size_t i = 0; i < batch.n; i++) {
        struct known *known = tl_named_find(&self->list, batch.names[i]);
        bool done;
        if (!batch.wanted[i] || known == NULL)
            continue;
        if (!bring_back(self, redis, known, true, &done, err))
            return false;
        *older = true;
    }
    self->next = (self->next + batch.n) % n;
    return true;
}

bool tl_in_force_read(struct tl_in_force *in_force, struct tl_redis *redis,
                      char (*names)[TL_QUEUE_NAME_MAX + 1], size_t n, bool all,
                      struct tl_error *err)
{
    size_t read = 0;
    bool go_on = n > 0;
    while (go_on) {
        if (!read_next(in_force, redis, names, n, &all, err))
            return false;
        read += READ_AT_ONCE;
        go_on = all && read < n;
    }
    return true;
}

bool tl_in_force_make_lost(struct tl_in_force *in_force, struct tl_redis *redis,
                           char (*names)[TL_QUEUE_NAME_MAX + 1], size_t n, bool *made,
                           struct tl_error *err)
{
    *made = false;
    for (size_t i = in_force->list.n; i > 0; i--) {
        struct known *known = in_force->list.all[i - 1].thing;
        bool away, done = false;
        if (tl_queue_find_name(names, n, known->queue, NULL))
            continue;
        if (!tl_retired_read(redis, in_force->key_prefix, known->queue, &away, err)) {
            if (!tl_redis_connected(redis))
                return false;
        } else if (away) {
            free(tl_named_remove(&in_force->list, known->queue));
        } else if (!bring_back(in_force, redis, known, false, &done, err)) {
            return false;
        }
        *made = *made || done;
    }
    return true;
}
