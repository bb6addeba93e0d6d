/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/config/mode.h"
#include "common/config/queue_settings.h"
#include "common/config/queue_table.h"
#include "common/control/call.h"
#include "common/store/args.h"
#include "common/store/memory.h"
#include "common/store/state.h"

/* ---- the store itself: memory, persistence, latency ---- */

static json_t *number_of(const char *info, const char *name)
{
    const char *value = tl_info_field(info, name);
    return *value != '\0' ? json_integer(strtoll(value, NULL, 10)) : json_null();
}

static json_t *text_of(const char *info, const char *name)
{
    const char *value = tl_info_field(info, name);
    return json_stringn(value, strcspn(value, "\r\n"));
}

/* Did the last write to the disk succeed, in each of the ways that are on? */
static bool is_kept(const char *info)
{
    bool aof = strncmp(tl_info_field(info, "aof_enabled"), "1", 1) == 0;
    return strncmp(tl_info_field(info, "rdb_last_bgsave_status"), "ok", 2) == 0 &&
           (!aof || strncmp(tl_info_field(info, "aof_last_write_status"), "ok", 2) == 0);
}

static json_t *read_store(struct tl_redis *redis, struct tl_error *err)
{
    int64_t begun_us = tl_clock_us();
    struct tl_reply *reply = tl_ask(redis, err, "INFO", NULL);
    if (reply == NULL)
        return NULL;
    const char *info = tl_reply_string(reply, NULL);
    json_t *stats =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:f}", "version",
                  text_of(info, "redis_version"), "role", text_of(info, "role"), "uptime_seconds",
                  number_of(info, "uptime_in_seconds"), "memory_used",
                  number_of(info, "used_memory"), "memory_limit", number_of(info, "maxmemory"),
                  "aof", strncmp(tl_info_field(info, "aof_enabled"), "1", 1) == 0, "persists",
                  is_kept(info), "clients", number_of(info, "connected_clients"), "replicas",
                  number_of(info, "connected_slaves"), "latency_ms",
                  (double)(tl_clock_us() - begun_us) / 1000);
    tl_reply_free(reply);
    if (stats == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the numbers of the store");
    return stats;
}

/* ---- a queue ---- */

/* What is read of the state; besides, at the end, its text `notice`. */
enum { FIELDS = TL_STATE_COUNTERS | TL_STATE_CAPACITY | TL_STATE_RECOVERY };

/* What those members are made of that stats.lua does not know. */
struct facts {
    int64_t now_ms;
    struct tl_queue_settings settings;
    struct tl_state state;
};

static json_t *integer(int64_t number)
{
    return json_integer((json_int_t)number);
}

static enum tl_phase phase_of(const struct facts *facts)
{
    const struct tl_phase_facts phase = {.now_ms = facts->now_ms,
                                         .waiting = facts->state.waiting,
                                         .full_since_ms = facts->state.recovery.full_since_ms,
                                         .drawing =
                                             facts->settings.order == TL_ORDER_DRAW &&
                                             facts->state.recovery.draw.phase != TL_DRAW_DONE,
                                         .recovering = facts->state.recovery.until_ms != 0};
    return tl_phase_of(&facts->settings, &phase);
}

static json_t *recovery_of(const struct facts *facts)
{
    if (facts->state.recovery.until_ms == 0)
        return json_null();
    return json_pack("{s:o, s:I, s:I}", "until", tl_call_time(facts->state.recovery.until_ms),
                     "restored", (json_int_t)facts->state.recovery.restored, "lost",
                     (json_int_t)facts->state.recovery.lost_size);
}

static json_t *rate_limit_of(const struct facts *facts)
{
    if (facts->settings.policy == TL_POLICY_COUNTER)
        return json_null();
    return json_pack("{s:I, s:I}", "admit", (json_int_t)facts->settings.rate.admit, "every_ms",
                     (json_int_t)facts->settings.rate.every_ms);
}

/* The members that stats.lua has made. */
static json_t *read_members(const char *text)
{
    json_t *members = json_loads(text, 0, NULL);
    json_t *eta = json_incref(json_object_get(members, "eta"));
    if (json_is_object(eta))
        tl_object_set(&eta, "since",
                      tl_call_time(json_integer_value(json_object_get(eta, "since"))));
    tl_object_set(&members, "eta", eta);
    return members;
}

