/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/base/named.h"
#include "common/config/config.h"
#include "common/config/queue_settings.h"
#include "common/store/durable.h"
#include "common/store/inventory.h"
#include "common/store/keys.h"
#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/snapshot.h"
#include "common/store/state.h"
#include "common/store/tail.h"
#include "worker/feed/followed_queues.h"

enum {
    CHECKS_PER_UPDATE = 32, /* a thousand idle queues cost the store no more than these */
    MOVES_MS = 5000,        /* a slot of a cluster may be on its way this long... */
    ABSENT_MS = 5000, /* a queue may be missing this long before it is a trouble: programs that
                         start with an empty store make its queues at about the same time */
};

struct followed {
    struct tl_keys keys;
    struct tl_redis *redis; /* its connection; borrowed */
    uint64_t epoch;         /* of its store (tl_store_epoch_of) */
    uint64_t generation;
    uint64_t base_seq; /* of the incarnation */
    bool posted;       /* the loop has its line */
    bool listed;       /* found by the update in progress */
    bool unsafe;       /* its node does not keep what redis.durability asks for */
    int64_t absent_ms; /* since when it is not in the store; 0: it is */
    bool away;         /* its store is, and the loop knows */
    bool check;        /* it failed, or its store is another one: also when it is not its turn */
    bool rebuild;
    int64_t rebuild_ms; /* when; 0: not chosen yet */
    bool reload;
};

struct tl_followed_queues {
    struct tl_store *store;
    const char *key_prefix;
    struct tl_mailbox *changes;
    struct tl_inventory *inventory; /* with the settings as they were posted last */
    bool make_missing;              /* a queue that is listed is not in the store */
    struct tl_tail *tail;
    struct tl_durable durable;
    struct tl_troubles *troubles;
    struct tl_named queues; /* struct followed */
    size_t next_check;      /* modulo their number: the first to check in the next update */
    bool check_all;         /* the update checks all queues */
    bool listed;            /* the list was read once */
    int64_t timeout_ms;     /* redis.timeout */
};

/* A change of this queue. */
static bool post(const struct tl_followed_queues *self, const struct followed *followed,
                 const struct tl_change *change, struct tl_error *err)
{
    return tl_change_post(self->changes, followed->keys.queue, change, err);
}

/* ---- the list ---- */

static struct followed *at(const struct tl_followed_queues *self, size_t i)
{
    return self->queues.all[i].thing;
}

/* The tail's handler. A dropped entry is a gap, so without memory the queue is rebuilt. */
static bool on_entry(void *context, const struct tl_keys *keys, const void *payload, size_t length)
{
    struct tl_followed_queues *self = context;
    if (tl_change_post(
            self->changes, keys->queue,
            &(struct tl_change){.kind = TL_CHANGE_ENTRY, .bytes = payload, .length = length}, NULL))
        return true;
    tl_followed_queues_rebuild(self, keys->queue);
    return false;
}

static struct followed *add(struct tl_followed_queues *self, const char *queue, bool listed,
                            struct tl_error *err)
{
    struct followed *followed = calloc(1, sizeof(*followed));
    if (followed != NULL)
        tl_keys_init(&followed->keys, self->key_prefix, queue);
    if (followed == NULL || !tl_named_add(&self->queues, followed->keys.queue, followed)) {
        free(followed);
        tl_error_set(err, TL_ERR_NOMEM, "no memory for queue %s", queue);
        return NULL;
    }
    followed->redis = tl_store_of(self->store, queue);
    followed->epoch = tl_store_epoch_of(self->store, queue);
    followed->listed = listed;
    return followed;
}

static bool drop(struct tl_followed_queues *self, size_t i, struct tl_error *err)
{
    struct followed *followed = at(self, i);
    if (!post(self, followed, &(struct tl_change){.kind = TL_CHANGE_GONE}, err))
        return false;
    tl_tail_forget(self->tail, &followed->keys);
    tl_troubles_forget(self->troubles, followed->keys.queue);
    free(tl_named_remove(&self->queues, followed->keys.queue));
    return true;
}

