/* SPDX-License-Identifier: Apache-2.0 */
/* A queue in the store: creation, settings, counters. */
#ifndef TL_QUEUE_H
#define TL_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config/config.h"
#include "common/store/actor.h"
#include "common/store/keys.h"
#include "common/store/redis.h"
#include "common/store/state.h"
#include "common/store/store.h"
#include "common/wire/names.h"

/* The field of tl:{q}:config that is changed_us of the settings. */
#define TL_QUEUE_CHANGED "changed"

/* Appends all settings as names and values in turn, as functions take them, and when they were
 * changed. */
void tl_queue_append_settings(const struct tl_queue_settings *settings, struct tl_args *args);

/* Where a queue is made, and where it is listed: one and the same unless the store is a cluster.
 * Both are borrowed. */
struct tl_queue_site {
    struct tl_redis *redis, *list;
};
struct tl_queue_site tl_queue_site(struct tl_store *store, const char *queue);

/* Creates the queue with these settings if it does not exist, and does not change the settings of
 * an existing one. Also restores its consumer group and its entry in tl:queues. The creation is
 * recorded (common/control/call.h). *created may be NULL. */
bool tl_queue_ensure(struct tl_queue_site site, const char *key_prefix, const char *name,
                     const struct tl_queue_settings *settings, const struct tl_actor *actor,
                     bool *created, struct tl_error *err);

/* The same because an operator says so: also for a queue that was deleted, which starts again. The
 * others fail with TL_ERR_RETIRED for such a queue. */
bool tl_queue_create(struct tl_queue_site site, const char *key_prefix, const char *name,
                     const struct tl_queue_settings *settings, const struct tl_actor *actor,
                     bool *created, struct tl_error *err);

/* The same for a queue that this process knows, with the settings that were in force when it last
 * read them. If the queue is missing, its data was lost, and it is created in recovery
 * (common/store/state.h). If the store has older settings, it has lost the last change, and gets
 * these. *created may be NULL. */
bool tl_queue_bring_back(struct tl_queue_site site, const char *key_prefix, const char *name,
                         const struct tl_queue_settings *settings, const struct tl_actor *actor,
                         bool *created, struct tl_error *err);
/* Settings from the reply to HGETALL of tl:{q}:config. False: those that no queue is without are
 * missing. */
bool tl_queue_settings_read(const struct tl_reply *reply, struct tl_queue_settings *settings);
/* Sets the capacity that counts now, by the state (TL_STATE_CAPACITY). */
void tl_queue_settings_now(struct tl_queue_settings *settings, const struct tl_state *state);
/* Reads tl:{q}:config, and the capacity that counts now of the state. Fields a newer version wrote
 * are ignored; missing ones keep their default. TL_ERR_NOQUEUE when the queue does not exist. */
bool tl_queue_load(struct tl_redis *redis, const struct tl_keys *keys,
                   struct tl_queue_settings *settings, struct tl_error *err);

/* Generation, incarnation and settings of many queues in one pipeline: send for each queue, then
 * receive as many answers in the same order. Receive fails with TL_ERR_NOQUEUE for a queue that
 * does not exist; the remaining answers must still be received. */
struct tl_queue_info {
    uint64_t generation;
    uint64_t base_seq; /* as in struct tl_state */
    struct tl_queue_settings settings;
};
bool tl_queue_info_send(struct tl_redis *redis, const struct tl_keys *keys, struct tl_error *err);
bool tl_queue_info_receive(struct tl_redis *redis, const struct tl_keys *keys,
                           struct tl_queue_info *info, struct tl_error *err);

/* What one step has changed, as its function answers (common/store/line/changes.lua): JSON objects
 * of the members that changed, "{}" when nothing differs. */
struct tl_changes_made {
    char *before, *after;
};
/* Frees both texts; a zeroed struct is allowed. */
void tl_changes_made_free(struct tl_changes_made *made);

struct tl_queue_change {
    const char *name, *value;
};
struct tl_queue_changes {
    const struct tl_queue_change *list; /* names, and values as people write them */
    size_t n;
    /* Besides, or instead: those rows of tl_queue_table whose place here has a line, as in
     * `wanted`. NULL: none. */
    const struct tl_yaml_place *places;
    const struct tl_queue_settings *wanted;
    /* NULL, or: may the settings be changed that are there? Called with them, again after another
     * change came between; false with err refuses. */
    bool (*check)(void *context, const struct tl_queue_settings *before, struct tl_error *err);
    void *context;
};
/* Changes settings of an existing queue in one step, in this order, after validating all settings
 * together: all of them are changed or none. Writes those only (`lanes` with default_lane), and
 * only if no setting has changed since they were read; else reads them again. Emits a CONFIG event
 * and records what has changed, in the same step. *made (may be NULL) gets what has changed. */
bool tl_queue_configure(struct tl_redis *redis, const struct tl_keys *keys,
                        const struct tl_queue_changes *changes, const struct tl_actor *actor,
                        struct tl_changes_made *made, struct tl_error *err);

/* Sets the notice that all waiting visitors see (common/wire/notice_text.h; "" removes it): stores
 * it in the state and emits a NOTICE event. TL_ERR_INVALID for what is no notice. */
bool tl_queue_notice(struct tl_redis *redis, const struct tl_keys *keys, const char *text,
                     const struct tl_actor *actor, struct tl_error *err);

/* Lets the recovery of a queue end in this many ms, or begin. 0 ends it, and no other begins
 * automatically in this generation. It is recorded. */
bool tl_recovery_end_in(struct tl_redis *redis, const struct tl_keys *keys, int64_t ms,
                        const struct tl_actor *actor, struct tl_error *err);

/* The names in tl:queues, sorted; only valid ones. *names is one allocation, freed with free(). */
bool tl_queue_list(struct tl_redis *redis, const char *key_prefix,
                   char (**names)[TL_QUEUE_NAME_MAX + 1], size_t *n, struct tl_error *err);

/* Is the name in such a sorted list? *at gets its index (at may be NULL). */
bool tl_queue_find_name(char (*names)[TL_QUEUE_NAME_MAX + 1], size_t n, const char *name,
                        size_t *at);

#endif