/* Sets the other members. */
static void describe(const struct facts *facts, json_t **stats)
{
    const struct tl_queue_settings *settings = &facts->settings;
    bool by_rate = settings->policy == TL_POLICY_RATE, is_auto = settings->capacity_min > 0;
    tl_object_set(stats, "at", tl_call_time(facts->now_ms));
    tl_object_set(stats, "generation", integer((int64_t)facts->state.generation));
    tl_object_set(stats, "mode", json_string(tl_mode_name(settings->mode)));
    tl_object_set(stats, "phase", json_string(tl_phase_name(phase_of(facts))));
    tl_object_set(stats, "policy", json_string(tl_policy_names[settings->policy]));
    tl_object_set(stats, "order",
                  json_string(settings->order == TL_ORDER_DRAW ? "draw" : "arrival"));
    tl_object_set(stats, "opens_at", tl_call_time(settings->opens_at_ms));
    tl_object_set(stats, "closes_at", tl_call_time(settings->closes_at_ms));
    tl_object_set(stats, "waiting", integer((int64_t)facts->state.waiting));
    tl_object_set(stats, "max_waiting", integer((int64_t)settings->max_waiting));
    tl_object_set(stats, "active", integer((int64_t)facts->state.active));
    tl_object_set(stats, "capacity", by_rate ? json_null() : integer((int64_t)settings->capacity));
    tl_object_set(stats, "capacity_now",
                  by_rate ? json_null() : integer((int64_t)tl_queue_capacity(settings)));
    tl_object_set(stats, "feedback", is_auto ? json_boolean(!settings->now.stale) : json_null());
    tl_object_set(stats, "overbook", integer((int64_t)settings->overbook));
    tl_object_set(stats, "rate", rate_limit_of(facts));
    tl_object_set(stats, "recovery", recovery_of(facts));
}

/* The body from an answer of stats.lua. */
static json_t *read_answer(const struct tl_control *control, const struct tl_reply *reply,
                           const char *queue, struct tl_error *err)
{
    struct facts facts = {.now_ms = tl_reply_signed(reply, TL_STATS_NOW)};
    if (!tl_queue_settings_read(tl_reply_at(reply, TL_STATS_SETTINGS), &facts.settings)) {
        tl_error_set(err, TL_ERR_STORE, "the settings of queue %s are missing", queue);
        return NULL;
    }
    const struct tl_reply *state = tl_reply_at(reply, TL_STATS_STATE);
    tl_state_parse(state, FIELDS, &facts.state);
    tl_queue_settings_now(&facts.settings, &facts.state);
    json_t *stats = read_members(tl_reply_text(reply, TL_STATS_MEMBERS));
    tl_object_set(&stats, "queue", json_string(queue));
    size_t length;
    const char *notice = tl_reply_string(tl_reply_at(state, tl_reply_count(state) - 1), &length);
    tl_notice_to_json(&stats, notice, length);
    describe(&facts, &stats);
    tl_object_set(
        &stats, "webhooks",
        tl_webhooks_to_json(control->config, queue, tl_reply_at(reply, TL_STATS_WEBHOOKS)));
    if (stats == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the numbers of queue %s", queue);
    return stats;
}

json_t *tl_control_stats_of(struct tl_control *control, const char *queue, struct tl_error *err)
{
    struct tl_keys keys;
    struct tl_args args = {0};
    struct tl_redis *redis =
        tl_call_keys(control, queue, &keys, err) ? tl_control_redis(control, queue, err) : NULL;
    if (redis == NULL)
        return NULL;
    tl_call_begin_read(&args, TL_FN_STATS, &keys);
    tl_state_append(&args, FIELDS);
    tl_args_str(&args, "notice");
    struct tl_reply *reply = tl_call_once(redis, &args, err);
    json_t *stats = reply != NULL ? read_answer(control, reply, queue, err) : NULL;
    tl_reply_free(reply);
    if (stats != NULL)
        tl_object_set(&stats, "node", tl_call_node(redis));
    return stats;
}

json_t *tl_handle_stats(struct tl_control_call *call)
{
    json_t *stats = tl_control_stats_of(call->control, call->keys.queue, &call->err);
    if (stats != NULL)
        tl_object_set(&stats, "store", read_store(call->redis, &call->err));
    return stats;
}