/* ---- the trouble of one queue ---- */

static bool resting(const struct tl_followed_queues *self, const char *name)
{
    return tl_troubles_resting(self->troubles, name, tl_clock_ms());
}

/* It is not in the store: the next update makes it again, if this program may. Is that a trouble by
 * now? */
static bool absence_lasts(struct tl_followed_queues *self, struct followed *followed,
                          struct tl_error *err)
{
    const char *name = followed->keys.queue;
    const int64_t now_ms = tl_clock_ms();
    self->make_missing = true;
    if (followed->absent_ms == 0)
        followed->absent_ms = now_ms;
    if (now_ms - followed->absent_ms < ABSENT_MS)
        return false;
    (void)tl_error_set(
        err, TL_ERR_NOQUEUE,
        "the queue is not in the store, and none of the other programs creates it: "
        "do they run, with this configuration? `tellerline queue create %s` makes it",
        name);
    tl_troubles_note(self->troubles, name, err, now_ms);
    return true;
}

/* Is its store away? A queue that moves to another node only rests for a moment, and one whose node
 * stalls: its gate stays as it is, for as long as the only store would be waited for. */
static bool is_away(const struct tl_followed_queues *self, const struct followed *followed,
                    const struct tl_error *err)
{
    const int64_t grace_ms = err->kind == TL_ERR_MOVED ? MOVES_MS : self->timeout_ms;
    if (!tl_error_is_of_store(err))
        return false;
    return followed->away || !tl_redis_is_node(followed->redis) ||
           tl_troubles_lasted_ms(self->troubles, followed->keys.queue, tl_clock_ms()) >= grace_ms;
}

/* A queue could not be followed: mends what can be mended, and sets it aside. False when the error
 * concerns all queues. */
static bool followed_failed(struct tl_followed_queues *self, struct followed *followed,
                            struct tl_error *err)
{
    const struct tl_keys *keys = &followed->keys;
    const struct tl_mend_offer offer = tl_inventory_offer(self->inventory, keys->queue);
    followed->away = is_away(self, followed, err);
    followed->check = true;
    const struct tl_change change = {.kind = TL_CHANGE_TROUBLE, .away = followed->away};
    if (!tl_error_is_of_queue(err, followed->redis))
        return false;
    bool aside =
        tl_queue_set_aside(self->troubles, followed->redis, keys, &offer, err, tl_clock_ms());
    if (!aside && !absence_lasts(self, followed, err))
        return true;
    return post(self, followed, &change, err);
}

static void followed_served(struct tl_followed_queues *self, struct followed *followed)
{
    followed->absent_ms = 0;
    followed->away = false;
    if (followed->posted && !followed->rebuild && !followed->unsafe &&
        tl_troubles_end(self->troubles, followed->keys.queue, tl_clock_ms()))
        (void)post(self, followed, &(struct tl_change){.kind = TL_CHANGE_SOUND}, NULL);
}

/* The queues of a node can be made durable again, or cannot: then that is their trouble. */
static void note_safety(struct tl_followed_queues *self, const struct tl_redis *redis,
                        const struct tl_error *problem)
{
    const bool unsafe = problem->kind == TL_ERR_MISCONF;
    for (size_t i = 0; i < self->queues.n; i++) {
        struct followed *followed = at(self, i);
        struct tl_error reason = *problem;
        if (followed->redis != redis || unsafe == followed->unsafe)
            continue;
        followed->unsafe = unsafe;
        if (unsafe)
            (void)followed_failed(self, followed, &reason); /* without memory: it is told later */
    }
}

/* The tail's gate. In a cluster a node that has failed is only asked whether it has caught up: the
 * wait itself would hold up the queues of the others again. */
