/* SPDX-License-Identifier: Apache-2.0 */
#include "common/control/line.h"
#include "common/control/call.h"
#include "common/control/joined.h"
#include "common/control/place_json.h"
#include "common/store/queue.h"
#include "common/store/records.h"
#include "common/store/reply.h"

enum { LIMIT = 100, LIMIT_MAX = 1000 };
#define POSITION_MAX (UINT64_C(1) << 40)

static tl_place place_at(const struct tl_reply *page, size_t i)
{
    tl_place place = 0;
    (void)tl_record_place(tl_reply_text(page, i + 1), &place);
    return place;
}

/* The visitors of a page, from their names and scores in turn. NULL: out of memory. */
static json_t *list_of(const struct tl_reply *page, const struct tl_queue_settings *settings,
                       const struct tl_joined *joined, uint64_t from)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i + 1 < tl_reply_count(page); i += 2) {
        tl_place place = place_at(page, i);
        json_t *visitor = json_pack(
            "{s:I, s:s, s:o}", "position", (json_int_t)from + (json_int_t)(i / 2), "visitor",
            tl_reply_text(page, i), "joined_at", tl_call_time(tl_joined_at(joined, place)));
        if (visitor == NULL || !tl_place_to_json(visitor, settings, place) ||
            json_array_append(list, visitor) != 0) {
            json_decref(list);
            list = NULL;
        }
        json_decref(visitor);
    }
    return list;
}

void tl_handle_line(struct tl_control_call *call)
{
    struct tl_error err = {0};
    struct tl_queue_settings settings;
    struct tl_state state;
    uint64_t from = 1;
    uint64_t limit = LIMIT;
    if (!tl_call_number(call, "from", 1, POSITION_MAX, &from) ||
        !tl_call_number(call, "limit", 1, LIMIT_MAX, &limit))
        return;
    struct tl_reply *page = NULL;
    if (tl_queue_load(call->redis, &call->keys, &settings, &err) &&
        tl_state_read(call->redis, &call->keys, TL_STATE_SIZES, &state, &err)) {
        struct tl_args args = {0};
        tl_args_strs(&args, "ZRANGE", call->keys.names[TL_KEY_WAITING], NULL);
        tl_args_uint(&args, from - 1);
        tl_args_uint(&args, from + limit - 2);
        tl_args_str(&args, "WITHSCORES");
        page = tl_redis_once(call->redis, &args, &err);
    }
    struct tl_joined joined = {0};
    for (size_t i = 0; i + 1 < tl_reply_count(page); i += 2)
        tl_joined_want(&joined, place_at(page, i));
    if (page == NULL || !tl_joined_read(&joined, call->control, &call->keys, &err)) {
        tl_call_fail(call, &err);
        tl_joined_clear(&joined);
        tl_reply_free(page);
        return;
    }
    json_t *list = list_of(page, &settings, &joined, from);
    tl_joined_clear(&joined);
    uint64_t next = from + tl_reply_count(page) / 2;
    tl_call_answer(call, 200,
                   json_pack("{s:s, s:I, s:o, s:o}", "queue", call->keys.queue, "waiting",
                             (json_int_t)state.waiting, "visitors", list, "next",
                             next <= state.waiting && next > from ? json_integer((json_int_t)next)
                                                                  : json_null()));
    tl_reply_free(page);
}
