#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/config/config.h"
#include "common/config/file_settings.h"
#include "common/config/queue_settings.h"
#include "common/store/durable.h"
#include "common/store/keys.h"
#include "common/store/mend.h"
#include "common/store/queue.h"
#include "common/store/recovery.h"
#include "common/store/reply.h"
#include "common/store/retired.h"
#include "common/store/snapshot.h"
#include "common/store/tail.h"
#include "worker/feed/change.h"
#include "worker/feed/followed_queues.h"
#include "worker/feed/stagger.h"

/* The longest value of a setting, as text: all lanes, or an address. */
enum { SETTING_MAX = 2048 };

/* Queues checked in one update: a thousand idle queues cost the store no more than these. */
enum { CHECKS_PER_UPDATE = 32 };

struct followed {
    struct tl_keys keys;
    struct tl_queue_settings settings;
    uint64_t generation;
    uint64_t base_seq; /* of the incarnation */
    bool known;        /* the settings were read at least once */
    bool posted;       /* the loop has its line */
    bool listed;       /* found by the update in progress */
    bool rebuild;
    int64_t rebuild_ms; /* when; 0: not chosen yet */
    bool reload;
};

struct tl_followed_queues {
    const char *key_prefix;
    struct tl_mailbox *changes;
    struct tl_queue_config *configured;
    bool *away; /* for each configured queue: an operator deleted it */
    size_t n_configured;
    bool create_missing;
    struct tl_actor actor;
    bool compares; /* tl_followed_queues_compare */
    struct tl_tail *tail;
    struct tl_durable *durable; /* NULL: changes in the memory of the store are good enough */
    struct tl_troubles *troubles;
    struct followed **queues;
    size_t n;
    size_t next_check; /* the first queue to check in the next update */
    bool check_all;    /* the next update checks all queues */
};

/* ---- the list ---- */

/* The tail's handler. A dropped entry is a gap, so without memory the queue is rebuilt. */
static bool on_entry(void *context, const struct tl_keys *keys, const void *payload, size_t length)
{
    struct tl_followed_queues *self = context;
    if (tl_change_post_bytes(self->changes, TL_CHANGE_ENTRY, keys->queue, payload, length, NULL))
        return true;
    tl_followed_queues_rebuild(self, keys->queue);
    return false;
}

static bool make_durable(void *context, struct tl_redis *redis, struct tl_error *err)
{
    struct tl_followed_queues *self = context;
    return tl_durable_wait(self->durable, redis, err);
}

struct tl_followed_queues *tl_followed_queues_new(const char *key_prefix,
                                                  const struct tl_config *config,
                                                  struct tl_mailbox *changes)
{
    struct tl_followed_queues *self = calloc(1, sizeof(*self));
    if (self == NULL)
        return NULL;
    size_t n = config->n_queues;
    self->key_prefix = key_prefix;
    self->changes = changes;
    self->create_missing = true;
    tl_actor_of_program(&self->actor, "worker", config->redis.changes_length);
    self->tail = tl_tail_new(on_entry, self);
    self->troubles = tl_troubles_new();
    self->configured = calloc(n > 0 ? n : 1, sizeof(*self->configured));
    self->away = calloc(n + 1, sizeof(*self->away));
    if (self->tail == NULL || self->troubles == NULL || self->configured == NULL ||
        self->away == NULL) {
        tl_followed_queues_free(&self);
        return NULL;
    }
    if (config->redis.durability != TL_DURABILITY_MEMORY) {
        self->durable = tl_durable_new(config->redis.durability, key_prefix);
        if (self->durable == NULL) {
            tl_followed_queues_free(&self);
            return NULL;
        }
        tl_tail_set_gate(self->tail, make_durable, self);
    }
    if (n > 0)
        memcpy(self->configured, config->queues, n * sizeof(*self->configured));
    self->n_configured = n;
    return self;
}

void tl_followed_queues_compare(struct tl_followed_queues *queues)
{
    queues->compares = true;
}

void tl_followed_queues_free(struct tl_followed_queues **queues)
{
    struct tl_followed_queues *old = *queues;
    *queues = NULL;
    if (old == NULL)
        return;
    for (size_t i = 0; i < old->n; i++)
        free(old->queues[i]);
    free(old->queues);
    free(old->configured);
    free(old->away);
    tl_tail_free(&old->tail);
    tl_durable_free(&old->durable);
    tl_troubles_free(&old->troubles);
    free(old);
}