static bool make_durable(void *context, struct tl_redis *redis, const struct tl_keys *keys,
                         struct tl_error *err)
{
    struct tl_followed_queues *self = context;
    const struct followed *followed = tl_named_find(&self->queues, keys->queue);
    struct tl_error problem = {0};
    bool ok = followed == NULL || !followed->unsafe || tl_durable_caught_up(&self->durable, redis);
    if (!ok)
        tl_error_set(&problem, TL_ERR_MISCONF,
                     "what is written does not get where it must "
                     "(redis.durability)");
    ok = ok && tl_durable_wait(&self->durable, redis, keys->queue, &problem);
    if (tl_redis_is_node(redis) && (ok || problem.kind == TL_ERR_MISCONF))
        note_safety(self, redis, &problem);
    if (!ok)
        *err = problem;
    return ok;
}

/* tl_inventory_settings.failed */
static bool not_made(void *context, const char *queue, int64_t now_ms, struct tl_error *err)
{
    struct tl_followed_queues *self = context;
    struct followed *followed = tl_named_find(&self->queues, queue);
    (void)now_ms;
    if (followed == NULL && (followed = add(self, queue, false, err)) == NULL)
        return false;
    return followed_failed(self, followed, err);
}

/* ---- making and freeing ---- */

struct tl_followed_queues *tl_followed_queues_new(struct tl_store *store, const char *key_prefix,
                                                  const struct tl_config *config,
                                                  struct tl_mailbox *changes, bool compares)
{
    struct tl_followed_queues *self = calloc(1, sizeof(*self));
    if (self == NULL)
        return NULL;
    self->store = store;
    self->key_prefix = key_prefix;
    self->changes = changes;
    self->make_missing = true;
    self->timeout_ms = config->redis.timeout_ms;
    self->tail = tl_tail_new(on_entry, self);
    self->troubles = tl_troubles_new();
    self->inventory = tl_inventory_new(&(struct tl_inventory_settings){.store = store,
                                                                       .config = config,
                                                                       .key_prefix = key_prefix,
                                                                       .program = "worker",
                                                                       .troubles = self->troubles,
                                                                       .compares = compares,
                                                                       .failed = not_made,
                                                                       .context = self});
    tl_durable_init(&self->durable, config->redis.durability, key_prefix);
    if (self->inventory == NULL || self->tail == NULL || self->troubles == NULL)
        tl_followed_queues_free(&self);
    else
        tl_tail_set_gate(self->tail, make_durable, self);
    return self;
}

void tl_followed_queues_free(struct tl_followed_queues **queues)
{
    struct tl_followed_queues *old = *queues;
    *queues = NULL;
    if (old == NULL)
        return;
    for (size_t i = 0; i < old->queues.n; i++)
        free(at(old, i));
    tl_named_free(&old->queues);
    tl_inventory_free(&old->inventory);
    tl_tail_free(&old->tail);
    tl_troubles_free(&old->troubles);
    free(old);
}

/* ---- one queue ---- */

/* Reads the settings. If the store has lost the last change of them, it gets those known here
 * before; a worker's own user of the store may not do that: the other programs do. */
static bool load_settings(const struct tl_followed_queues *self, const struct followed *followed,
                          struct tl_queue_settings *settings, struct tl_error *err)
{
    const struct tl_keys *keys = &followed->keys;
    const struct tl_mend_offer offer = tl_inventory_offer(self->inventory, keys->queue);
    if (!tl_queue_load(followed->redis, keys, settings, err))
        return false;
    if (!offer.from_memory || offer.settings->changed_us <= settings->changed_us)
        return true;
    if (!tl_queue_bring_back(tl_queue_site(self->store, keys->queue), self->key_prefix, keys->queue,
                             offer.settings, offer.actor, NULL, err) &&
        err->kind != TL_ERR_DENIED)
        return false;
    return tl_queue_load(followed->redis, keys, settings, err);
}

/* These settings are known from now on. */
static bool learn(struct tl_followed_queues *self, const struct followed *followed,
                  const struct tl_queue_settings *settings, struct tl_error *err)
{
    return tl_inventory_learn(self->inventory, followed->keys.queue, settings) ||
           tl_error_set(err, TL_ERR_NOMEM, "no memory for queue %s", followed->keys.queue);
}

/* Builds the line from a snapshot, posts it and the notice, and follows the events from there. A
 * queue that is being deleted is not an error: the next update drops it. */
