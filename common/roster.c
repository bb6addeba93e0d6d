#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/queue.h"
#include "common/roster.h"

#include "generated/common_scripts.h"

#define LEASE_MS 1500
#define ROUND_MS 400

struct tl_roster {
    struct tl_roster_settings settings;
    const struct tl_config *config;
    struct tl_post **posts; /* by name; each allocated alone: callers keep pointers to keys */
    size_t n, capacity;
    int64_t due_ms;
    uint64_t epoch; /* of the connection at the last round */
    bool ensure;    /* the next round creates configured queues that are missing */
    struct tl_script script;
    struct tl_args args;
};

struct tl_roster *tl_roster_new(const struct tl_roster_settings *settings,
                                const struct tl_config *config, struct tl_error *err)
{
    struct tl_roster *roster = calloc(1, sizeof(*roster));
    if (roster == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the roster");
        return NULL;
    }
    roster->settings = *settings;
    roster->config = config;
    roster->script.source = tl_script_lease;
    return roster;
}

static void drop_post(struct tl_roster *roster, size_t i)
{
    struct tl_post *post = roster->posts[i];
    roster->settings.lose(roster->settings.context, post);
    free(post);
    roster->n--;
    memmove(&roster->posts[i], &roster->posts[i + 1], (roster->n - i) * sizeof(struct tl_post *));
}

void tl_roster_free(struct tl_roster **roster)
{
    if (*roster == NULL)
        return;
    while ((*roster)->n > 0)
        drop_post(*roster, (*roster)->n - 1);
    free((*roster)->posts);
    tl_args_free(&(*roster)->args);
    free(*roster);
    *roster = NULL;
}

int64_t tl_roster_due(const struct tl_roster *roster)
{
    return roster->due_ms;
}

void tl_roster_hurry(struct tl_roster *roster)
{
    roster->due_ms = 0;
    roster->ensure = true;
}

size_t tl_roster_count(const struct tl_roster *roster)
{
    return roster->n;
}

struct tl_post *tl_roster_at(struct tl_roster *roster, size_t i)
{
    return roster->posts[i];
}

/* Where the queue's post is, or else where it belongs. */
static bool find(const struct tl_roster *roster, const char *queue, size_t *index)
{
    size_t low = 0;
    size_t high = roster->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(roster->posts[middle]->keys.queue, queue) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *index = low;
    return low < roster->n && strcmp(roster->posts[low]->keys.queue, queue) == 0;
}

/* Queues one EVALSHA of the lease script; ttl 0 gives the lease back. */
static bool append_lease(struct tl_roster *roster, struct tl_redis *redis,
                         const struct tl_keys *keys, int64_t ttl_ms, struct tl_error *err)
{
    struct tl_args *args = &roster->args;
    char lease[TL_KEY_MAX];
    tl_keys_lease(keys, roster->config->redis.key_prefix, roster->settings.role, lease);
    if (!tl_script_begin(redis, &roster->script, args, err))
        return false;
    tl_args_strs(args, "2", keys->names[TL_KEY_STATE], lease, roster->settings.owner, NULL);
    tl_args_int(args, ttl_ms);
    tl_args_str(args, roster->settings.fenced ? "fence" : "");
    return tl_redis_append(redis, args, err);
}

static void give_back(struct tl_roster *roster, struct tl_redis *redis, const struct tl_keys *keys)
{
    if (append_lease(roster, redis, keys, 0, NULL))
        tl_reply_free(tl_redis_next(redis, NULL));
}