static bool add(struct tl_followed_queues *self, const char *queue, struct tl_error *err)
{
    struct followed **queues = reallocarray(self->queues, self->n + 1, sizeof(struct followed *));
    if (queues != NULL)
        self->queues = queues;
    struct followed *followed = calloc(1, sizeof(*followed));
    if (queues == NULL || followed == NULL) {
        free(followed);
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for queue %s", queue);
    }
    tl_keys_init(&followed->keys, self->key_prefix, queue);
    followed->listed = true;
    self->queues[self->n++] = followed;
    return true;
}

static bool drop(struct tl_followed_queues *self, size_t i, struct tl_error *err)
{
    struct followed *followed = self->queues[i];
    if (!tl_change_post_gone(self->changes, followed->keys.queue, err))
        return false;
    tl_tail_forget(self->tail, &followed->keys);
    tl_troubles_forget(self->troubles, followed->keys.queue);
    self->queues[i] = self->queues[--self->n];
    free(followed);
    return true;
}

/* ---- the trouble of one queue ---- */

static const struct tl_queue_settings *configured(const struct tl_followed_queues *self,
                                                  const char *name)
{
    return tl_config_queue(self->configured, self->n_configured, name);
}

/* Did an operator delete this configured queue? */
static bool is_away(const struct tl_followed_queues *self, const char *name)
{
    for (size_t i = 0; i < self->n_configured; i++)
        if (strcmp(self->configured[i].name, name) == 0)
            return self->away[i];
    return false;
}

static bool resting(const struct tl_followed_queues *self, const char *name)
{
    return tl_troubles_resting(self->troubles, name, tl_clock_ms());
}

/* A queue could not be followed: mends what can be mended, and sets it aside. `memory`: its
 * settings as read before; may be NULL. False when the error concerns all queues. */
static bool queue_failed(struct tl_followed_queues *self, struct tl_redis *redis,
                         const struct tl_keys *keys, const struct tl_queue_settings *memory,
                         struct tl_error *err)
{
    const struct tl_mend_offer offer = {.from_memory = memory != NULL,
                                        .settings =
                                            memory != NULL ? memory : configured(self, keys->queue),
                                        .actor = &self->actor};
    if (!tl_error_is_of_queue(err, redis))
        return false;
    if (!tl_queue_set_aside(self->troubles, redis, keys, &offer, err, tl_clock_ms())) {
        self->create_missing = true; /* it does not exist */
        return true;
    }
    return tl_change_post_bytes(self->changes, TL_CHANGE_TROUBLE, keys->queue, err->text,
                                strlen(err->text), err);
}

static bool followed_failed(struct tl_followed_queues *self, struct tl_redis *redis,
                            const struct followed *followed, struct tl_error *err)
{
    return queue_failed(self, redis, &followed->keys, followed->known ? &followed->settings : NULL,
                        err);
}

static void followed_served(struct tl_followed_queues *self, const struct followed *followed)
{
    const char *name = followed->keys.queue;
    if (followed->posted && !followed->rebuild &&
        tl_troubles_end(self->troubles, name, tl_clock_ms()))
        (void)tl_change_post_bytes(self->changes, TL_CHANGE_TROUBLE, name, "", 0, NULL);
}

/* ---- one queue ---- */

static bool post_recovery(const struct tl_followed_queues *self, struct tl_redis *redis,
                          const struct followed *followed, struct tl_error *err)
{
    struct tl_recovery recovery;
    return tl_recovery_read(redis, &followed->keys, &recovery, err) &&
           tl_change_post_bytes(self->changes, TL_CHANGE_RECOVERY, followed->keys.queue, &recovery,
                                sizeof(recovery), err);
}

/* After a change of the settings: steps that the loop has counted may have had other weights. */
static bool post_turns(const struct tl_followed_queues *self, struct tl_redis *redis,
                       const struct followed *followed, struct tl_error *err)
{
    struct tl_turns_state turns = {0};
    return tl_turns_read(redis, &followed->keys, &turns, err) &&
           tl_change_post_bytes(self->changes, TL_CHANGE_TURNS, followed->keys.queue, &turns,
                                sizeof(turns), err);
}

/* The settings of the queue were read for the first time: says where the file differs. */
static void compare(const struct tl_followed_queues *self, const struct followed *followed)
{
    for (size_t i = 0; self->compares && i < self->n_configured; i++) {
        if (strcmp(self->configured[i].name, followed->keys.queue) == 0)
            tl_file_settings_log(&self->configured[i], &followed->settings);
    }
}

