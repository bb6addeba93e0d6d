/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/control/call.h"

#define TIME_MAX (UINT64_C(1) << 53)

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
        json_pack("[I, s]", (json_int_t)at_ms, tl_reply_string(tl_reply_of(pairs, "mode"), NULL));
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

json_t *tl_handle_history(struct tl_control_call *call)
{
    const char *step = tl_target_parameter(&call->target, "step");
    uint64_t from_ms = 0, to_ms = TIME_MAX;
    if (!tl_call_number(call, "from", 0, TIME_MAX, &from_ms) ||
        !tl_call_number(call, "to", 0, TIME_MAX, &to_ms))
        return NULL;
    bool minutes = step != NULL && strcmp(step, "1m") == 0;
    if (step != NULL && !minutes && strcmp(step, "10s") != 0)
        return tl_call_refuse(call, TL_REFUSAL_BAD_QUERY, "step must be 10s or 1m");
    const struct tl_history_span span = {.minutes = minutes,
                                         .from_ms = (int64_t)from_ms,
                                         .to_ms = (int64_t)to_ms,
                                         .most = POINTS_MAX};
    json_t *points = tl_history_points(call->redis, &call->keys, &span, &call->err);
    if (points == NULL)
        return NULL;
    json_t *fields = json_array();
    for (size_t i = 0; i < FIELDS; i++)
        tl_list_add(&fields, json_string(names[i]));
    return json_pack("{s:s, s:i, s:o, s:o}", "queue", call->keys.queue, "step_ms",
                     minutes ? TL_HISTORY_MINUTE_MS : TL_HISTORY_STEP_MS, "fields", fields,
                     "points", points);
}