static bool add_post(struct tl_roster *roster, const struct tl_keys *keys, uint64_t fence,
                     struct tl_error *err)
{
    if (roster->n == roster->capacity) {
        size_t capacity = roster->capacity == 0 ? 8 : roster->capacity * 2;
        struct tl_post **posts = reallocarray(roster->posts, capacity, sizeof(*posts));
        if (posts == NULL)
            return tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu queues", capacity);
        roster->posts = posts;
        roster->capacity = capacity;
    }
    struct tl_post *post = calloc(1, sizeof(*post));
    if (post == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a queue");
    post->keys = *keys;
    post->fence = fence;
    if (!roster->settings.gain(roster->settings.context, post, err)) {
        free(post);
        return false;
    }
    size_t at;
    (void)find(roster, keys->queue, &at);
    memmove(&roster->posts[at + 1], &roster->posts[at], (roster->n - at) * sizeof(*roster->posts));
    roster->posts[at] = post;
    roster->n++;
    return true;
}

/* What the lease script answered for one queue. */
struct answer {
    bool held;
    uint64_t fence;
    struct tl_error error; /* kind TL_OK when it answered */
};

/* Makes the posts agree with the answer. */
static bool settle(struct tl_roster *roster, const char *queue, const struct answer *answer,
                   struct tl_error *err)
{
    size_t i;
    bool had = find(roster, queue, &i);
    if (had && (!answer->held || roster->posts[i]->fence != answer->fence)) {
        drop_post(roster, i);
        had = false;
    }
    if (answer->error.kind != TL_OK && answer->error.kind != TL_ERR_NOQUEUE) {
        *err = answer->error;
        return false;
    }
    if (!answer->held || had)
        return true;
    struct tl_keys keys;
    tl_keys_init(&keys, roster->config->redis.key_prefix, queue);
    return add_post(roster, &keys, answer->fence, err);
}

/* Drops the posts whose queue is no longer listed. */
static void drop_unlisted(struct tl_roster *roster, char (*names)[TL_QUEUE_NAME_MAX + 1], size_t n)
{
    for (size_t i = roster->n; i-- > 0;)
        if (!tl_queue_find_name(names, n, roster->posts[i]->keys.queue, NULL))
            drop_post(roster, i);
}

/* One pipeline of lease calls. All answers are fetched before any is acted upon: gaining a post may
 * talk to the store. */
static bool ask_for_leases(struct tl_roster *roster, struct tl_store *store,
                           char (*names)[TL_QUEUE_NAME_MAX + 1], size_t n, struct answer *answers,
                           struct tl_error *err)
{
    size_t sent = 0;
    bool ok = true;
    while (ok && sent < n) {
        struct tl_keys keys;
        tl_keys_init(&keys, roster->config->redis.key_prefix, names[sent]);
        ok = append_lease(roster, tl_store_of(store, names[sent]), &keys, LEASE_MS, err);
        sent += ok ? 1 : 0;
    }
    for (size_t i = 0; i < sent; i++) {
        struct tl_reply *reply = tl_redis_next(tl_store_of(store, names[i]), &answers[i].error);
        answers[i].held = tl_reply_integer(tl_reply_at(reply, 0)) == 1;
        answers[i].fence = (uint64_t)tl_reply_integer(tl_reply_at(reply, 1));
        tl_reply_free(reply);
    }
    return ok;
}

static bool take_leases(struct tl_roster *roster, struct tl_store *store,
                        char (*names)[TL_QUEUE_NAME_MAX + 1], size_t n, struct tl_error *err)
{
    struct answer *answers = calloc(n > 0 ? n : 1, sizeof(*answers));
    if (answers == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu queues", n);
    bool ok = ask_for_leases(roster, store, names, n, answers, err);
    for (size_t i = 0; ok && i < n; i++)
        ok = settle(roster, names[i], &answers[i], err);
    /* What we hold and do not look after, others shall. */
    for (size_t i = 0; !ok && i < n; i++) {
        struct tl_keys keys;
        size_t index;
        if (!answers[i].held || find(roster, names[i], &index))
            continue;
        tl_keys_init(&keys, roster->config->redis.key_prefix, names[i]);
        give_back(roster, tl_store_of(store, names[i]), &keys);
    }
    free(answers);
    return ok;
}

static bool configured_all_listed(const struct tl_config *config,
                                  char (*names)[TL_QUEUE_NAME_MAX + 1], size_t n)
{
    for (size_t i = 0; i < config->n_queues; i++)
        if (!tl_queue_find_name(names, n, config->queues[i].name, NULL))
            return false;
    return true;
}

/* Lists all queues, creating the configured ones first if the store lacks one (it came back empty,
 * or is new). */
static bool list_queues(struct tl_roster *roster, struct tl_redis *redis,
                        char (**names)[TL_QUEUE_NAME_MAX + 1], size_t *n, struct tl_error *err)
{
    const char *prefix = roster->config->redis.key_prefix;
    bool ensure = roster->ensure || tl_redis_epoch(redis) != roster->epoch;
    for (;;) {
        if (ensure && !tl_queue_ensure_all(redis, roster->config, err))
            return false;
        if (!tl_queue_list(redis, prefix, names, n, err))
            return false;
        if (ensure || configured_all_listed(roster->config, *names, *n))
            return true;
        free(*names);
        ensure = true;
    }
}

bool tl_roster_round(struct tl_roster *roster, struct tl_store *store, int64_t now_ms,
                     struct tl_error *err)
{
    struct tl_redis *redis = tl_store_of(store, NULL);
    if (tl_redis_epoch(redis) == roster->epoch && now_ms < roster->due_ms)
        return true;
    if (tl_redis_epoch(redis) != roster->epoch)
        roster->script.sha[0] = '\0'; /* a store that was restarted knows no scripts */
    char(*names)[TL_QUEUE_NAME_MAX + 1] = NULL;
    size_t n = 0;
    if (!list_queues(roster, redis, &names, &n, err))
        return false;
    drop_unlisted(roster, names, n);
    bool ok = take_leases(roster, store, names, n, err);
    free(names);
    if (!ok) {
        roster->script.sha[0] = '\0'; /* in case the script cache was emptied */
        return false;
    }
    roster->ensure = false;
    roster->epoch = tl_redis_epoch(redis);
    roster->due_ms = now_ms + ROUND_MS;
    return true;
}

void tl_roster_resign(struct tl_roster *roster, struct tl_store *store)
{
    for (size_t i = 0; i < roster->n; i++) {
        const struct tl_keys *keys = &roster->posts[i]->keys;
        give_back(roster, tl_store_of(store, keys->queue), keys);
    }
}