/* Builds the line from a snapshot, posts it and the notice, and follows the events from there. A
 * queue that is being deleted is not an error: the next update drops it. */
static bool rebuild(struct tl_followed_queues *self, struct tl_redis *redis,
                    struct followed *followed, struct tl_error *err)
{
    const struct tl_keys *keys = &followed->keys;
    struct tl_tail_head head;
    struct tl_error problem = {0};
    struct tl_line *line = NULL;
    struct tl_queue_settings settings;
    if (tl_queue_load(redis, keys, &settings, &problem))
        line = tl_snapshot(redis, keys, &head, &problem);
    if (line == NULL) {
        *err = problem;
        tl_tail_forget(self->tail, keys);
        followed->posted = followed->posted && problem.kind != TL_ERR_NOQUEUE;
        followed->rebuild = followed->rebuild && followed->posted;
        return followed_failed(self, redis, followed, err) ||
               tl_error_prefix(err, "loading queue %s", keys->queue);
    }
    followed->settings = settings;
    if (!followed->known)
        compare(self, followed);
    followed->known = true;
    uint64_t before = followed->generation;
    followed->generation = tl_line_generation(line);
    if (before != 0 && before < followed->generation &&
        !tl_recovery_name(redis, keys, before, followed->generation, err)) {
        followed->generation = before; /* named by the next attempt */
        tl_line_free(&line);
        return followed_failed(self, redis, followed, err);
    }
    followed->base_seq = head.base_seq;
    followed->posted = true;
    if (!post_recovery(self, redis, followed, err)) {
        tl_line_free(&line);
        followed->posted = false;
        return followed_failed(self, redis, followed, err);
    }
    if (!tl_change_post_line(self->changes, keys->queue, &followed->settings, line, err))
        return false;
    struct tl_args args = {0};
    tl_args_strs(&args, "HGET", keys->names[TL_KEY_STATE], "notice", NULL);
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    tl_args_free(&args);
    if (reply == NULL)
        return followed_failed(self, redis, followed, err);
    size_t length;
    const char *notice = tl_reply_string(reply, &length);
    bool ok =
        tl_change_post_bytes(self->changes, TL_CHANGE_NOTICE, keys->queue, notice, length, err) &&
        tl_tail_follow(self->tail, keys, &head, err);
    tl_reply_free(reply);
    if (ok) {
        followed->rebuild = false;
        followed->rebuild_ms = 0;
        followed_served(self, followed);
    }
    return ok;
}

/* Is it time for the rebuild that was asked for? After a new incarnation each worker has a time of
 * its own; for another reason, or when the queue cannot be read, it is time. */
static bool rebuild_is_due(struct tl_redis *redis, struct followed *followed)
{
    int64_t now_ms = tl_clock_ms();
    if (followed->rebuild_ms == 0) {
        struct tl_queue_info info;
        struct tl_queue_numbers numbers;
        struct tl_error problem = {0};
        bool incarnation =
            followed->posted && tl_queue_info_send(redis, &followed->keys, &problem) &&
            tl_queue_info_receive(redis, &followed->keys, &info, &problem) &&
            info.generation == followed->generation && info.base_seq != followed->base_seq &&
            tl_queue_numbers(redis, &followed->keys, &numbers, &problem);
        followed->rebuild_ms =
            incarnation
                ? tl_stagger_until(now_ms, numbers.waiting + numbers.active, randombytes_random())
                : now_ms;
    }
    return now_ms >= followed->rebuild_ms;
}

/* Posts the settings when they have changed. */
static bool update_settings(struct tl_followed_queues *self, struct followed *followed,
                            const struct tl_queue_settings *settings, struct tl_error *err)
{
    char value[SETTING_MAX];
    char known[SETTING_MAX];
    const char *name;
    bool same = settings->now.capacity == followed->settings.now.capacity &&
                settings->now.stale == followed->settings.now.stale;
    for (size_t i = 0; same && tl_queue_settings_get(settings, i, &name, value, sizeof(value)); i++)
        same = tl_queue_settings_get(&followed->settings, i, &name, known, sizeof(known)) &&
               strcmp(value, known) == 0;
    if (same)
        return true;
    followed->settings = *settings;
    followed->reload = true; /* for the turns of its lanes, when they were changed by hand */
    return tl_change_post_settings(self->changes, followed->keys.queue, settings, err);
}

/* ---- the update, once a second ---- */

