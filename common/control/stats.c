/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/units.h"
#include "common/config/mode.h"
#include "common/config/queue_settings.h"
#include "common/control/call.h"
#include "common/store/args.h"
#include "common/store/memory.h"
#include "common/store/state.h"

/* ---- the store itself: memory, persistence, latency ---- */

/* Appends the command to the pipeline. */
static bool ask_store(struct tl_redis *redis, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_str(&args, "INFO");
    bool ok = tl_redis_append(redis, &args, err);
    tl_args_free(&args);
    return ok;
}

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

/* Receives its answer. took_us: how long the pipeline took. NULL on failure. */
static json_t *receive_store(struct tl_redis *redis, int64_t took_us, struct tl_error *err)
{
    struct tl_reply *reply = tl_redis_next(redis, err);
    if (reply == NULL)
        return NULL;
    const char *info = tl_reply_string(reply, NULL);
    json_t *stats =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o, s:I}", "version",
                  text_of(info, "redis_version"), "role", text_of(info, "role"), "uptime_s",
                  number_of(info, "uptime_in_seconds"), "memory_used",
                  number_of(info, "used_memory"), "memory_limit", number_of(info, "maxmemory"),
                  "aof", strncmp(tl_info_field(info, "aof_enabled"), "1", 1) == 0, "persists",
                  is_kept(info), "clients", number_of(info, "connected_clients"), "replicas",
                  number_of(info, "connected_slaves"), "latency_us", (json_int_t)took_us);
    tl_reply_free(reply);
    if (stats == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the numbers of the store");
    return stats;
}

/* What is read of the state; besides, at the end, its texts `called` and `notice`. */
enum { FIELDS = TL_STATE_COUNTERS | TL_STATE_CAPACITY | TL_STATE_RECOVERY };

static const char *const totals[] = {TL_TOTAL_TEXTS}; /* members of the answer, too */
enum { TOTALS = sizeof(totals) / sizeof(totals[0]) };

enum { SAMPLE_MAX = 64 }; /* of the active visitors */

/* What the members are made of. */
struct facts {
    int64_t now_ms;
    const struct tl_config *config;
    const struct tl_reply *reply;
    struct tl_queue_settings settings;
    struct tl_state state;
    const char *called, *notice;
};

static json_t *integer(int64_t number)
{
    return json_integer((json_int_t)number);
}

/* ---- parts ---- */

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

/* How many of the active have come; the others were called and may still come. Without overbooking
 * nobody counts them: null. `called` is since:n:claims:noshows (common/store/line/overbook.lua). */
static json_t *claimed_of(const struct facts *facts)
{
    const char *colon = strchr(facts->called, ':');
    int64_t unclaimed = colon != NULL ? strtoll(colon + 1, NULL, 10) : -1;
    return unclaimed < 0 ? json_null() : integer((int64_t)facts->state.active - unclaimed);
}

static json_t *capacity_of(const struct facts *facts)
{
    const struct tl_queue_settings *settings = &facts->settings;
    if (settings->policy == TL_POLICY_RATE)
        return json_null();
    return integer((int64_t)tl_queue_capacity(settings));
}

static json_t *totals_of(const struct facts *facts)
{
    json_t *object = json_object();
    for (size_t i = 0; i < TOTALS; i++)
        tl_object_set(&object, totals[i], integer((int64_t)facts->state.totals[i]));
    return object;
}

/* Per minute, from the totals about a minute ago. null: there is no history. */
static json_t *rates_of(const struct facts *facts)
{
    const struct tl_reply *before = tl_reply_at(facts->reply, TL_STATS_BEFORE);
    int64_t span_ms = facts->now_ms - tl_reply_signed(before, 0);
    if (tl_reply_count(before) <= TOTALS || span_ms < 1000)
        return json_null();
    json_t *rates = json_object();
    for (size_t i = 0; i < TOTALS; i++) {
        int64_t more = (int64_t)facts->state.totals[i] - tl_reply_signed(before, i + 1);
        /* Fewer than before: the queue was created again. */
        tl_object_set(&rates, totals[i],
                      json_real(more > 0 ? (double)more * 60000.0 / (double)span_ms : 0.0));
    }
    tl_object_set(&rates, "span_ms", integer(span_ms));
    return rates;
}

