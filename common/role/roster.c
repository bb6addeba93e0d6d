/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/named.h"
#include "common/config/config.h"
#include "common/role/roster.h"
#include "common/store/file_queues.h"
#include "common/store/in_force.h"
#include "common/store/lease.h"
#include "common/store/lease_plan.h"
#include "common/store/mend.h"
#include "common/store/queue.h"
#include "common/wire/names.h"

/* A lease lasts three of these, or more: a turn may take a second without losing it, and turns
 * that take longer make it longer. */
#define ROUND_MS 500

/* What is missing is made again, and then listed; as often if others take it away. */
enum { LIST_PASSES = 2 };

struct tl_roster {
    struct tl_roster_settings settings;
    const struct tl_config *config;
    struct tl_actor actor;
    struct tl_in_force *in_force;
    struct tl_file_queues *file;
    struct tl_named held;                 /* one allocation each: callers keep pointers to keys */
    char (*names)[TL_QUEUE_NAME_MAX + 1]; /* all queues, sorted */
    struct tl_lease *leases;              /* one for each name */
    size_t n_names;
    size_t next_check;  /* where the few checks of the next round start */
    int64_t renew_ms;   /* when to list queues and renew what is held */
    int64_t check_ms;   /* when the first lease of another replica may have run out */
    int64_t renewed_ms; /* when the leases held were renewed */
    uint64_t epoch;     /* of the connection at the last round */
    bool ensure;        /* the next round creates configured queues that are missing */
    struct tl_lease_client client;
};

struct tl_roster *tl_roster_new(const struct tl_roster_settings *settings,
                                const struct tl_config *config, struct tl_error *err)
{
    struct tl_roster *roster = calloc(1, sizeof(*roster));
    if (roster == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the leases");
        return NULL;
    }
    roster->settings = *settings;
    roster->config = config;
    tl_actor_of_program(&roster->actor, settings->role, config->redis.changes_length);
    tl_lease_client_init(&roster->client, config->redis.key_prefix, settings->role, settings->owner,
                         settings->fenced);
    roster->in_force = tl_in_force_new(config->redis.key_prefix, &roster->actor);
    roster->file = tl_file_queues_new(config->redis.key_prefix, config, &roster->actor);
    if (roster->in_force == NULL || roster->file == NULL) {
        tl_roster_free(&roster);
        tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu queues", config->n_queues);
    }
    return roster;
}

static void drop_held(struct tl_roster *roster, struct tl_held_queue *held)
{
    roster->settings.lost(roster->settings.context, held);
    free(tl_named_remove(&roster->held, held->keys.queue));
}

void tl_roster_free(struct tl_roster **roster)
{
    if (*roster == NULL)
        return;
    while ((*roster)->held.n > 0)
        drop_held(*roster, tl_roster_at(*roster, (*roster)->held.n - 1));
    tl_in_force_free(&(*roster)->in_force);
    tl_file_queues_free(&(*roster)->file);
    tl_named_free(&(*roster)->held);
    free((*roster)->names);
    free((*roster)->leases);
    tl_lease_client_deinit(&(*roster)->client);
    free(*roster);
    *roster = NULL;
}

int64_t tl_roster_due(const struct tl_roster *roster)
{
    return roster->check_ms < roster->renew_ms ? roster->check_ms : roster->renew_ms;
}

void tl_roster_recheck_now(struct tl_roster *roster)
{
    roster->renew_ms = 0;
    roster->ensure = true;
}

size_t tl_roster_listed(const struct tl_roster *roster)
{
    return roster->n_names;
}

size_t tl_roster_count(const struct tl_roster *roster)
{
    return roster->held.n;
}

struct tl_held_queue *tl_roster_at(struct tl_roster *roster, size_t i)
{
    return roster->held.all[i].thing;
}

struct tl_held_queue *tl_roster_find(const struct tl_roster *roster, const char *queue)
{
    return tl_named_find(&roster->held, queue);
}

static bool add_held(struct tl_roster *roster, const struct tl_lease *lease, struct tl_error *err)
{
    struct tl_held_queue *held = calloc(1, sizeof(*held));
    if (held == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a queue");
    tl_keys_init(&held->keys, roster->config->redis.key_prefix, lease->queue);
    held->redis = tl_store_of(roster->settings.store, lease->queue);
    held->fence = lease->fence;
    if (!roster->settings.acquired(roster->settings.context, held, err)) {
        free(held);
        return false;
    }
    if (!tl_named_add(&roster->held, held->keys.queue, held)) {
        roster->settings.lost(roster->settings.context, held);
        free(held);
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a queue");
    }
    return true;
}

bool tl_roster_set_aside(struct tl_roster *roster, struct tl_redis *redis,
                         const struct tl_keys *keys, struct tl_error *err, int64_t now_ms)
{
    const struct tl_queue_settings *in_force = tl_in_force_of(roster->in_force, keys->queue);
    const struct tl_mend_offer offer = {
        .from_memory = in_force != NULL,
        .settings =
            in_force != NULL ? in_force : tl_file_queues_settings(roster->file, keys->queue),
        .actor = &roster->actor};
    if (!tl_error_is_of_queue(err, redis))
        return false;
    if (tl_queue_set_aside(roster->settings.troubles, redis, keys, &offer, err, now_ms))
        return true;
    struct tl_error absent = *err;
    bool made = offer.settings != NULL &&
                tl_queue_bring_back(redis, roster->config->redis.key_prefix, keys->queue,
                                    offer.settings, &roster->actor, NULL, err);
    if (err->kind == TL_ERR_DENIED)
        *err = absent;               /* the other programs make it */
    if (err->kind == TL_ERR_RETIRED) /* it is being deleted: it leaves the list next */
        err->kind = TL_ERR_NOQUEUE;
    if (made)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = keys->queue},
               "the store has lost the queue, which was made again, empty");
    else
        tl_troubles_note(roster->settings.troubles, keys->queue, err, now_ms);
    return true;
}

