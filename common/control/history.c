/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/control/history.h"
#include "common/store/history.h"

#define TIME_MAX (UINT64_C(1) << 53)

/* [at, mode, value, ...]. NULL: out of memory. */
static json_t *row_of(const struct tl_history_point *point)
{
    json_t *row = json_pack("[I, s]", (json_int_t)point->at_ms, point->mode);
    for (int field = 0; row != NULL && field < TL_HISTORY_FIELDS; field++) {
        if (json_array_append_new(row, json_integer((json_int_t)point->values[field])) == 0)
            continue;
        json_decref(row);
        row = NULL;
    }
    return row;
}

/* Takes part of the answer over; NULL parts: out of memory. */
static json_t *body_of(const char *queue, bool minutes, const struct tl_history_point *points,
                       size_t n)
{
    json_t *fields = json_array(), *rows = json_array();
    bool ok = fields != NULL && rows != NULL;
    for (int field = 0; ok && field < TL_HISTORY_FIELDS; field++)
        ok = json_array_append_new(
                 fields, json_string(tl_history_field_name((enum tl_history_field)field))) == 0;
    for (size_t i = 0; ok && i < n; i++)
        ok = json_array_append_new(rows, row_of(&points[i])) == 0;
    json_t *body = ok ? json_pack("{s:s, s:i, s:O, s:O}", "queue", queue, "step_ms",
                                  minutes ? TL_HISTORY_MINUTE_MS : TL_HISTORY_STEP_MS, "fields",
                                  fields, "points", rows)
                      : NULL;
    json_decref(fields);
    json_decref(rows);
    return body;
}

void tl_handle_history(struct tl_control_call *call)
{
    struct tl_error err = {0};
    struct tl_history_point *points = NULL;
    const char *step = tl_target_parameter(&call->target, "step");
    uint64_t from_ms = 0, to_ms = TIME_MAX;
    size_t n;
    if (!tl_call_number(call, "from", 0, TIME_MAX, &from_ms) ||
        !tl_call_number(call, "to", 0, TIME_MAX, &to_ms))
        return;
    bool minutes = step != NULL && strcmp(step, "1m") == 0;
    if (step != NULL && !minutes && strcmp(step, "10s") != 0) {
        tl_call_refuse(call, 400, "step must be 10s or 1m");
        return;
    }
    if (tl_history_read(call->redis, &call->keys, minutes, (int64_t)from_ms, (int64_t)to_ms,
                        TL_HISTORY_READ_MAX, &points, &n, &err))
        tl_call_answer(call, 200, body_of(call->keys.queue, minutes, points, n));
    else
        tl_call_fail(call, &err);
    free(points);
}
