#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/config/config.h"
#include "common/config/file_settings.h"
#include "common/store/lease.h"
#include "common/store/lease_plan.h"
#include "common/store/mend.h"
#include "common/store/queue.h"
#include "common/store/retired.h"
#include "common/store/roster.h"
#include "common/wire/names.h"

/* A lease lasts three of these, or more: a turn may take a second without losing it, and turns
 * that take longer make it longer. */
#define ROUND_MS 500

struct tl_roster {
    struct tl_roster_settings settings;
    const struct tl_config *config;
    struct tl_actor actor;
    bool *away;                  /* for each configured queue: an operator deleted it */
    struct tl_held_queue **held; /* by name; one allocation each: callers keep pointers to keys */
    size_t n, capacity;
    char (*names)[TL_QUEUE_NAME_MAX + 1]; /* all queues, sorted */
    struct tl_lease *leases;              /* one for each name */
    size_t n_names;
    size_t next_check;  /* where the few checks of the next round start */
    int64_t renew_ms;   /* when to list queues and renew what is held */
    int64_t check_ms;   /* when the first lease of another replica may have run out */
    int64_t renewed_ms; /* when the leases held were renewed */
    uint64_t epoch;     /* of the connection at the last round */
    bool ensure;        /* the next round creates configured queues that are missing */
    bool *compared;     /* for each configured queue: its file was compared with the store */
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
    roster->away = calloc(config->n_queues + 1, sizeof(*roster->away));
    roster->compared = calloc(config->n_queues + 1, sizeof(*roster->compared));
    if (roster->away == NULL || roster->compared == NULL) {
        free(roster->away);
        free(roster->compared);
        free(roster);
        tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu queues", config->n_queues);
        return NULL;
    }
    roster->settings = *settings;
    roster->config = config;
    tl_actor_of_program(&roster->actor, settings->role, config->redis.changes_length);
    tl_lease_client_init(&roster->client, config->redis.key_prefix, settings->role, settings->owner,
                         settings->fenced);
    return roster;
}

static void drop_held(struct tl_roster *roster, size_t i)
{
    struct tl_held_queue *held = roster->held[i];
    roster->settings.lost(roster->settings.context, held);
    free(held);
    roster->n--;
    memmove(&roster->held[i], &roster->held[i + 1],
            (roster->n - i) * sizeof(struct tl_held_queue *));
}

void tl_roster_free(struct tl_roster **roster)
{
    if (*roster == NULL)
        return;
    while ((*roster)->n > 0)
        drop_held(*roster, (*roster)->n - 1);
    free((*roster)->away);
    free((*roster)->held);
    free((*roster)->names);
    free((*roster)->leases);
    free((*roster)->compared);
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
    return roster->n;
}

struct tl_held_queue *tl_roster_at(struct tl_roster *roster, size_t i)
{
    return roster->held[i];
}

/* The index of the held queue, or the index where it belongs. */
static bool find(const struct tl_roster *roster, const char *queue, size_t *index)
{
    size_t low = 0;
    size_t high = roster->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(roster->held[middle]->keys.queue, queue) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *index = low;
    return low < roster->n && strcmp(roster->held[low]->keys.queue, queue) == 0;
}