static bool set_aside_by_name(struct tl_roster *roster, struct tl_redis *redis, const char *queue,
                              struct tl_error *err, int64_t now_ms)
{
    struct tl_keys keys;
    tl_keys_init(&keys, roster->config->redis.key_prefix, queue);
    return tl_roster_set_aside(roster, redis, &keys, err, now_ms);
}

/* Adds or drops the held queue according to the lease's answer. */
static bool settle(struct tl_roster *roster, const struct tl_lease *lease, struct tl_error *err)
{
    struct tl_held_queue *had = tl_roster_find(roster, lease->queue);
    if (had != NULL && (!lease->held || had->fence != lease->fence)) {
        drop_held(roster, had);
        had = NULL;
    }
    if (lease->error.kind != TL_OK) {
        *err = lease->error;
        return false;
    }
    return !lease->held || had != NULL || add_held(roster, lease, err);
}

/* ---- a round ---- */

static bool ask(struct tl_roster *roster, struct tl_error *err)
{
    return tl_lease_ask(&roster->client, roster->settings.store, roster->leases, roster->n_names,
                        err);
}

/* Release leases we could not set up. */
static void release_rest(struct tl_roster *roster)
{
    for (size_t i = 0; i < roster->n_names; i++) {
        struct tl_lease *lease = &roster->leases[i];
        bool rest = lease->held && tl_roster_find(roster, lease->queue) == NULL;
        lease->step = rest ? TL_LEASE_RELEASE : TL_LEASE_SKIP;
    }
    (void)ask(roster, NULL);
}

/* Asks the store about the leases and acts upon the answers: on all of them at the end, because the
 * `acquired` callback may use the store. */
static bool go_round(struct tl_roster *roster, struct tl_lease_round *round, int64_t now_ms,
                     struct tl_error *err)
{
    struct tl_lease *leases = roster->leases;
    size_t n = roster->n_names;
    bool any_refused = false;
    for (size_t i = 0; i < n; i++) {
        const struct tl_held_queue *held = tl_roster_find(roster, leases[i].queue);
        leases[i].held = held != NULL;
        leases[i].fence = held != NULL ? held->fence : 0;
        leases[i].resting = tl_troubles_resting(roster->settings.troubles, leases[i].queue, now_ms);
    }
    tl_lease_plan_round(leases, n, round, &roster->next_check);
    bool ok = ask(roster, err);
    if (ok && !round->check_all && tl_lease_plan_checks(leases, n)) {
        round->check_all = true;
        ok = ask(roster, err);
    }
    if (ok && tl_lease_plan_take(leases, n))
        ok = ask(roster, err);
    for (size_t i = 0; ok && i < n; i++) {
        if (settle(roster, &leases[i], err)) {
            /* Another replica holds it, so it is not our trouble. */
            if (round->check_all && !leases[i].held && !leases[i].resting)
                tl_troubles_forget(roster->settings.troubles, leases[i].queue);
            continue;
        }
        struct tl_redis *redis = tl_store_of(roster->settings.store, leases[i].queue);
        ok = set_aside_by_name(roster, redis, leases[i].queue, err, now_ms);
        any_refused = true;
    }
    if (ok && any_refused)
        release_rest(roster);
    return ok;
}

/* Makes the queues of the file that are missing. A notifier's own user of the store may not: the
 * other programs do. */
static bool make_missing(struct tl_roster *roster, struct tl_redis *redis, int64_t now_ms,
                         struct tl_error *err)
{
    for (size_t i = 0; i < tl_file_queues_count(roster->file); i++) {
        const char *queue = tl_file_queues_name(roster->file, i);
        if (!tl_troubles_resting(roster->settings.troubles, queue, now_ms) &&
            !tl_file_queues_make(roster->file, redis, i, tl_in_force_of(roster->in_force, queue),
                                 err) &&
            err->kind != TL_ERR_DENIED && !set_aside_by_name(roster, redis, queue, err, now_ms))
            return false;
    }
    return true;
}

