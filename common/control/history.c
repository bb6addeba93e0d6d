/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"
#include "common/control/call.h"

#define TIME_MAX (INT64_C(1) << 53)

static const char *const names[] = {TL_HISTORY_TEXTS};

enum {
    FIELDS = sizeof(names) / sizeof(names[0]),
    POINTS_MAX = 10080, /* a week of minutes */
};

/* Appends the point of an entry of the stream if it is later than *last_ms, which moves on: one
 * entry may be in both of two ranges. */
static void add_point(json_t **points, const struct tl_reply *entry, int64_t *last_ms)
{
    const struct tl_reply *pairs = tl_reply_at(entry, 1);
    int64_t at_ms = tl_reply_signed(entry, 0); /* of "MS-SEQ" */
    if (at_ms <= *last_ms)
        return;
    *last_ms = at_ms;
    json_t *point =
        json_pack("[o, s]", tl_call_time(at_ms), tl_reply_string(tl_reply_of(pairs, "mode"), NULL));
    for (size_t i = 0; i < FIELDS; i++)
        tl_list_add(&point,
                    json_integer((json_int_t)tl_reply_integer(tl_reply_of(pairs, names[i]))));
    tl_list_add(points, point);
}

json_t *tl_history_points(struct tl_redis *redis, const struct tl_keys *keys,
                          const struct tl_history_span *span, struct tl_error *err)
{
    char key[TL_KEY_MAX], from[24], to[24], count[24];
    tl_key(keys, span->minutes ? TL_KEY_HISTORY_MINUTES : TL_KEY_HISTORY, key);
    snprintf(from, sizeof(from), "%" PRId64, span->from_ms);
    snprintf(to, sizeof(to), "%" PRId64, span->to_ms);
    snprintf(count, sizeof(count), "%zu", span->most);
    struct tl_reply *later = tl_ask(redis, err, "XREVRANGE", key, to, from, "COUNT", count, NULL);
    if (later == NULL)
        return NULL;
    size_t n = tl_reply_count(later);
    struct tl_reply *before =
        n < span->most ? tl_ask(redis, err, "XREVRANGE", key, from, "-", "COUNT", "1", NULL) : NULL;
    bool answered = before != NULL || n == span->most;
    json_t *points = answered ? json_array() : NULL;
    int64_t last_ms = 0;
    add_point(&points, tl_reply_at(before, 0), &last_ms);
    for (size_t i = n; i > 0; i--)
        add_point(&points, tl_reply_at(later, i - 1), &last_ms);
    tl_reply_free(later);
    tl_reply_free(before);
    if (points == NULL && answered)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for a history");
    return points;
}

/* A time of the query. *unix_ms stays as it is where there is no such parameter. No history has a
 * point before 1970, and the ids of a stream have no sign: an earlier time is 0. */
static bool read_time(struct tl_control_call *call, const char *name, int64_t *unix_ms)
{
    struct tl_error err = {0};
    const char *text = tl_target_parameter(&call->target, name);
    if (text == NULL)
        return true;
    if (!tl_time_parse(text, unix_ms, &err))
        return tl_call_refuse(call, TL_REFUSAL_BAD_QUERY, "%s: %s", name, err.text);
    if (*unix_ms < 0)
        *unix_ms = 0;
    return true;
}

json_t *tl_handle_history(struct tl_control_call *call)
{
    static const uint64_t minute_s = TL_HISTORY_MINUTE_MS / 1000,
                          step_s = TL_HISTORY_STEP_MS / 1000;
    uint64_t step = step_s;
    struct tl_history_span span = {.to_ms = TIME_MAX, .most = POINTS_MAX};
    if (!tl_call_number(call, "step_seconds", step_s, minute_s, &step) ||
        !read_time(call, "from", &span.from_ms) || !read_time(call, "to", &span.to_ms))
        return NULL;
    if (step != step_s && step != minute_s)
        return tl_call_refuse(call, TL_REFUSAL_BAD_QUERY, "step_seconds must be %d or %d",
                              (int)step_s, (int)minute_s);
    span.minutes = step == minute_s;
    json_t *points = tl_history_points(call->redis, &call->keys, &span, &call->err);
    if (points == NULL)
        return NULL;
    json_t *fields = json_pack("[s, s]", "at", "mode");
    for (size_t i = 0; i < FIELDS; i++)
        tl_list_add(&fields, json_string(names[i]));
    return json_pack("{s:s, s:I, s:o, s:o}", "queue", call->keys.queue, "step_seconds",
                     (json_int_t)step, "fields", fields, "points", points);
}