/* How long ago; null for a time that is not known (-1). */
static json_t *ago(const struct facts *facts, int64_t at_ms)
{
    if (at_ms < 0)
        return json_null();
    return integer(facts->now_ms > at_ms ? facts->now_ms - at_ms : 0);
}

/* When the first of a lane joined; -1: not known, or nobody waits. */
static int64_t lane_since(const struct facts *facts, size_t lane)
{
    return tl_reply_signed(tl_reply_at(facts->reply, TL_STATS_LANES), 2 * lane + 1);
}

static json_t *lanes_of(const struct facts *facts)
{
    const struct tl_reply *lanes = tl_reply_at(facts->reply, TL_STATS_LANES);
    json_t *list = json_array();
    for (size_t i = 0; i < facts->settings.n_lanes; i++) {
        int64_t waiting = tl_reply_signed(lanes, 2 * i);
        json_t *lane = json_pack("{s:s, s:I, s:o}", "name", facts->settings.lanes[i], "waiting",
                                 (json_int_t)waiting, "oldest_wait_ms",
                                 ago(facts, waiting > 0 ? lane_since(facts, i) : -1));
        tl_list_add(&list, lane);
    }
    return list;
}

/* The longest wait of all lanes, ms; null when it is not known. */
static json_t *oldest_of(const struct facts *facts)
{
    int64_t oldest_ms = -1;
    for (size_t i = 0; i < facts->settings.n_lanes; i++) {
        int64_t since_ms = lane_since(facts, i);
        if (since_ms >= 0 && (oldest_ms < 0 || since_ms < oldest_ms))
            oldest_ms = since_ms;
    }
    return ago(facts, oldest_ms);
}

static int compare(const void *a, const void *b)
{
    int64_t first = *(const int64_t *)a;
    int64_t second = *(const int64_t *)b;
    return first < second ? -1 : first > second;
}

/* How long a sample of those waited who are active now, sorted. Returns how many. */
static size_t read_sample(const struct facts *facts, int64_t sample[SAMPLE_MAX])
{
    const struct tl_reply *waits = tl_reply_at(facts->reply, TL_STATS_WAITS);
    size_t n = tl_reply_count(waits);
    if (n > SAMPLE_MAX)
        n = SAMPLE_MAX;
    for (size_t i = 0; i < n; i++)
        sample[i] = tl_reply_signed(waits, i);
    qsort(sample, n, sizeof(sample[0]), compare);
    return n;
}

/* How long those waited who are active now, from a sample. */
static json_t *waited_of(const struct facts *facts)
{
    int64_t sample[SAMPLE_MAX];
    size_t n = read_sample(facts, sample);
    if (n == 0)
        return json_null();
    return json_pack("{s:I, s:I, s:I}", "sample", (json_int_t)n, "p50_ms",
                     (json_int_t)sample[n / 2], "p90_ms", (json_int_t)sample[n * 9 / 10]);
}

/* Who waits how long, and how long those waited who are active: how many under each of the bounds,
 * and beyond the last one. */
static json_t *waits_of(const struct facts *facts)
{
    int64_t sample[SAMPLE_MAX];
    const struct tl_reply *line = tl_reply_at(facts->reply, TL_STATS_LINE);
    int64_t unknown = tl_reply_signed(line, 0), more = (int64_t)facts->state.waiting;
    size_t n_sample = read_sample(facts, sample), at = 0;
    json_t *bounds = json_array(), *waiting = json_array(), *admitted = json_array();
    for (size_t i = 1; i < tl_reply_count(line) + 2; i += 2) {
        bool is_last = i >= tl_reply_count(line); /* beyond all bounds */
        int64_t bound_ms = is_last ? INT64_MAX : tl_reply_signed(line, i);
        int64_t longer = is_last ? unknown : tl_reply_signed(line, i + 1);
        size_t from = at;
        while (at < n_sample && sample[at] < bound_ms)
            at++;
        if (!is_last)
            tl_list_add(&bounds, integer(bound_ms));
        tl_list_add(&waiting, integer(more > longer ? more - longer : 0));
        tl_list_add(&admitted, integer((int64_t)(at - from)));
        more = longer;
    }
    return json_pack("{s:o, s:o, s:I, s:o}", "bounds_ms", bounds, "waiting", waiting, "not_known",
                     (json_int_t)unknown, "admitted", admitted);
}

