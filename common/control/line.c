/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/control/call.h"

enum {
    PORTION = 500,      /* points of one call of the function */
    POINTS_MAX = 20000, /* more than a day of 10 s and a week of minutes */
};

void tl_joined_want(struct tl_joined *joined, tl_place place)
{
    uint64_t seq = tl_place_seq(place);
    if (joined->first == 0 || seq < joined->first)
        joined->first = seq;
    if (seq > joined->last)
        joined->last = seq;
}

static struct tl_reply *ask(const struct tl_joined *joined, uint64_t first,
                            struct tl_control *control, const struct tl_keys *keys,
                            struct tl_error *err)
{
    struct tl_args args = {0};
    struct tl_redis *redis = tl_call_connect(control, keys->queue, err);
    if (redis == NULL)
        return NULL;
    tl_call_begin_read(&args, TL_FN_JOINED, keys);
    tl_args_uint(&args, first);
    tl_args_uint(&args, joined->last);
    tl_args_uint(&args, PORTION);
    return tl_call_once(redis, &args, err);
}

/* Appends the points of an answer. */
static bool append(struct tl_joined *joined, const struct tl_reply *reply, struct tl_error *err)
{
    size_t n = tl_reply_count(reply) > 2 ? (tl_reply_count(reply) - 2) / 2 : 0;
    if (n == 0)
        return true;
    struct tl_joined_point *points =
        reallocarray(joined->points, joined->n + n, sizeof(joined->points[0]));
    if (points == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu points of the history", n);
    joined->points = points;
    for (size_t i = 0; i < n; i++)
        points[joined->n++] = (struct tl_joined_point){.at_ms = tl_reply_signed(reply, 2 + 2 * i),
                                                       .seq = tl_reply_number(reply, 3 + 2 * i)};
    return true;
}

bool tl_joined_read(struct tl_joined *joined, struct tl_control *control,
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

int64_t tl_joined_at(const struct tl_joined *joined, tl_place place)
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

void tl_joined_clear(struct tl_joined *joined)
{
    free(joined->points);
    *joined = (struct tl_joined){0};
}

#define POSITION_MAX (UINT64_C(1) << 40)

static tl_place place_at(const struct tl_reply *page, size_t i)
{
    tl_place place = 0;
    (void)tl_record_place(tl_reply_text(page, i + 1), &place);
    return place;
}

/* The visitors of a page, from their names and scores in turn, behind a position. NULL: out of
 * memory. */
static json_t *list_of(const struct tl_reply *page, const struct tl_queue_settings *settings,
                       const struct tl_joined *joined, uint64_t after)
{
    json_t *list = json_array();
    for (size_t i = 0; i + 1 < tl_reply_count(page); i += 2) {
        tl_place place = place_at(page, i);
        json_t *visitor = json_pack(
            "{s:I, s:s, s:o}", "position", (json_int_t)after + 1 + (json_int_t)(i / 2), "visitor",
            tl_reply_text(page, i), "joined_at", tl_call_time(tl_joined_at(joined, place)));
        tl_place_to_json(&visitor, settings, &place);
        tl_list_add(&list, visitor);
    }
    return list;
}

json_t *tl_handle_line(struct tl_control_call *call)
{
    struct tl_queue_settings settings;
    struct tl_state state;
    struct tl_list_page page;
    struct tl_args args = {0};
    struct tl_joined joined = {0};
    uint64_t after = 0;
    json_t *body = NULL;
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
    for (size_t i = 0; i < n; i++)
        tl_joined_want(&joined, place_at(reply, 2 * i));
    if (reply != NULL && tl_joined_read(&joined, call->control, &call->keys, &call->err))
        body = json_pack("{s:s, s:I, s:o, s:b}", "queue", call->keys.queue, "waiting",
                         (json_int_t)state.waiting, "visitors",
                         list_of(reply, &settings, &joined, after), "has_more",
                         n > 0 && after + n < state.waiting);
    tl_joined_clear(&joined);
    tl_reply_free(reply);
    return body;
}
