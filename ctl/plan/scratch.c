/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <sodium.h>

#include "common/base/clock.h"
#include "common/config/queue_table.h"
#include "common/store/queue.h"
#include "common/store/reply.h"

#include "ctl/plan/plan.h"

enum {
    /* Times of the scratch queue that HTTP can still keep. Shorter ones would measure this machine
     * and not the settings. */
    SESSION_LEAST_MS = 1000,
    CLAIM_LEAST_MS = 1000,
    WAITING_LEAST_MS = 4000,
    PERIOD_LEAST_MS = 100,

    /* The programs read the list of queues once a second. */
    LET_GO_MS = 2500,
    LOOK_EVERY_MS = 200,
    SCAN_COUNT = 1000,
};

/* A program that sleeps longer takes the queue for lost, and makes it again. */
#define MARK_MS "600000"

void tl_scratch_name(const char *queue, char name[TL_QUEUE_NAME_MAX + 1])
{
    enum { FIXED = sizeof(TL_REHEARSAL_PREFIX) - 1 + 1 + TL_REHEARSAL_DIGITS };
    snprintf(name, TL_QUEUE_NAME_MAX + 1, "%s%.*s-%06x", TL_REHEARSAL_PREFIX,
             (int)(TL_QUEUE_NAME_MAX - FIXED), queue, randombytes_uniform(0x1000000));
}

bool tl_scratch_source(struct tl_ctl_session *session, const char *queue,
                       struct tl_queue_settings *settings, bool *stored, struct tl_error *err)
{
    struct tl_keys keys;
    struct tl_redis *redis = tl_ctl_session_redis(session, queue, err);
    if (redis == NULL || !tl_keys_of(&keys, session->config->redis.key_prefix, queue, err))
        return false;
    struct tl_error problem = {0};
    *stored = tl_queue_load(redis, &keys, settings, &problem);
    if (*stored)
        return true;
    if (problem.kind != TL_ERR_NOQUEUE) {
        *err = problem;
        return false;
    }
    const struct tl_queue_settings *configured =
        tl_config_queue(session->config->queues, session->config->n_queues, queue);
    if (configured == NULL)
        return tl_error_set(err, TL_ERR_NOQUEUE,
                            "there is no queue %s, neither in the store nor in the configuration",
                            queue);
    *settings = *configured;
    return true;
}

static uint64_t least(uint64_t most, int64_t ms, int64_t least_ms)
{
    uint64_t fits = ms > least_ms ? (uint64_t)(ms / least_ms) : 1;
    return fits < most ? fits : most;
}

uint64_t tl_scratch_speed_most(const struct tl_queue_settings *settings)
{
    uint64_t most = 10000;
    most = least(most, settings->session_ttl_ms, SESSION_LEAST_MS);
    most = least(most, settings->claim_ttl_ms, CLAIM_LEAST_MS);
    most = least(most, settings->waiting_ttl_ms, WAITING_LEAST_MS);
    if (settings->policy != TL_POLICY_COUNTER)
        most = least(most, settings->rate.every_ms, PERIOD_LEAST_MS);
    return most;
}

/* The field of a time in the settings. */
static int64_t get(const struct tl_queue_settings *settings, const struct tl_setting *row)
{
    int64_t ms;
    memcpy(&ms, (const char *)settings + row->offset, sizeof(ms));
    return ms;
}

static void put(struct tl_queue_settings *settings, const struct tl_setting *row, int64_t ms)
{
    memcpy((char *)settings + row->offset, &ms, sizeof(ms));
}

void tl_scratch_settings(struct tl_queue_settings *settings, uint64_t speed, int64_t now_ms,
                         int64_t opens_ms)
{
    size_t n;
    const struct tl_setting *rows = tl_queue_table(&n);
    int64_t from_ms = settings->opens_at_ms > 0 ? settings->opens_at_ms : now_ms;
    int64_t to_ms = opens_ms > 0 ? opens_ms : now_ms;
    for (size_t i = 0; i < n; i++) {
        int64_t ms;
        if (rows[i].type == TL_SETTING_DURATION) {
            ms = get(settings, &rows[i]) / (int64_t)speed;
            put(settings, &rows[i], ms > rows[i].min ? ms : rows[i].min);
        } else if (rows[i].type == TL_SETTING_TIME) {
            ms = get(settings, &rows[i]);
            put(settings, &rows[i], ms > from_ms ? to_ms + (ms - from_ms) / (int64_t)speed : 0);
        }
    }
    settings->changed_us = 0;
    settings->opens_at_ms = opens_ms;
    settings->mode = TL_MODE_OPEN;
}

/* ---- removal ---- */

struct removal {
    struct tl_redis *redis;
    const char *prefix, *name;
    char mark[TL_KEY_MAX]; /* tl:{q}:retired */
    struct tl_args args;
};

static bool done(struct tl_reply *reply)
{
    bool ok = reply != NULL;
    tl_reply_free(reply);
    return ok;
}

/* Without the mark of a deletion, the programs would make the queue again. */
static bool mark_deleted(const struct removal *removal, struct tl_error *err)
{
    return done(tl_ask(removal->redis, err, "HSET", removal->mark, "away", "1", NULL)) &&
           done(tl_ask(removal->redis, err, "PEXPIRE", removal->mark, MARK_MS, NULL));
}