/* What came true of the waits that visitors were told; null: nothing yet. */
static json_t *eta_of(const struct facts *facts)
{
    const struct tl_reply *told = tl_reply_at(facts->reply, TL_STATS_TOLD);
    int64_t judged = tl_reply_signed(told, 1);
    int64_t early = tl_reply_signed(told, 2);
    int64_t late = tl_reply_signed(told, 3);
    if (judged <= 0)
        return json_null();
    return json_pack("{s:o, s:I, s:I, s:I, s:f, s:f}", "since",
                     tl_call_time(tl_reply_signed(told, 0)), "judged", (json_int_t)judged, "early",
                     (json_int_t)early, "late", (json_int_t)late, "inside_percent",
                     100.0 * (double)(judged - early - late) / (double)judged, "error_percent",
                     (double)tl_reply_signed(told, 4) / (double)judged);
}

/* Who holds the leases, and which workers report. */
static json_t *programs_of(const struct facts *facts)
{
    static const char *const roles[] = {"dispatcher", "admitter", "expirer"};
    const struct tl_reply *leases = tl_reply_at(facts->reply, TL_STATS_LEASES);
    const struct tl_reply *workers = tl_reply_at(facts->reply, TL_STATS_PROGRAMS);
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        const char *owner = tl_reply_text(leases, 2 * i);
        tl_list_add(&list, json_pack("{s:s, s:s?, s:b}", "role", roles[i], "id",
                                     *owner != '\0' ? owner : NULL, "serves", *owner != '\0'));
    }
    for (size_t i = 0; i + 1 < tl_reply_count(workers); i += 2)
        tl_list_add(&list,
                    json_pack("{s:s, s:s, s:o}", "role", "worker", "id", tl_reply_text(workers, i),
                              "reported_ms_ago", ago(facts, tl_reply_signed(workers, i + 1))));
    return list;
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
    char every[TL_UNITS_TEXT_MAX];
    if (facts->settings.policy == TL_POLICY_COUNTER)
        return json_null();
    tl_duration_format(facts->settings.rate.every_ms, every, sizeof(every));
    return json_pack("{s:I, s:s}", "admit", (json_int_t)facts->settings.rate.admit, "every", every);
}

/* ---- all of it ---- */

static json_t *describe(const struct facts *facts, const char *queue)
{
    static const char *const policies[] = {"counter", "rate", "both"};
    const struct tl_queue_settings *settings = &facts->settings;
    const struct tl_reply *sizes = tl_reply_at(facts->reply, TL_STATS_SIZES);
    bool is_auto = settings->capacity_min > 0;
    json_t *stats = json_object();
    tl_object_set(&stats, "queue", json_string(queue));
    tl_object_set(&stats, "at", tl_call_time(facts->now_ms));
    tl_object_set(&stats, "generation", integer((int64_t)facts->state.generation));
    tl_object_set(&stats, "mode", json_string(tl_mode_name(settings->mode)));
    tl_object_set(&stats, "phase", json_string(tl_phase_name(phase_of(facts))));
    tl_object_set(&stats, "policy", json_string(policies[settings->policy]));
    tl_object_set(&stats, "order",
                  json_string(settings->order == TL_ORDER_DRAW ? "draw" : "arrival"));
    tl_object_set(&stats, "opens_at", tl_call_time(settings->opens_at_ms));
    tl_object_set(&stats, "closes_at", tl_call_time(settings->closes_at_ms));
    tl_notice_to_json(&stats, facts->notice, strlen(facts->notice));
    tl_object_set(&stats, "waiting", integer((int64_t)facts->state.waiting));
    tl_object_set(&stats, "max_waiting", integer((int64_t)settings->max_waiting));
    tl_object_set(&stats, "active", integer((int64_t)facts->state.active));
    tl_object_set(&stats, "claimed", claimed_of(facts));
    tl_object_set(&stats, "capacity",
                  settings->policy == TL_POLICY_RATE ? json_null()
                                                     : integer((int64_t)settings->capacity));
    tl_object_set(&stats, "capacity_now", capacity_of(facts));
    tl_object_set(&stats, "feedback", is_auto ? json_boolean(!settings->now.stale) : json_null());
    tl_object_set(&stats, "overbook", integer((int64_t)settings->overbook));
    tl_object_set(&stats, "rate", rate_limit_of(facts));
    tl_object_set(&stats, "totals", totals_of(facts));
    tl_object_set(&stats, "per_minute", rates_of(facts));
    tl_object_set(&stats, "oldest_wait_ms", oldest_of(facts));
    tl_object_set(&stats, "waited", waited_of(facts));
    tl_object_set(&stats, "waits", waits_of(facts));
    tl_object_set(&stats, "eta", eta_of(facts));
    tl_object_set(&stats, "lanes", lanes_of(facts));
    tl_object_set(&stats, "recovery", recovery_of(facts));
    tl_object_set(&stats, "programs", programs_of(facts));
    tl_object_set(&stats, "hooks",
                  tl_hooks_to_json(facts->config, queue, tl_reply_at(facts->reply, TL_STATS_HOOKS),
                                   facts->now_ms));
    tl_object_set(&stats, "ingest", integer(tl_reply_signed(sizes, 0)));
    tl_object_set(&stats, "set_aside", integer(tl_reply_signed(sizes, 1)));
    return stats;
}