static bool add_held(struct tl_roster *roster, const struct tl_lease *lease, struct tl_error *err)
{
    if (roster->n == roster->capacity) {
        size_t capacity = roster->capacity == 0 ? 8 : roster->capacity * 2;
        struct tl_held_queue **held = reallocarray(roster->held, capacity, sizeof(*held));
        if (held == NULL)
            return tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu queues", capacity);
        roster->held = held;
        roster->capacity = capacity;
    }
    struct tl_held_queue *held = calloc(1, sizeof(*held));
    if (held == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a queue");
    tl_keys_init(&held->keys, roster->config->redis.key_prefix, lease->queue);
    held->fence = lease->fence;
    if (!roster->settings.acquired(roster->settings.context, held, err)) {
        free(held);
        return false;
    }
    size_t at;
    (void)find(roster, lease->queue, &at);
    memmove(&roster->held[at + 1], &roster->held[at], (roster->n - at) * sizeof(*roster->held));
    roster->held[at] = held;
    roster->n++;
    return true;
}

/* Creates the queue if it is missing: in recovery if it existed when we last looked. */
static bool ensure(const struct tl_roster *roster, struct tl_redis *redis, const char *queue,
                   const struct tl_queue_settings *settings, struct tl_error *err)
{
    const char *prefix = roster->config->redis.key_prefix;
    return roster->n_names > 0 && tl_queue_find_name(roster->names, roster->n_names, queue, NULL)
               ? tl_queue_ensure_known(redis, prefix, queue, settings, &roster->actor, err)
               : tl_queue_ensure(redis, prefix, queue, settings, &roster->actor, NULL, err);
}

bool tl_roster_set_aside(struct tl_roster *roster, struct tl_redis *redis,
                         const struct tl_keys *keys, struct tl_error *err, int64_t now_ms)
{
    const struct tl_config *config = roster->config;
    const struct tl_mend_offer offer = {
        .settings = tl_config_queue(config->queues, config->n_queues, keys->queue),
        .actor = &roster->actor};
    if (!tl_error_is_of_queue(err, redis))
        return false;
    if (tl_queue_set_aside(roster->settings.troubles, redis, keys, &offer, err, now_ms))
        return true;
    bool made = offer.settings != NULL && ensure(roster, redis, keys->queue, offer.settings, err);
    if (err->kind == TL_ERR_RETIRED) /* it is being deleted: it leaves the list next */
        err->kind = TL_ERR_NOQUEUE;
    if (made)
        tl_log(TL_LOG_WARN, &(struct tl_log_fields){.queue = keys->queue},
               "the queue was gone from the store and was made again, empty");
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
    size_t i;
    bool had = find(roster, lease->queue, &i);
    if (had && (!lease->held || roster->held[i]->fence != lease->fence)) {
        drop_held(roster, i);
        had = false;
    }
    if (lease->error.kind != TL_OK) {
        *err = lease->error;
        return false;
    }
    return !lease->held || had || add_held(roster, lease, err);
}

/* ---- a round ---- */

static bool ask(struct tl_roster *roster, struct tl_store *store, struct tl_error *err)
{
    return tl_lease_ask(&roster->client, store, roster->leases, roster->n_names, err);
}

/* Release leases we could not set up. */
static void release_rest(struct tl_roster *roster, struct tl_store *store)
{
    for (size_t i = 0; i < roster->n_names; i++) {
        struct tl_lease *lease = &roster->leases[i];
        size_t at;
        bool rest = lease->held && !find(roster, lease->queue, &at);
        lease->step = rest ? TL_LEASE_RELEASE : TL_LEASE_SKIP;
    }
    (void)ask(roster, store, NULL);
}

/* Asks the store about the leases and acts upon the answers: on all of them at the end, because the
 * `acquired` callback may use the store. */
static bool go_round(struct tl_roster *roster, struct tl_store *store, struct tl_lease_round *round,
                     int64_t now_ms, struct tl_error *err)
{
    struct tl_lease *leases = roster->leases;
    size_t n = roster->n_names;
    bool any_refused = false;
    for (size_t i = 0; i < n; i++) {
        size_t at;
        leases[i].held = find(roster, leases[i].queue, &at);
        leases[i].fence = leases[i].held ? roster->held[at]->fence : 0;
        leases[i].resting = tl_troubles_resting(roster->settings.troubles, leases[i].queue, now_ms);
    }
    tl_lease_plan_round(leases, n, round, &roster->next_check);
    bool ok = ask(roster, store, err);
    if (ok && !round->check_all && tl_lease_plan_checks(leases, n)) {
        round->check_all = true;
        ok = ask(roster, store, err);
    }
    if (ok && tl_lease_plan_take(leases, n))
        ok = ask(roster, store, err);
    for (size_t i = 0; ok && i < n; i++) {
        if (settle(roster, &leases[i], err)) {
            /* Another replica holds it, so it is not our trouble. */
            if (round->check_all && !leases[i].held && !leases[i].resting)
                tl_troubles_forget(roster->settings.troubles, leases[i].queue);
            continue;
        }
        struct tl_redis *redis = tl_store_of(store, leases[i].queue);
        ok = set_aside_by_name(roster, redis, leases[i].queue, err, now_ms);
        any_refused = true;
    }
    if (ok && any_refused)
        release_rest(roster, store);
    return ok;
}

/* Creates a configured queue if it is missing, unless an operator deleted it. */
static bool create(struct tl_roster *roster, struct tl_redis *redis, size_t i, struct tl_error *err)
{
    const struct tl_queue_config *queue = &roster->config->queues[i];
    bool away = false;
    if (!tl_retired_read(redis, roster->config->redis.key_prefix, queue->name, &away, err))
        return false;
    if (away && !roster->away[i])
        tl_retired_warn(queue->name);
    roster->away[i] = away;
    return away || ensure(roster, redis, queue->name, &queue->settings, err);
}

/* Says once where the file and the store differ. What cannot be read is said later. */
static void compare(struct tl_roster *roster, struct tl_redis *redis, size_t i)
{
    const struct tl_queue_config *queue = &roster->config->queues[i];
    struct tl_queue_settings stored;
    struct tl_keys keys;
    tl_keys_init(&keys, roster->config->redis.key_prefix, queue->name);
    if (!roster->compared[i] && tl_queue_load(redis, &keys, &stored, NULL)) {
        tl_file_settings_log(queue, &stored);
        roster->compared[i] = true;
    }
}

/* Creates the configured queues that are missing. */
static bool create_missing(struct tl_roster *roster, struct tl_redis *redis, int64_t now_ms,
                           struct tl_error *err)
{
    const struct tl_config *config = roster->config;
    for (size_t i = 0; i < config->n_queues; i++) {
        const struct tl_queue_config *queue = &config->queues[i];
        if (tl_troubles_resting(roster->settings.troubles, queue->name, now_ms))
            continue;
        if (create(roster, redis, i, err)) {
            compare(roster, redis, i);
            continue;
        }
        if (!set_aside_by_name(roster, redis, queue->name, err, now_ms))
            return false;
    }
    return true;
}

/* Lists all queues. Creates the configured queues first when one is missing: the store is new or
 * came back empty. */
static bool list_queues(struct tl_roster *roster, struct tl_redis *redis, int64_t now_ms,
                        char (**names)[TL_QUEUE_NAME_MAX + 1], size_t *n, struct tl_error *err)
{
    const struct tl_config *config = roster->config;
    bool ensure = roster->ensure || tl_redis_epoch(redis) != roster->epoch;
    for (;;) {
        if (ensure && !create_missing(roster, redis, now_ms, err))
            return false;
        if (!tl_queue_list(redis, config->redis.key_prefix, names, n, err))
            return false;
        bool complete = true;
        for (size_t i = 0; i < config->n_queues && complete; i++)
            complete =
                tl_queue_find_name(*names, *n, config->queues[i].name, NULL) || roster->away[i];
        if (ensure || complete)
            return true;
        free(*names);
        ensure = true;
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
    for (size_t i = roster->n; i-- > 0;)
        if (!tl_queue_find_name(names, n, roster->held[i]->keys.queue, NULL))
            drop_held(roster, i);
    return true;
}

bool tl_roster_round(struct tl_roster *roster, struct tl_store *store, int64_t now_ms,
                     struct tl_error *err)
{
    struct tl_redis *redis = tl_store_of(store, NULL);
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
    if (reconnected)
        roster->client.script.sha[0] = '\0'; /* a store that was restarted knows no scripts */
    bool changed = false;
    if (round.renew && !update_names(roster, redis, now_ms, &changed, err))
        return false;
    round.check_all = round.check_all || changed;
    if (!go_round(roster, store, &round, now_ms, err)) {
        release_rest(roster, store);
        roster->client.script.sha[0] = '\0'; /* in case the script cache was emptied */
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

void tl_roster_release_all(struct tl_roster *roster, struct tl_store *store)
{
    for (size_t i = 0; i < roster->n_names; i++) {
        struct tl_lease *lease = &roster->leases[i];
        size_t at;
        lease->step = find(roster, lease->queue, &at) ? TL_LEASE_RELEASE : TL_LEASE_SKIP;
    }
    (void)ask(roster, store, NULL);
}