static bool rebuild(struct tl_followed_queues *self, struct followed *followed,
                    struct tl_error *err)
{
    const struct tl_keys *keys = &followed->keys;
    struct tl_tail_head head;
    struct tl_queue_settings settings;
    struct tl_line *line = NULL;
    if (load_settings(self, followed, &settings, err))
        line = tl_snapshot(followed->redis, keys, &head, err);
    if (line == NULL) {
        tl_tail_forget(self->tail, keys);
        followed->posted = followed->posted && err->kind != TL_ERR_NOQUEUE;
        followed->rebuild = followed->rebuild && followed->posted;
        return followed_failed(self, followed, err) ||
               tl_error_prefix(err, "loading queue %s", keys->queue);
    }
    followed->posted = learn(self, followed, &settings, err) &&
                       tl_change_read_state(self->changes, followed->redis, &followed->keys,
                                            TL_CHANGE_RECOVERY, err);
    if (!followed->posted) {
        tl_line_free(&line);
        return followed_failed(self, followed, err);
    }
    followed->generation = line->generation;
    followed->base_seq = head.base_seq;
    const struct tl_change change = {.kind = TL_CHANGE_LINE, .line = line, .settings = &settings};
    if (!post(self, followed, &change, err) ||
        !tl_change_read_notice(self->changes, followed->redis, keys, err) ||
        !tl_tail_follow(self->tail, keys, &head, err))
        return followed_failed(self, followed, err);
    followed->rebuild = false;
    followed->rebuild_ms = 0;
    followed_served(self, followed);
    return true;
}

/* Is it time for the rebuild that was asked for? After a new incarnation each worker has a time of
 * its own; for another reason, or when the queue cannot be read, it is time. */
static bool rebuild_is_due(struct followed *followed)
{
    int64_t now_ms = tl_clock_ms();
    if (followed->rebuild_ms == 0) {
        struct tl_state state;
        struct tl_error problem = {0};
        bool incarnation = followed->posted &&
                           tl_state_read(followed->redis, &followed->keys,
                                         TL_STATE_BASE_SEQ | TL_STATE_SIZES, &state, &problem) &&
                           state.generation == followed->generation &&
                           state.base_seq != followed->base_seq;
        followed->rebuild_ms = incarnation ? tl_stagger_until(now_ms, state.waiting + state.active,
                                                              randombytes_random())
                                           : now_ms;
    }
    return now_ms >= followed->rebuild_ms;
}

/* Posts the settings when they have changed. */
static bool update_settings(struct tl_followed_queues *self, struct followed *followed,
                            const struct tl_queue_settings *settings, struct tl_error *err)
{
    const struct tl_queue_settings *known =
        tl_inventory_in_force(self->inventory, followed->keys.queue);
    bool same = known != NULL && tl_queue_settings_same(settings, known);
    if (!learn(self, followed, settings, err))
        return false;
    if (same)
        return true;
    followed->reload = true; /* for the turns of its lanes, when they were changed by hand */
    return post(self, followed,
                &(struct tl_change){.kind = TL_CHANGE_SETTINGS, .settings = settings}, err);
}

/* ---- the update, once a second ---- */

/* Updates the list from the store (in a cluster, the last one stays while the node that has it is
 * away), which gets the queues that are missing. Those that a worker's own user of the store may
 * not make are followed from then on: the other programs make them. A queue that is not on the list
 * is dropped if an operator deleted it, or nothing is known of it. Any other stays: it is made
 * again at once, and its visitors must be told so. */
