/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <sodium.h>

#include "common/config/queue_table.h"
#include "common/store/queue.h"

#include "ctl/plan/plan.h"

enum {
    /* Times of the scratch queue that HTTP can still keep. Shorter ones would measure this machine
     * and not the settings. */
    SESSION_LEAST_MS = 1000,
    CLAIM_LEAST_MS = 1000,
    WAITING_LEAST_MS = 4000,
    PERIOD_LEAST_MS = 100,
    /* The programs read the list of queues once a second, and let go of one that is gone. What they
     * write until then is deleted again. */
    LET_GO_MS = 2500,
    TRIES_MOST = 8,
};

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
    struct tl_redis *redis = tl_store_reach(session->store, queue, err);
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

/* Asks for the deletion. *existed: there was something to delete. */
static bool delete_once(struct tl_ctl_session *session, const char *name, bool *existed,
                        struct tl_error *err)
{
    char target[sizeof("/v1/admin/queues/?confirm=") + 2 * TL_QUEUE_NAME_MAX];
    struct tl_control_answer answer = {0};
    snprintf(target, sizeof(target), "/v1/admin/queues/%s?confirm=%s", name, name);
    const struct tl_control_request request = {
        .method = "DELETE", .target = target, .actor = &session->actor};
    tl_control_call(session->control, &request, &answer);
    *existed = tl_control_succeeded(&answer);
    bool ok = *existed || answer.status == 404 ||
              tl_error_set(err, TL_ERR_STORE, "%s", tl_json_text(answer.body, "detail"));
    tl_control_answer_clear(&answer);
    return ok;
}

bool tl_scratch_remove(struct tl_ctl_session *session, const char *name, struct tl_error *err)
{
    bool existed = true;
    for (int i = 0; i < TRIES_MOST; i++) {
        if (!delete_once(session, name, &existed, err))
            return false;
        if (!existed)
            return true;
        tl_ctl_pause(LET_GO_MS);
    }
    return tl_error_set(err, TL_ERR_TIMEOUT, "something keeps writing to queue %s", name);
}
