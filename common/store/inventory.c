/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/base/named.h"
#include "common/config/queue_settings.h"
#include "common/store/inventory.h"
#include "common/store/queue.h"
#include "common/store/reply.h"

enum {
    READ_AT_ONCE = 32, /* a thousand queues cost the store no more than these in one call */
    LIST_PASSES = 2,   /* what was made is listed; as often if others take it away */
};

/* A queue of the configuration, or one whose settings were read. */
struct entry {
    char queue[TL_QUEUE_NAME_MAX + 1];
    const struct tl_queue_config *file; /* NULL: the configuration does not name it */
    bool away;                          /* an operator deleted it; of the configuration only */
    bool compared;                      /* the file with the store */
    bool refused;                       /* it could not be made again, which was logged */
    bool known;                         /* what is in force */
    uint64_t made_epoch, read_epoch;    /* of its store, when it was made sure of, and read */
    struct tl_queue_settings in_force;
};

struct tl_inventory {
    struct tl_inventory_settings settings;
    struct tl_actor actor;
    struct tl_named list; /* struct entry */
    size_t next;          /* the first name to read in the next call */
    uint64_t epoch;       /* of the store, when they were read */
};

static struct entry *at(const struct tl_inventory *self, size_t i)
{
    return self->list.all[i].thing;
}

/* The connection of a queue. */
static struct tl_redis *redis_of(const struct tl_inventory *self, const char *queue)
{
    return tl_store_of(self->settings.store, queue);
}

static uint64_t epoch_of(const struct tl_inventory *self, const char *queue)
{
    return tl_store_epoch_of(self->settings.store, queue);
}

static struct entry *find(const struct tl_inventory *self, const char *queue)
{
    return tl_named_find(&self->list, queue);
}

static struct entry *find_or_add(struct tl_inventory *self, const char *queue)
{
    struct entry *entry = find(self, queue);
    if (entry != NULL)
        return entry;
    entry = calloc(1, sizeof(*entry));
    if (entry == NULL)
        return NULL;
    snprintf(entry->queue, sizeof(entry->queue), "%s", queue);
    if (tl_named_add(&self->list, entry->queue, entry))
        return entry;
    free(entry);
    return NULL;
}

struct tl_inventory *tl_inventory_new(const struct tl_inventory_settings *settings)
{
    const struct tl_config *config = settings->config;
    struct tl_inventory *self = calloc(1, sizeof(*self));
    if (self == NULL)
        return NULL;
    self->settings = *settings;
    tl_actor_of_program(&self->actor, settings->program, config->retention.changes_entries);
    for (size_t i = 0; i < config->n_queues; i++) {
        struct entry *entry = find_or_add(self, config->queues[i].name);
        if (entry == NULL) {
            tl_inventory_free(&self);
            return NULL;
        }
        entry->file = &config->queues[i];
    }
    return self;
}

void tl_inventory_free(struct tl_inventory **inventory)
{
    struct tl_inventory *old = *inventory;
    *inventory = NULL;
    if (old == NULL)
        return;
    for (size_t i = 0; i < old->list.n; i++)
        free(at(old, i));
    tl_named_free(&old->list);
    free(old);
}

bool tl_inventory_learn(struct tl_inventory *inventory, const char *queue,
                        const struct tl_queue_settings *settings)
{
    struct entry *entry = find_or_add(inventory, queue);
    if (entry == NULL)
        return false;
    entry->in_force = *settings;
    entry->known = true;
    entry->refused = false;
    if (entry->file != NULL && inventory->settings.compares && !entry->compared)
        tl_file_settings_log(entry->file, settings);
    entry->compared = true;
    return true;
}

const struct tl_queue_settings *tl_inventory_in_force(const struct tl_inventory *inventory,
                                                      const char *queue)
{
    const struct entry *entry = find(inventory, queue);
    return entry != NULL && entry->known ? &entry->in_force : NULL;
}

struct tl_mend_offer tl_inventory_offer(const struct tl_inventory *inventory, const char *queue)
{
    const struct entry *entry = find(inventory, queue);
    struct tl_mend_offer offer = {.actor = &inventory->actor};
    if (entry == NULL)
        return offer;
    offer.from_memory = entry->known;
    if (entry->known)
        offer.settings = &entry->in_force;
    else if (entry->file != NULL)
        offer.settings = &entry->file->settings;
    return offer;
}

size_t tl_inventory_count(const struct tl_inventory *inventory)
{
    return inventory->list.n;
}

const char *tl_inventory_expects(const struct tl_inventory *inventory, size_t i)
{
    const struct entry *entry = at(inventory, i);
    return entry->away ? NULL : entry->queue;
}

bool tl_inventory_has(const struct tl_inventory *inventory, const char *queue)
{
    const struct entry *entry = find(inventory, queue);
    return entry != NULL && !entry->away;
}

/* ---- making what is missing ---- */