static bool was_loaded(const struct tl_followed_queues *self, const char *name)
{
    for (size_t i = 0; i < self->n; i++) {
        if (strcmp(self->queues[i]->keys.queue, name) == 0)
            return self->queues[i]->generation != 0;
    }
    return false;
}

static bool ensure(const struct tl_followed_queues *self, struct tl_redis *redis,
                   const struct tl_queue_config *queue, struct tl_error *err)
{
    struct tl_error problem = {0};
    bool ok = was_loaded(self, queue->name)
                  ? tl_queue_ensure_known(redis, self->key_prefix, queue->name, &queue->settings,
                                          &self->actor, &problem)
                  : tl_queue_ensure(redis, self->key_prefix, queue->name, &queue->settings,
                                    &self->actor, NULL, &problem);
    /* A worker's own user of the store may not create queues: the other programs do. */
    if (ok || problem.kind == TL_ERR_DENIED)
        return true;
    *err = problem;
    return false;
}

/* Creates a configured queue if it is missing, unless an operator deleted it. */
static bool create(struct tl_followed_queues *self, struct tl_redis *redis, size_t i,
                   struct tl_error *err)
{
    const struct tl_queue_config *queue = &self->configured[i];
    bool away = false;
    if (!tl_retired_read(redis, self->key_prefix, queue->name, &away, err))
        return false;
    if (away && !self->away[i])
        tl_retired_warn(queue->name);
    self->away[i] = away;
    return away || ensure(self, redis, queue, err);
}

static bool create_missing(struct tl_followed_queues *self, struct tl_redis *redis,
                           struct tl_error *err)
{
    for (size_t i = 0; self->create_missing && i < self->n_configured; i++) {
        const struct tl_queue_config *queue = &self->configured[i];
        struct tl_keys keys;
        if (resting(self, queue->name) || create(self, redis, i, err))
            continue;
        tl_keys_init(&keys, self->key_prefix, queue->name);
        if (!queue_failed(self, redis, &keys, NULL, err))
            return false;
    }
    self->create_missing = false;
    return true;
}

/* Updates the list from the store, and notes when a configured queue is missing. That one stays: it
 * is created again at once, and its visitors must be told so. */
static bool list(struct tl_followed_queues *self, struct tl_redis *redis, struct tl_error *err)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    if (!tl_queue_list(redis, self->key_prefix, &names, &n, err))
        return false;
    for (size_t i = 0; i < self->n_configured; i++) {
        const char *name = self->configured[i].name;
        bool listed = tl_queue_find_name(names, n, name, NULL);
        if (listed)
            self->away[i] = false;
        else if (!self->away[i] && !resting(self, name))
            self->create_missing = true;
    }
    bool *known = calloc(n > 0 ? n : 1, sizeof(*known));
    if (known == NULL) {
        free(names);
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the list of queues");
    }
    for (size_t i = 0; i < self->n; i++) {
        struct followed *followed = self->queues[i];
        size_t at;
        followed->listed = tl_queue_find_name(names, n, followed->keys.queue, &at);
        if (followed->listed)
            known[at] = true;
    }
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = known[i] || add(self, names[i], err);
    free(known);
    free(names);
    for (size_t i = self->n; ok && i > 0; i--) {
        const struct followed *followed = self->queues[i - 1];
        const char *name = followed->keys.queue;
        if (!followed->listed && (configured(self, name) == NULL || is_away(self, name)))
            ok = drop(self, i - 1, err);
    }
    return ok;
}

/* The i-th queue to check in this update. */
static struct followed *in_turn(const struct tl_followed_queues *self, size_t i)
{
    return self->queues[(self->next_check + i) % self->n];
}

/* Finds queues that were replaced, incarnations whose events do not reach us (the ids of the stream
 * went back with the store's clock), and settings that were changed by hand. Reads the next queues
 * in one pipeline, and receives all answers before it acts on any. */
