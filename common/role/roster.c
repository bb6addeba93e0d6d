/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/named.h"
#include "common/config/config.h"
#include "common/role/roster.h"
#include "common/store/inventory.h"
#include "common/store/lease.h"
#include "common/store/queue.h"
#include "common/wire/names.h"

/* A lease lasts three of these, or more: a turn may take a second without losing it, and turns
 * that take longer make it longer. */
#define ROUND_MS 500

struct tl_roster {
    struct tl_roster_settings settings;
    const struct tl_config *config;
    struct tl_inventory *inventory;
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

bool tl_roster_set_aside(struct tl_roster *roster, const char *queue, int64_t now_ms,
                         struct tl_error *err)
{
    const struct tl_mend_offer offer = tl_inventory_offer(roster->inventory, queue);
    struct tl_redis *redis = tl_store_of(roster->settings.store, queue);
    struct tl_keys keys;
    if (!tl_error_is_of_queue(err, redis))
        return false;
    tl_keys_init(&keys, roster->config->redis.key_prefix, queue);
    if (tl_queue_set_aside(roster->settings.troubles, redis, &keys, &offer, err, now_ms))
        return true;
    struct tl_error absent = *err;
    bool made =
        offer.settings != NULL && tl_queue_bring_back(tl_queue_site(roster->settings.store, queue),
                                                      roster->config->redis.key_prefix, queue,
                                                      offer.settings, offer.actor, NULL, err);
    if (err->kind == TL_ERR_DENIED)
        *err = absent;               /* the other programs make it */
    if (err->kind == TL_ERR_RETIRED) /* it is being deleted: it leaves the list next */
        err->kind = TL_ERR_NOQUEUE;
    if (made)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = queue},
               "the store has lost the queue, which was made again, empty");
    else
        tl_troubles_note(roster->settings.troubles, queue, err, now_ms);
    return true;
}

/* tl_inventory_settings.failed */
static bool not_made(void *context, const char *queue, int64_t now_ms, struct tl_error *err)
{
    return tl_roster_set_aside(context, queue, now_ms, err);
}

struct tl_roster *tl_roster_new(const struct tl_roster_settings *settings,
                                const struct tl_config *config, struct tl_error *err)
{
    struct tl_roster *roster = calloc(1, sizeof(*roster));
    if (roster == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the leases");
        return NULL;
    }
    const struct tl_inventory_settings inventory = {.store = settings->store,
                                                    .config = config,
                                                    .key_prefix = config->redis.key_prefix,
                                                    .program = settings->role,
                                                    .troubles = settings->troubles,
                                                    .compares = true,
                                                    .failed = not_made,
                                                    .context = roster};
    roster->settings = *settings;
    roster->config = config;
    roster->client = (struct tl_lease_client){.key_prefix = config->redis.key_prefix,
                                              .role = settings->role,
                                              .owner = settings->owner,
                                              .fenced = settings->fenced,
                                              .length_ms = TL_LEASE_MS};
    roster->inventory = tl_inventory_new(&inventory);
    if (roster->inventory == NULL) {
        tl_roster_free(&roster);
        tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu queues", config->n_queues);
    }
    return roster;
}

static void drop_held(struct tl_roster *roster, struct tl_held_queue *held)
{
    roster->settings.drop(roster->settings.context, held);
    free(tl_named_remove(&roster->held, held->keys.queue));
}