static bool list(struct tl_followed_queues *self, struct tl_error *err)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    if (!tl_inventory_list(self->inventory, self->make_missing, tl_clock_ms(), &names, &n, err))
        return self->listed && tl_error_is_of_store(err) &&
               tl_redis_is_node(tl_store_common(self->store));
    self->listed = true;
    self->make_missing = false;
    for (size_t i = 0; i < self->queues.n; i++) {
        struct followed *followed = at(self, i);
        bool listed = tl_queue_find_name(names, n, followed->keys.queue, NULL);
        if (listed && !followed->listed && followed->absent_ms != 0)
            tl_troubles_retry(self->troubles, NULL); /* it was made at last */
        followed->listed = listed;
    }
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = tl_named_find(&self->queues, names[i]) != NULL ||
             add(self, names[i], true, err) != NULL;
    free(names);
    for (size_t i = 0; ok && i < tl_inventory_count(self->inventory); i++) {
        const char *name = tl_inventory_expects(self->inventory, i);
        ok = name == NULL || tl_named_find(&self->queues, name) != NULL ||
             add(self, name, false, err) != NULL;
    }
    for (size_t i = self->queues.n; ok && i > 0; i--)
        ok = at(self, i - 1)->listed ||
             tl_inventory_has(self->inventory, at(self, i - 1)->keys.queue) ||
             drop(self, i - 1, err);
    return ok;
}

static struct followed *in_turn(const struct tl_followed_queues *self, size_t i)
{
    return at(self, (self->next_check + i) % self->queues.n);
}

/* Finds queues that were replaced, incarnations whose events do not reach us (the ids of the stream
 * went back with the store's clock), and settings that were changed by hand. Reads some queues, the
 * first being the from-th in turn, in one pipeline, and receives all answers before it acts on any.
 * only_marked: leaves out those that are not to be checked before their turn. */
static bool check_some(struct tl_followed_queues *self, size_t from, bool only_marked,
                       struct tl_error *err)
{
    struct tl_queue_info infos[CHECKS_PER_UPDATE];
    struct tl_error problems[CHECKS_PER_UPDATE] = {0};
    bool asked[CHECKS_PER_UPDATE];
    size_t n = self->queues.n - from;
    n = n < CHECKS_PER_UPDATE ? n : CHECKS_PER_UPDATE;
    for (size_t i = 0; i < n; i++) {
        struct followed *followed = in_turn(self, from + i);
        asked[i] = !only_marked || followed->check;
        if (asked[i] && !tl_queue_info_send(followed->redis, &followed->keys, &problems[i]) &&
            !tl_redis_is_node(followed->redis)) {
            *err = problems[i];
            return false; /* the only connection is broken: no answer is due */
        }
    }
    for (size_t i = 0; i < n; i++) {
        const struct followed *followed = in_turn(self, from + i);
        if (asked[i] && problems[i].kind == TL_OK)
            (void)tl_queue_info_receive(followed->redis, &followed->keys, &infos[i], &problems[i]);
    }
    for (size_t i = 0; i < n; i++) {
        struct followed *followed = in_turn(self, from + i);
        if (!asked[i] || resting(self, followed->keys.queue))
            continue;
        followed->check = false;
        if (problems[i].kind != TL_OK) {
            *err = problems[i];
            if (!followed_failed(self, followed, err))
                return false;
            continue;
        }
        bool current = followed->posted && infos[i].generation == followed->generation;
        bool same = current && infos[i].base_seq == followed->base_seq;
        if (followed->posted && !same && !followed->rebuild)
            self->check_all = true; /* the store has lost something, maybe of all queues */
        if (current && !same) {
            followed->rebuild = true; /* an incarnation: when it is time */
            continue;
        }
        const struct tl_queue_settings *known =
            tl_inventory_in_force(self->inventory, followed->keys.queue);
        if (current && known != NULL && known->changed_us > infos[i].settings.changed_us) {
            followed->reload = true; /* the store has lost the last change */
            continue;
        }
        if (!(current ? update_settings(self, followed, &infos[i].settings, err)
                      : rebuild(self, followed, err)))
            return false;
        if (current)
            followed_served(self, followed);
    }
    return true;
}