/* Sends stats.lua; the answer is still to be received. */
static bool ask(struct tl_redis *redis, const struct tl_keys *keys, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_call_begin_read(&args, TL_FN_STATS, keys);
    tl_state_append(&args, FIELDS);
    tl_args_strs(&args, "called", "notice", NULL);
    bool ok = tl_redis_append(redis, &args, err);
    tl_args_free(&args);
    return ok;
}

/* The body from an answer of stats.lua, which may be NULL. */
static json_t *read_answer(const struct tl_control *control, const struct tl_reply *reply,
                           const struct tl_keys *keys, struct tl_error *err)
{
    if (reply == NULL)
        return NULL;
    struct facts facts = {
        .config = control->config, .reply = reply, .now_ms = tl_reply_signed(reply, TL_STATS_NOW)};
    if (!tl_queue_settings_read(tl_reply_at(reply, TL_STATS_SETTINGS), &facts.settings)) {
        tl_error_set(err, TL_ERR_STORE, "the settings of queue %s are missing", keys->queue);
        return NULL;
    }
    const struct tl_reply *state = tl_reply_at(reply, TL_STATS_STATE);
    size_t n = tl_reply_count(state);
    facts.called = tl_reply_text(state, n - 2);
    facts.notice = tl_reply_text(state, n - 1);
    tl_state_parse(state, FIELDS, &facts.state);
    tl_queue_settings_now(&facts.settings, &facts.state);
    json_t *stats = describe(&facts, keys->queue);
    if (stats == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the numbers of queue %s", keys->queue);
    return stats;
}

/* with_store: asks for the store's own numbers in the same pipeline. */
static json_t *read_stats(struct tl_control *control, const char *queue, bool with_store,
                          struct tl_error *err)
{
    struct tl_keys keys;
    struct tl_redis *redis = NULL;
    if (tl_call_keys(control, queue, &keys, err))
        redis = tl_call_connect(control, queue, err);
    if (redis == NULL)
        return NULL;
    int64_t begun_us = tl_clock_us();
    struct tl_reply *reply = NULL;
    json_t *store = NULL;
    bool ok = true;
    /* Another try where the store lacked the library. */
    for (int attempt = 0; attempt < 2 && ok && reply == NULL; attempt++) {
        struct tl_error problem = {0};
        ok = ask(redis, &keys, err) && (!with_store || ask_store(redis, err));
        if (ok)
            reply = tl_redis_next(redis, &problem);
        if (ok && with_store && tl_redis_connected(redis)) {
            json_decref(store);
            store = receive_store(redis, tl_clock_us() - begun_us, &problem);
        }
        if (problem.kind == TL_ERR_NOFUNCTION)
            ok = tl_library_load(redis, &problem);
        else
            ok = problem.kind == TL_OK;
        if (problem.kind != TL_OK)
            *err = problem;
    }
    json_t *stats = ok ? read_answer(control, reply, &keys, err) : NULL;
    tl_reply_free(reply);
    if (stats != NULL && with_store)
        tl_object_set(&stats, "store", json_incref(store));
    json_decref(store);
    return stats;
}

json_t *tl_control_stats_of(struct tl_control *control, const char *queue, struct tl_error *err)
{
    return read_stats(control, queue, false, err);
}

json_t *tl_handle_stats(struct tl_control_call *call)
{
    return read_stats(call->control, call->keys.queue, true, &call->err);
}