/* Was the queue deleted by an operator, and not created again by one since? */
static bool read_away(const struct tl_inventory *self, const char *queue, bool *away,
                      struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct tl_keys keys;
    tl_keys_init(&keys, self->settings.key_prefix, queue);
    struct tl_reply *reply = tl_ask(redis_of(self, queue), err, "HGET",
                                    tl_key(&keys, TL_KEY_RETIRED, key), "away", NULL);
    *away = tl_reply_integer(reply) == 1;
    tl_reply_free(reply);
    return reply != NULL;
}

/* An operator deleted the queue. */
static void retire(struct tl_inventory *self, struct entry *entry)
{
    if (entry->file == NULL) {
        free(tl_named_remove(&self->list, entry->queue));
        return;
    }
    entry->away = true;
    entry->known = false;
    tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = entry->queue},
           "this queue of the configuration was deleted by an operator and stays away; take it out "
           "of the file, or create it again: `tellerline queue create %s`",
           entry->queue);
}

/* Gives the store the settings known here. listed: it has the queue. */
static bool bring_back(const struct tl_inventory *self, struct entry *entry, bool listed,
                       struct tl_error *err)
{
    bool created = false;
    const struct tl_log_fields fields = {.queue = entry->queue};
    if (!tl_queue_bring_back(tl_queue_site(self->settings.store, entry->queue),
                             self->settings.key_prefix, entry->queue, &entry->in_force,
                             &self->actor, &created, err))
        return false;
    entry->refused = false;
    if (created)
        tl_log(TL_LOG_WARN, &fields,
               "the store has lost the queue, which was made again with the settings in force");
    else if (listed) /* else another program was first */
        tl_log(TL_LOG_WARN, &fields,
               "the store has lost the last change of the settings, which was made again");
    return true;
}

/* Is the connection open? One node of a cluster is the trouble of its queues: it need not be. */
static bool is_usable(const struct tl_redis *redis)
{
    return tl_redis_connected(redis) || tl_redis_is_node(redis);
}

/* Settings known here could not be given to the store: says so once. False when it cannot be used.
 */
static bool refused(const struct tl_inventory *self, struct entry *entry,
                    const struct tl_error *problem, struct tl_error *err)
{
    const struct tl_log_fields fields = {.queue = entry->queue, .error = problem};
    const struct tl_redis *redis = redis_of(self, entry->queue);
    if (!is_usable(redis)) {
        *err = *problem;
        return false;
    }
    if (tl_redis_is_node(redis) && tl_error_is_of_store(problem))
        return true;
    if (problem->kind != TL_ERR_DENIED && !entry->refused)
        tl_log(TL_LOG_WARN, &fields, "the store has lost settings of the queue");
    entry->refused = true;
    return true;
}

/* Makes a queue that is missing, or makes sure of one that is listed. *made: the list has changed.
 */
static bool make(struct tl_inventory *self, struct entry *entry, bool listed, int64_t now_ms,
                 bool *made, struct tl_error *err)
{
    struct tl_error problem = {0};
    bool away = false;
    bool ok = read_away(self, entry->queue, &away, &problem);
    if (away) {
        retire(self, entry);
        return true;
    }
    if (ok && entry->known)
        ok = bring_back(self, entry, false, &problem);
    else if (ok)
        ok = tl_queue_ensure(tl_queue_site(self->settings.store, entry->queue),
                             self->settings.key_prefix, entry->queue, &entry->file->settings,
                             &self->actor, NULL, &problem);
    *made = *made || (ok && !listed);
    if (ok || problem.kind == TL_ERR_DENIED)
        entry->made_epoch = epoch_of(self, entry->queue);
    if (ok)
        return true;
    if (entry->file == NULL)
        return refused(self, entry, &problem, err);
    if (problem.kind == TL_ERR_DENIED ||
        self->settings.failed(self->settings.context, entry->queue, now_ms, &problem))
        return true;
    *err = problem;
    return false;
}

bool tl_inventory_list(struct tl_inventory *inventory, bool all, int64_t now_ms,
                       char (**names)[TL_QUEUE_NAME_MAX + 1], size_t *n, struct tl_error *err)
{
    for (int pass = 0;; pass++) {
        bool made = false, ok = true;
        if (!tl_queue_list(tl_store_common(inventory->settings.store),
                           inventory->settings.key_prefix, names, n, err))
            return false;
        for (size_t i = inventory->list.n; ok && i > 0; i--) {
            struct entry *entry = at(inventory, i - 1);
            bool listed = tl_queue_find_name(*names, *n, entry->queue, NULL);
            bool is_new = all || entry->made_epoch != epoch_of(inventory, entry->queue);
            entry->away = entry->away && !listed; /* also when the store has lost the mark */
            if ((!listed || (is_new && entry->file != NULL)) && !entry->away &&
                !tl_troubles_resting(inventory->settings.troubles, entry->queue, now_ms))
                ok = make(inventory, entry, listed, now_ms, &made, err);
        }
        if (ok && (!made || pass == LIST_PASSES))
            return true;
        free(*names);
        *names = NULL;
        if (!ok)
            return false;
        all = false;
    }
}

/* ---- reading ---- */

/* Queues that are read together. */
struct batch {
    size_t n;
    const char *names[READ_AT_ONCE];
    bool wanted[READ_AT_ONCE];
};