/* Lists all queues. Before that, makes the queues of the file when one is missing, and those that
 * were lost: the store is new or came back empty. */
static bool list_queues(struct tl_roster *roster, struct tl_redis *redis, int64_t now_ms,
                        char (**names)[TL_QUEUE_NAME_MAX + 1], size_t *n, struct tl_error *err)
{
    bool make = roster->ensure || tl_redis_epoch(redis) != roster->epoch;
    for (int pass = 0;; pass++) {
        bool lost = false;
        if ((make && !make_missing(roster, redis, now_ms, err)) ||
            !tl_queue_list(redis, roster->config->redis.key_prefix, names, n, err))
            return false;
        bool missing = tl_file_queues_missing(roster->file, *names, *n) && !make;
        bool ok = tl_in_force_make_lost(roster->in_force, redis, *names, *n, &lost, err);
        if (ok && ((!missing && !lost) || pass == LIST_PASSES))
            return true;
        free(*names);
        *names = NULL;
        if (!ok)
            return false;
        make = make || missing;
    }
}

/* Reads the list of all queues. When it differs from the last one, sets *changed and drops held
 * queues that are no longer listed. */
static bool update_names(struct tl_roster *roster, struct tl_redis *redis, int64_t now_ms,
                         bool *changed, struct tl_error *err)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    if (!list_queues(roster, redis, now_ms, &names, &n, err))
        return false;
    *changed =
        n != roster->n_names || (n > 0 && memcmp(names, roster->names, n * sizeof(*names)) != 0);
    struct tl_lease *leases = *changed ? calloc(n > 0 ? n : 1, sizeof(*leases)) : NULL;
    if (leases == NULL) {
        free(names);
        return !*changed || tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu queues", n);
    }
    for (size_t i = 0; i < n; i++)
        leases[i].queue = names[i];
    for (size_t i = 0; i < roster->n_names; i++)
        if (!tl_queue_find_name(names, n, roster->names[i], NULL))
            tl_troubles_forget(roster->settings.troubles, roster->names[i]);
    free(roster->names);
    free(roster->leases);
    roster->names = names;
    roster->leases = leases;
    roster->n_names = n;
    for (size_t i = roster->held.n; i-- > 0;)
        if (!tl_queue_find_name(names, n, roster->held.all[i].name, NULL))
            drop_held(roster, tl_roster_at(roster, i));
    return true;
}

/* Reads the settings of some queues, or of all; says once where they differ from the file. */
static bool read_settings(struct tl_roster *roster, struct tl_redis *redis, bool all,
                          struct tl_error *err)
{
    if (!tl_in_force_read(roster->in_force, redis, roster->names, roster->n_names, all, err))
        return false;
    for (size_t i = 0; i < tl_file_queues_count(roster->file); i++) {
        const char *queue = tl_file_queues_name(roster->file, i);
        const struct tl_queue_settings *stored = tl_in_force_of(roster->in_force, queue);
        if (stored != NULL)
            tl_file_queues_compare(roster->file, queue, stored);
    }
    return true;
}

bool tl_roster_round(struct tl_roster *roster, int64_t now_ms, struct tl_error *err)
{
    struct tl_redis *redis = tl_store_of(roster->settings.store, NULL);
    bool reconnected = tl_redis_epoch(redis) != roster->epoch;
    struct tl_lease_round round;
    int64_t turn_ms = now_ms - roster->renewed_ms;
    round.take_all = reconnected || roster->ensure || turn_ms >= roster->client.length_ms;
    round.renew = round.take_all || now_ms >= roster->renew_ms;
    round.check_all = round.take_all || now_ms >= roster->check_ms;
    if (!round.renew && !round.check_all)
        return true;
    if (round.renew && !reconnected) /* an outage is no slow turn */
        roster->client.length_ms = tl_lease_plan_length(roster->client.length_ms, turn_ms);
    bool changed = false;
    if (round.renew && (!update_names(roster, redis, now_ms, &changed, err) ||
                        !read_settings(roster, redis, round.take_all || changed, err)))
        return false;
    round.check_all = round.check_all || changed;
    if (!go_round(roster, &round, now_ms, err)) {
        release_rest(roster);
        roster->ensure = true;
        return false;
    }
    if (round.check_all)
        roster->check_ms = tl_lease_next_check_ms(roster->leases, roster->n_names, now_ms);
    if (round.renew) {
        roster->renewed_ms = now_ms;
        roster->renew_ms = now_ms + ROUND_MS;
    }
    roster->ensure = false;
    roster->epoch = tl_redis_epoch(redis);
    return true;
}

void tl_roster_release_all(struct tl_roster *roster)
{
    for (size_t i = 0; i < roster->n_names; i++) {
        struct tl_lease *lease = &roster->leases[i];
        bool held = tl_roster_find(roster, lease->queue) != NULL;
        lease->step = held ? TL_LEASE_RELEASE : TL_LEASE_SKIP;
    }
    (void)ask(roster, NULL);
}