bool tl_followed_queues_reconnected(struct tl_followed_queues *queues, struct tl_error *err)
{
    bool ok = true;
    for (size_t i = 0; i < queues->queues.n; i++) {
        struct followed *followed = at(queues, i);
        const uint64_t epoch = tl_store_epoch_of(queues->store, followed->keys.queue);
        if (epoch == followed->epoch)
            continue;
        followed->redis = tl_store_of(queues->store, followed->keys.queue);
        followed->epoch = epoch;
        followed->check = true;
        tl_troubles_retry(queues->troubles, followed->keys.queue);
    }
    for (size_t i = 0; ok && i < tl_store_nodes(queues->store); i++) {
        struct tl_redis *redis = tl_store_node(queues->store, i);
        ok = tl_durable_supported(&queues->durable, redis, err) ||
             (tl_redis_is_node(redis) && tl_error_is_of_store(err));
    }
    return ok;
}

bool tl_followed_queues_update(struct tl_followed_queues *queues, struct tl_error *err)
{
    if (!list(queues, err))
        return false;
    bool any = false;
    for (size_t i = 0; i < queues->queues.n; i++) {
        struct followed *followed = at(queues, i);
        if (resting(queues, followed->keys.queue))
            continue;
        if (!followed->posted && !rebuild(queues, followed, err))
            return false;
        followed->check = followed->check || !tl_redis_connected(followed->redis); /* node away */
        any = any || followed->check;
    }
    size_t from = 0;
    do {
        if (!check_some(queues, from, from > 0 && !queues->check_all, err))
            return false;
        from += CHECKS_PER_UPDATE;
    } while ((queues->check_all || any) && from < queues->queues.n);
    queues->check_all = false;
    queues->next_check += CHECKS_PER_UPDATE; /* once: the turn does not depend on the others */
    return true;
}

bool tl_followed_queues_loaded(const struct tl_followed_queues *queues)
{
    for (size_t i = 0; i < queues->queues.n; i++) {
        const struct followed *followed = at(queues, i);
        if (!followed->posted && !resting(queues, followed->keys.queue))
            return false;
    }
    return true;
}

/* ---- requests ---- */

void tl_followed_queues_rebuild(struct tl_followed_queues *queues, const char *queue)
{
    for (size_t i = 0; i < queues->queues.n; i++) {
        if (queue == NULL || strcmp(at(queues, i)->keys.queue, queue) == 0)
            at(queues, i)->rebuild = true;
    }
}

void tl_followed_queues_reload(struct tl_followed_queues *queues, const char *queue)
{
    struct followed *followed = tl_named_find(&queues->queues, queue);
    if (followed != NULL)
        followed->reload = true;
}

bool tl_followed_queues_serve(struct tl_followed_queues *queues, struct tl_error *err)
{
    for (size_t i = 0; i < queues->queues.n; i++) {
        struct followed *followed = at(queues, i);
        if (resting(queues, followed->keys.queue))
            continue;
        /* A posted queue whose events are not followed: its stream could not be read. */
        if (followed->posted && !tl_tail_follows(queues->tail, &followed->keys))
            followed->rebuild = true;
        if (followed->rebuild && rebuild_is_due(followed) && !rebuild(queues, followed, err))
            return false;
        if (!followed->reload)
            continue;
        struct tl_queue_settings settings;
        followed->reload = false; /* also after a failure: updates check the settings too */
        bool read = load_settings(queues, followed, &settings, err) &&
                    tl_change_read_state(queues->changes, followed->redis, &followed->keys,
                                         TL_CHANGE_RECOVERY, err);
        if (read && !update_settings(queues, followed, &settings, err))
            return false;
        if ((!read || !tl_change_read_state(queues->changes, followed->redis, &followed->keys,
                                            TL_CHANGE_TURNS, err)) &&
            !followed_failed(queues, followed, err))
            return false;
        followed->reload = false;
        if (read)
            followed_served(queues, followed);
    }
    return true;
}

/* ---- events ---- */

bool tl_followed_queues_read(struct tl_followed_queues *queues, int64_t block_ms, size_t *entries,
                             struct tl_error *err)
{
    return tl_tail_read(queues->tail, queues->store, block_ms, entries, err);
}

size_t tl_followed_queues_count(const struct tl_followed_queues *queues)
{
    return tl_tail_count(queues->tail);
}
