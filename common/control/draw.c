/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <sodium.h>

#include "common/auth/draw.h"
#include "common/control/call.h"
#include "common/store/state.h"

#define RANK_MAX (UINT64_C(1) << 40)

static const char *const phase_words[] = {
    [TL_DRAW_NONE] = "none",
    [TL_DRAW_CUT] = "cut",
    [TL_DRAW_DRAWING] = "drawing",
    [TL_DRAW_DONE] = "done",
};

/* The draw ids behind this rank: tl:{q}:drawn has 16 bytes that are no id before them. */
static json_t *read_ids(struct tl_control_call *call, uint64_t after, uint64_t limit)
{
    char key[TL_KEY_MAX];
    char hex[2 * TL_DRAW_ID_BYTES + 1];
    size_t length;
    struct tl_args args = {0};
    tl_args_strs(&args, "GETRANGE", tl_key(&call->keys, TL_KEY_DRAWN, key), NULL);
    tl_args_uint(&args, (after + 1) * TL_DRAW_ID_BYTES);
    tl_args_uint(&args, (after + 1 + limit) * TL_DRAW_ID_BYTES - 1);
    struct tl_reply *reply = tl_redis_once(call->redis, &args, &call->err);
    if (reply == NULL)
        return NULL;
    const char *bytes = tl_reply_string(reply, &length);
    json_t *list = json_array();
    for (size_t i = 0; i + TL_DRAW_ID_BYTES <= length; i += TL_DRAW_ID_BYTES) {
        sodium_bin2hex(hex, sizeof(hex), (const unsigned char *)bytes + i, TL_DRAW_ID_BYTES);
        tl_list_add(&list, json_string(hex));
    }
    tl_reply_free(reply);
    return list;
}

json_t *tl_handle_draw_get(struct tl_control_call *call)
{
    struct tl_queue_settings settings;
    struct tl_state state;
    const struct tl_draw_record *draw = &state.recovery.draw;
    struct tl_list_page page;
    uint64_t after = 0;
    if (!tl_list_page_read(call, &page) ||
        !tl_call_number(call, "starting_after", 0, RANK_MAX, &after) ||
        !tl_queue_load(call->redis, &call->keys, &settings, &call->err) ||
        !tl_state_read(call->redis, &call->keys, TL_STATE_DRAW, &state, &call->err))
        return NULL;
    bool is_done = draw->phase == TL_DRAW_DONE;
    json_t *ids = is_done ? read_ids(call, after, page.limit) : json_array();
    if (ids == NULL)
        return NULL;
    size_t n = json_array_size(ids);
    bool has_more = n == page.limit && after + n < draw->drawn;
    bool is_announced = draw->announced_for_ms != 0 && (is_done || settings.order == TL_ORDER_DRAW);
    return json_pack("{s:s, s:s, s:o, s:s, s:I, s:o, s:o, s:o, s:b}", "queue", call->keys.queue,
                     "order", settings.order == TL_ORDER_DRAW ? "draw" : "arrival", "opens_at",
                     tl_call_time(is_done ? draw->opens_at_ms : settings.opens_at_ms), "phase",
                     phase_words[draw->phase], "drawn", (json_int_t)(is_done ? draw->drawn : 0),
                     "hash", is_announced ? json_string(draw->hash) : json_null(), "seed",
                     is_done ? json_string(draw->seed) : json_null(), "ids", ids, "has_more",
                     has_more);
}

json_t *tl_handle_draw_set(struct tl_control_call *call)
{
    const char *opens_at = NULL;
    if (!tl_call_body(call, "opens_at?", &opens_at, NULL))
        return NULL;
    const struct tl_queue_change list[] = {{.name = "order", .value = "draw"},
                                           {.name = "opens_at", .value = opens_at}};
    const struct tl_queue_changes changes = {.list = list, .n = opens_at != NULL ? 2 : 1};
    return tl_resource_change(call, &changes);
}
