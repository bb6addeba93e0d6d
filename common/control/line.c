/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/control/call.h"

enum {
    PORTION = 500,      /* points of one call of the function */
    POINTS_MAX = 20000, /* more than a day of 10 s and a week of minutes */
};

/* The history of some places. Begins zeroed. */
struct joined {
    uint64_t first, last; /* the seqs it is to be read for; 0: none */
    int64_t now_ms;
    bool known; /* the history reaches back to the first */
    struct point {
        int64_t at_ms;
        uint64_t seq; /* the last one given then */
    } * points;
    size_t n;
};

/* Makes it be read for this place, too. */
static void want(struct joined *joined, tl_place place)
{
    uint64_t seq = tl_place_seq(place);
    if (joined->first == 0 || seq < joined->first)
        joined->first = seq;
    if (seq > joined->last)
        joined->last = seq;
}

static struct tl_reply *ask(const struct joined *joined, uint64_t first, struct tl_control *control,
                            const struct tl_keys *keys, struct tl_error *err)
{
    struct tl_args args = {0};
    struct tl_redis *redis = tl_control_redis(control, keys->queue, err);
    if (redis == NULL)
        return NULL;
    tl_call_begin_read(&args, TL_FN_JOINED, keys);
    tl_args_uint(&args, first);
    tl_args_uint(&args, joined->last);
    tl_args_uint(&args, PORTION);
    return tl_call_once(redis, &args, err);
}

/* Appends the points of an answer. */
static bool append(struct joined *joined, const struct tl_reply *reply, struct tl_error *err)
{
    size_t n = tl_reply_count(reply) > 2 ? (tl_reply_count(reply) - 2) / 2 : 0;
    if (n == 0)
        return true;
    struct point *points = reallocarray(joined->points, joined->n + n, sizeof(joined->points[0]));
    if (points == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu points of the history", n);
    joined->points = points;
    for (size_t i = 0; i < n; i++)
        points[joined->n++] = (struct point){.at_ms = tl_reply_signed(reply, 2 + 2 * i),
                                             .seq = tl_reply_number(reply, 3 + 2 * i)};
    return true;
}

/* Reads it for the places that are wanted. At most as much as the history has points: 20 bytes for
 * each, 17000 of them. */
static bool read_history(struct joined *joined, struct tl_control *control,
                         const struct tl_keys *keys, struct tl_error *err)
{
    bool ok = true;
    bool more = joined->last > 0;
    for (uint64_t first = joined->first; ok && more;) {
        struct tl_reply *reply = ask(joined, first, control, keys, err);
        size_t before = joined->n;
        ok = reply != NULL && append(joined, reply, err);
        if (ok && first == joined->first) {
            joined->now_ms = tl_reply_signed(reply, 0);
            joined->known = tl_reply_signed(reply, 1) == 1;
        }
        tl_reply_free(reply);
        more = ok && joined->n > before && joined->n < POINTS_MAX;
        if (more) {
            uint64_t next = joined->points[joined->n - 1].seq + 1;
            more = next > first && next <= joined->last; /* a damaged point leads back */
            first = next;
        }
    }
    return ok;
}

static int64_t joined_at(const struct joined *joined, tl_place place)
{
    uint64_t seq = tl_place_seq(place);
    size_t low = 0, high = joined->n; /* the first point that knows it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (joined->points[middle].seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    if (!joined->known && low == 0)
        return 0;
    return low < joined->n ? joined->points[low].at_ms : joined->now_ms;
}

bool tl_joined_fill(struct tl_visitor_facts *list, size_t n, struct tl_control *control,
                    const struct tl_keys *keys, struct tl_error *err)
{
    struct joined joined = {0};
    for (size_t i = 0; i < n; i++)
        if (list[i].has_place)
            want(&joined, list[i].place);
    bool ok = read_history(&joined, control, keys, err);
    for (size_t i = 0; ok && i < n; i++)
        if (list[i].has_place)
            list[i].joined_ms = joined_at(&joined, list[i].place);
    free(joined.points);
    return ok;
}

/* ---- a page of the line ---- */

#define POSITION_MAX (UINT64_C(1) << 40)

/* The visitors of a page, from their names and scores in turn, behind a position. */
static json_t *list_of(struct tl_control_call *call, const struct tl_queue_settings *settings,
                       const struct tl_reply *reply, uint64_t after)
{
    size_t n = tl_reply_count(reply) / 2;
    struct tl_visitor_facts *rows = calloc(n + 1, sizeof(*rows));
    json_t *list = NULL;
    for (size_t i = 0; rows != NULL && i < n; i++)
        rows[i].has_place = tl_record_place(tl_reply_text(reply, 2 * i + 1), &rows[i].place);
    if (rows != NULL && tl_joined_fill(rows, n, call->control, &call->keys, &call->err))
        list = json_array();
    for (size_t i = 0; list != NULL && i < n; i++) {
        json_t *visitor = json_pack(
            "{s:I, s:s, s:o}", "position", (json_int_t)after + 1 + (json_int_t)i, "visitor",
            tl_reply_text(reply, 2 * i), "joined_at", tl_call_time(rows[i].joined_ms));
        tl_place_to_json(&visitor, settings, rows[i].has_place ? &rows[i].place : NULL);
        tl_list_add(&list, visitor);
    }
    free(rows);
    return list;
}

json_t *tl_handle_line(struct tl_control_call *call)
{
    struct tl_queue_settings settings;
    struct tl_state state;
    struct tl_list_page page;
    struct tl_args args = {0};
    uint64_t after = 0;
    if (!tl_list_page_read(call, &page) ||
        !tl_call_number(call, "starting_after", 0, POSITION_MAX, &after) ||
        !tl_queue_load(call->redis, &call->keys, &settings, &call->err) ||
        !tl_state_read(call->redis, &call->keys, TL_STATE_SIZES, &state, &call->err))
        return NULL;
    tl_args_strs(&args, "ZRANGE", call->keys.names[TL_KEY_WAITING], NULL);
    tl_args_uint(&args, after);
    tl_args_uint(&args, after + page.limit - 1);
    tl_args_str(&args, "WITHSCORES");
    struct tl_reply *reply = tl_redis_once(call->redis, &args, &call->err);
    size_t n = tl_reply_count(reply) / 2;
    json_t *list = reply != NULL ? list_of(call, &settings, reply, after) : NULL;
    tl_reply_free(reply);
    return list == NULL ? NULL
                        : json_pack("{s:s, s:I, s:o, s:b}", "queue", call->keys.queue, "waiting",
                                    (json_int_t)state.waiting, "visitors", list, "has_more",
                                    n > 0 && after + n < state.waiting);
}