static bool check_next(struct tl_followed_queues *self, struct tl_redis *redis,
                       struct tl_error *err)
{
    struct tl_queue_info infos[CHECKS_PER_UPDATE];
    struct tl_error problems[CHECKS_PER_UPDATE] = {0};
    size_t n = self->n < CHECKS_PER_UPDATE ? self->n : CHECKS_PER_UPDATE;
    size_t sent = 0;
    while (sent < n && tl_queue_info_send(redis, &in_turn(self, sent)->keys, err))
        sent++;
    for (size_t i = 0; i < sent; i++)
        (void)tl_queue_info_receive(redis, &in_turn(self, i)->keys, &infos[i], &problems[i]);
    if (sent < n)
        return false;
    for (size_t i = 0; i < n; i++) {
        struct followed *followed = in_turn(self, i);
        if (resting(self, followed->keys.queue))
            continue;
        if (problems[i].kind != TL_OK) {
            *err = problems[i];
            if (!followed_failed(self, redis, followed, err))
                return false;
            continue;
        }
        bool current = followed->posted && infos[i].generation == followed->generation;
        if (current && infos[i].base_seq != followed->base_seq) {
            followed->rebuild = true; /* an incarnation: when it is time */
            continue;
        }
        if (!(current ? update_settings(self, followed, &infos[i].settings, err)
                      : rebuild(self, redis, followed, err)))
            return false;
        if (current)
            followed_served(self, followed);
    }
    self->next_check = n > 0 ? (self->next_check + n) % self->n : 0;
    return true;
}

bool tl_followed_queues_reconnected(struct tl_followed_queues *queues, struct tl_redis *redis,
                                    struct tl_error *err)
{
    queues->create_missing = true;
    queues->check_all = true;
    tl_troubles_retry(queues->troubles);
    return queues->durable == NULL || tl_durable_supported(queues->durable, redis, err);
}

bool tl_followed_queues_update(struct tl_followed_queues *queues, struct tl_redis *redis,
                               struct tl_error *err)
{
    if (!create_missing(queues, redis, err) || !list(queues, redis, err))
        return false;
    if (queues->create_missing &&
        (!create_missing(queues, redis, err) || !list(queues, redis, err)))
        return false;
    for (size_t i = 0; i < queues->n; i++) {
        struct followed *followed = queues->queues[i];
        if (!followed->posted && !resting(queues, followed->keys.queue) &&
            !rebuild(queues, redis, followed, err))
            return false;
    }
    size_t checks = queues->check_all ? queues->n / CHECKS_PER_UPDATE + 1 : 1;
    for (size_t i = 0; i < checks; i++) {
        if (!check_next(queues, redis, err))
            return false;
    }
    queues->check_all = false;
    return true;
}

/* ---- requests ---- */

void tl_followed_queues_rebuild(struct tl_followed_queues *queues, const char *queue)
{
    for (size_t i = 0; i < queues->n; i++) {
        if (queue == NULL || strcmp(queues->queues[i]->keys.queue, queue) == 0)
            queues->queues[i]->rebuild = true;
    }
}

void tl_followed_queues_reload(struct tl_followed_queues *queues, const char *queue)
{
    for (size_t i = 0; i < queues->n; i++) {
        if (strcmp(queues->queues[i]->keys.queue, queue) == 0)
            queues->queues[i]->reload = true;
    }
}

bool tl_followed_queues_serve(struct tl_followed_queues *queues, struct tl_redis *redis,
                              struct tl_error *err)
{
    for (size_t i = 0; i < queues->n; i++) {
        struct followed *followed = queues->queues[i];
        if (resting(queues, followed->keys.queue))
            continue;
        /* A posted queue whose events are not followed: its stream could not be read. */
        if (followed->posted && !tl_tail_follows(queues->tail, &followed->keys))
            followed->rebuild = true;
        if (followed->rebuild && rebuild_is_due(redis, followed) &&
            !rebuild(queues, redis, followed, err))
            return false;
        if (!followed->reload)
            continue;
        struct tl_queue_settings settings;
        struct tl_error problem = {0};
        followed->reload = false; /* also after a failure: updates check the settings too */
        if (tl_queue_load(redis, &followed->keys, &settings, &problem) &&
            post_recovery(queues, redis, followed, &problem)) {
            if (!update_settings(queues, followed, &settings, err))
                return false;
            followed->reload = false;
            if (!post_turns(queues, redis, followed, err) &&
                !followed_failed(queues, redis, followed, err))
                return false;
            followed_served(queues, followed);
        } else {
            *err = problem;
            if (!followed_failed(queues, redis, followed, err))
                return false;
        }
    }
    return true;
}

/* ---- events ---- */

bool tl_followed_queues_read(struct tl_followed_queues *queues, struct tl_redis *redis,
                             int64_t block_ms, size_t *entries, struct tl_error *err)
{
    return tl_tail_read(queues->tail, redis, block_ms, entries, err);
}

size_t tl_followed_queues_count(const struct tl_followed_queues *queues)
{
    return tl_tail_count(queues->tail);
}