/* Of each queue in turn, as long as `wanted` says so: asks with this command, whose last argument
 * may be NULL. Those of a node that is away are no longer wanted. */
static bool ask(const struct tl_inventory *self, struct batch *batch, const char *command,
                const char *argument, struct tl_error *err)
{
    struct tl_args args = {0};
    bool ok = true;
    for (size_t i = 0; ok && i < batch->n; i++) {
        struct tl_keys keys;
        if (!batch->wanted[i])
            continue;
        tl_keys_init(&keys, self->settings.key_prefix, batch->names[i]);
        tl_args_reset(&args);
        tl_args_strs(&args, command, keys.names[TL_KEY_CONFIG], argument, NULL);
        struct tl_redis *redis = redis_of(self, batch->names[i]);
        batch->wanted[i] = tl_redis_append(redis, &args, err);
        ok = batch->wanted[i] || tl_redis_is_node(redis);
    }
    tl_args_free(&args);
    return ok;
}

/* Wants those whose settings were changed since they were read, or are not known. */
static bool want_changed(const struct tl_inventory *self, struct batch *batch, struct tl_error *err)
{
    if (!ask(self, batch, "HGET", TL_QUEUE_CHANGED, err))
        return false;
    for (size_t i = 0; i < batch->n; i++) {
        const struct tl_queue_settings *known = tl_inventory_in_force(self, batch->names[i]);
        struct tl_redis *redis = redis_of(self, batch->names[i]);
        if (!batch->wanted[i])
            continue;
        struct tl_reply *reply = tl_redis_next(redis, err);
        if (reply == NULL && !is_usable(redis))
            return false;
        struct entry *entry = find(self, batch->names[i]);
        if (reply != NULL && entry != NULL)
            entry->read_epoch = epoch_of(self, batch->names[i]);
        batch->wanted[i] =
            reply != NULL && (known == NULL || known->changed_us != tl_reply_integer(reply));
        tl_reply_free(reply);
    }
    return true;
}

/* Remembers the settings of those that are wanted, and then wants those whose settings in the store
 * are older. */
static bool want_older(struct tl_inventory *self, struct batch *batch, struct tl_error *err)
{
    if (!ask(self, batch, "HGETALL", NULL, err))
        return false;
    for (size_t i = 0; i < batch->n; i++) {
        struct tl_queue_settings settings;
        if (!batch->wanted[i])
            continue;
        const struct tl_queue_settings *known = tl_inventory_in_force(self, batch->names[i]);
        struct tl_redis *redis = redis_of(self, batch->names[i]);
        struct tl_reply *reply = tl_redis_next(redis, err);
        if (reply == NULL && !is_usable(redis))
            return false;
        bool sound = reply != NULL && tl_queue_settings_read(reply, &settings);
        tl_reply_free(reply);
        batch->wanted[i] = sound && known != NULL && known->changed_us > settings.changed_us;
        if (sound && !batch->wanted[i]) /* without memory it is read again soon */
            (void)tl_inventory_learn(self, batch->names[i], &settings);
    }
    return true;
}

/* Is the store of this queue another one than when its settings were read? */
static bool is_store_changed(const struct tl_inventory *self, const char *queue)
{
    const struct entry *entry = find(self, queue);
    return entry == NULL || entry->read_epoch != epoch_of(self, queue);
}

/* Reads some queues in one pipeline: all of them, or those whose store is another one. *older: the
 * store had older settings of one. */
static bool read_next(struct tl_inventory *self, char (*names)[TL_QUEUE_NAME_MAX + 1], size_t n,
                      bool *older, bool only_changed, struct tl_error *err)
{
    struct batch batch = {.n = n < READ_AT_ONCE ? n : READ_AT_ONCE};
    for (size_t i = 0; i < batch.n; i++) {
        batch.names[i] = names[(self->next + i) % n];
        batch.wanted[i] = !only_changed || is_store_changed(self, batch.names[i]);
    }
    if (!want_changed(self, &batch, err) || !want_older(self, &batch, err))
        return false;
    for (size_t i = 0; i < batch.n; i++) {
        struct entry *entry = find(self, batch.names[i]);
        struct tl_error problem = {0};
        if (!batch.wanted[i] || entry == NULL)
            continue;
        if (!bring_back(self, entry, true, &problem) && !refused(self, entry, &problem, err))
            return false;
        *older = true;
    }
    self->next = (self->next + batch.n) % n;
    return true;
}

bool tl_inventory_read(struct tl_inventory *inventory, char (*names)[TL_QUEUE_NAME_MAX + 1],
                       size_t n, bool all, struct tl_error *err)
{
    size_t read = 0;
    const uint64_t epoch = tl_store_epoch(inventory->settings.store);
    const bool store_changed = inventory->epoch != 0 && inventory->epoch != epoch;
    bool go_on = n > 0;
    while (go_on) {
        if (!read_next(inventory, names, n, &all, !all && read > 0, err))
            return false;
        read += READ_AT_ONCE;
        go_on = (all || store_changed) && read < n;
    }
    inventory->epoch = epoch;
    return true;
}