void tl_roster_free(struct tl_roster **roster)
{
    if (*roster == NULL)
        return;
    while ((*roster)->held.n > 0)
        drop_held(*roster, tl_roster_at(*roster, (*roster)->held.n - 1));
    tl_inventory_free(&(*roster)->inventory);
    tl_named_free(&(*roster)->held);
    free((*roster)->names);
    free((*roster)->leases);
    tl_args_free(&(*roster)->client.args);
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

bool tl_roster_reconnect(struct tl_roster *roster, struct tl_held_queue *held)
{
    const uint64_t before = held->epoch;
    held->redis = tl_store_of(roster->settings.store, held->keys.queue);
    held->epoch = tl_store_epoch_of(roster->settings.store, held->keys.queue);
    return held->epoch != before;
}

static bool add_held(struct tl_roster *roster, const struct tl_lease *lease, struct tl_error *err)
{
    struct tl_held_queue *held = calloc(1, sizeof(*held));
    if (held == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a queue");
    tl_keys_init(&held->keys, roster->config->redis.key_prefix, lease->queue);
    (void)tl_roster_reconnect(roster, held);
    held->fence = lease->fence;
    if (!roster->settings.take(roster->settings.context, held, err)) {
        free(held);
        return false;
    }
    if (!tl_named_add(&roster->held, held->keys.queue, held)) {
        roster->settings.drop(roster->settings.context, held);
        free(held);
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a queue");
    }
    return true;
}

/* Adds or drops the held queue according to the lease's answer. */
static bool settle(struct tl_roster *roster, const struct tl_lease *lease, struct tl_error *err)
{
    struct tl_held_queue *had = tl_roster_find(roster, lease->queue);
    /* A node does not answer: whose the lease is will be seen when it does. */
    bool unknown = tl_error_is_of_store(&lease->error) &&
                   tl_redis_is_node(tl_store_of(roster->settings.store, lease->queue));
    if (had != NULL && !unknown && (!lease->held || had->fence != lease->fence)) {
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

/* Releases all leases, or those that we have taken and could not set up. */
static void release(struct tl_roster *roster, bool all)
{
    for (size_t i = 0; i < roster->n_names; i++) {
        struct tl_lease *lease = &roster->leases[i];
        bool held = tl_roster_find(roster, lease->queue) != NULL;
        lease->step = (all ? held : lease->held && !held) ? TL_LEASE_RELEASE : TL_LEASE_SKIP;
    }
    (void)ask(roster, NULL);
}

/* Asks the store about the leases and acts upon the answers: on all of them at the end, because the
 * `take` callback may use the store. */
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
        ok = tl_roster_set_aside(roster, leases[i].queue, now_ms, err);
        any_refused = true;
    }
    if (ok && any_refused)
        release(roster, false);
    return ok;
}

/* Reads the list of all queues. When it differs from the last one, sets *changed and drops held
 * queues that are no longer listed. While the node of a cluster that has the list is away, the last
 * one stays. */
static bool update_names(struct tl_roster *roster, int64_t now_ms, bool *changed,
                         struct tl_error *err)
{
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    if (!tl_inventory_list(roster->inventory, roster->ensure, now_ms, &names, &n, err))
        return roster->names != NULL && tl_error_is_of_store(err) &&
               tl_redis_is_node(tl_store_common(roster->settings.store));
    *changed =
        n != roster->n_names || (n > 0 && memcmp(names, roster->names, n * sizeof(*names)) != 0);
    struct tl_lease *leases = *changed ? calloc(n > 0 ? n : 1, sizeof(*leases)) : NULL;
    if (leases == NULL) {
        free(names);
        return !*changed || tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu queues", n);
    }
    for (size_t i = 0; i < n; i++) {
        leases[i].queue = names[i];
        leases[i].epoch = tl_store_epoch_of(roster->settings.store, names[i]);
    }
    for (size_t i = 0; i < roster->n_names; i++) {
        size_t at;
        if (!tl_queue_find_name(names, n, roster->names[i], &at)) {
            tl_troubles_forget(roster->settings.troubles, roster->names[i]);
            continue;
        }
        leases[at].epoch = roster->leases[i].epoch;
        leases[at].store_changed = roster->leases[i].store_changed;
    }
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

/* Those whose store is another one now are asked for by function, and tried at once if they were
 * set aside. */
static void note_anew(struct tl_roster *roster)
{
    for (size_t i = 0; i < roster->n_names; i++) {
        struct tl_lease *lease = &roster->leases[i];
        const uint64_t epoch = tl_store_epoch_of(roster->settings.store, lease->queue);
        if (epoch == lease->epoch)
            continue;
        lease->epoch = epoch;
        lease->store_changed = true;
        tl_troubles_retry(roster->settings.troubles, lease->queue);
    }
}

bool tl_roster_round(struct tl_roster *roster, int64_t now_ms, struct tl_error *err)
{
    bool reconnected = tl_store_epoch(roster->settings.store) != roster->epoch;
    struct tl_lease_round round;
    int64_t turn_ms = now_ms - roster->renewed_ms;
    round.take_all = roster->ensure || turn_ms >= roster->client.length_ms;
    round.renew = reconnected || round.take_all || now_ms >= roster->renew_ms;
    round.check_all = round.take_all || now_ms >= roster->check_ms;
    if (!round.renew && !round.check_all)
        return true;
    if (round.renew && !reconnected) /* an outage is no slow turn */
        roster->client.length_ms = tl_lease_plan_length(roster->client.length_ms, turn_ms);
    bool changed = false;
    if (reconnected)
        note_anew(roster);
    if (round.renew && (!update_names(roster, now_ms, &changed, err) ||
                        !tl_inventory_read(roster->inventory, roster->names, roster->n_names,
                                           round.take_all || changed, err)))
        return false;
    round.check_all = round.check_all || changed;
    if (!go_round(roster, &round, now_ms, err)) {
        release(roster, false);
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
    roster->epoch = tl_store_epoch(roster->settings.store);
    return true;
}

void tl_roster_release_all(struct tl_roster *roster)
{
    release(roster, true);
}