static bool take_off_list(const struct removal *removal, struct tl_error *err)
{
    char queues[TL_KEY_MAX];
    return done(tl_ask(removal->redis, err, "SREM",
                       tl_key_common(removal->prefix, TL_COMMON_QUEUES, queues), removal->name,
                       NULL));
}

static struct tl_reply *call(struct removal *removal, struct tl_error *err)
{
    struct tl_reply *reply = tl_redis_call(removal->redis, &removal->args, err);
    tl_args_reset(&removal->args);
    return reply;
}

/* How many programs still hold a lease of the queue. */
static bool count_leases(struct removal *removal, int64_t *n, struct tl_error *err)
{
    static const char *const roles[] = {"dispatcher", "admitter", "expirer"};
    tl_args_str(&removal->args, "EXISTS");
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        char name[TL_KEY_MAX];
        tl_keys_lease(removal->name, removal->prefix, roles[i], name);
        tl_args_str(&removal->args, name);
    }
    struct tl_reply *reply = call(removal, err);
    *n = tl_reply_integer(reply);
    return done(reply);
}

/* Deletes the keys of one page of the scan; *found counts them. */
static bool delete_page(struct removal *removal, const struct tl_reply *page, size_t *found,
                        struct tl_error *err)
{
    size_t n = 0;
    tl_args_str(&removal->args, "DEL");
    for (size_t i = 0; i < tl_reply_count(page); i++) {
        size_t length;
        const char *key = tl_reply_string(tl_reply_at(page, i), &length);
        if (strcmp(key, removal->mark) == 0)
            continue;
        tl_args_bin(&removal->args, key, length);
        n++;
    }
    *found += n;
    if (n == 0) {
        tl_args_reset(&removal->args);
        return true;
    }
    return done(call(removal, err));
}

/* Deletes all keys with the hash tag of the queue but the mark, which expires; *found gets how many
 * there were. The name holds no character that means something in a pattern; a prefix that does
 * finds nothing of others, because the name is random. */
static bool delete_keys(struct removal *removal, size_t *found, struct tl_error *err)
{
    char pattern[TL_KEY_MAX];
    char cursor[32] = "0";
    snprintf(pattern, sizeof(pattern), "%s{%s}:*", removal->prefix, removal->name);
    *found = 0;
    do {
        tl_args_strs(&removal->args, "SCAN", cursor, "MATCH", pattern, "COUNT", NULL);
        tl_args_uint(&removal->args, SCAN_COUNT);
        struct tl_reply *reply = call(removal, err);
        if (reply == NULL)
            return false;
        snprintf(cursor, sizeof(cursor), "%s", tl_reply_text(reply, 0));
        bool ok = delete_page(removal, tl_reply_at(reply, 1), found, err);
        tl_reply_free(reply);
        if (!ok)
            return false;
    } while (strcmp(cursor, "0") != 0);
    return true;
}

/* Whoever still works for the queue could write a key after it was deleted. */
static bool wait_let_go(struct removal *removal, int64_t until_ms, struct tl_error *err)
{
    int64_t since_ms = tl_clock_ms();
    int64_t leases = 1;
    for (;;) {
        if (!count_leases(removal, &leases, err))
            return false;
        int64_t now_ms = tl_clock_ms();
        if (leases == 0 && now_ms - since_ms >= LET_GO_MS)
            return true;
        if (now_ms >= until_ms)
            return tl_error_set(err, TL_ERR_TIMEOUT, "the programs still work for queue %s",
                                removal->name);
        tl_ctl_pause(LOOK_EVERY_MS);
    }
}

static struct removal removal_of(struct tl_ctl_session *session, const char *name,
                                 struct tl_error *err)
{
    struct tl_keys keys;
    struct removal removal = {.redis = tl_ctl_session_redis(session, name, err),
                              .prefix = session->config->redis.key_prefix,
                              .name = name};
    tl_keys_init(&keys, removal.prefix, name);
    tl_key(&keys, TL_KEY_RETIRED, removal.mark);
    return removal;
}

bool tl_scratch_removable(struct tl_ctl_session *session, const char *name, struct tl_error *err)
{
    struct removal removal = removal_of(session, name, err);
    bool ok = removal.redis != NULL && take_off_list(&removal, err);
    tl_args_free(&removal.args);
    return ok;
}

bool tl_scratch_remove(struct tl_ctl_session *session, const char *name, int64_t limit_ms,
                       struct tl_error *err)
{
    int64_t until_ms = tl_clock_ms() + limit_ms;
    struct removal removal = removal_of(session, name, err);
    size_t found = 1;
    bool ok = removal.redis != NULL && mark_deleted(&removal, err) &&
              take_off_list(&removal, err) && wait_let_go(&removal, until_ms, err);
    /* A second look finds nothing, unless something was written meanwhile. */
    while (ok && found > 0 && tl_clock_ms() < until_ms)
        ok = delete_keys(&removal, &found, err);
    tl_args_free(&removal.args);
    return ok && (found == 0 ||
                  tl_error_set(err, TL_ERR_TIMEOUT, "something keeps writing to queue %s", name));
}

void tl_scratch_advice(const struct tl_ctl_session *session, const char *name, char *text,
                       size_t size)
{
    snprintf(text, size,
             "queue %s may still be in Redis (keys %s{%s}:*, and its name in %squeues): remove it "
             "with `tellerline rehearse --remove %s`, with the same --config, --redis or --data",
             name, session->config->redis.key_prefix, name, session->config->redis.key_prefix,
             name);
}
