/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/base/units.h"
#include "common/config/mode.h"
#include "common/control/call.h"
#include "common/wire/notice_text.h"

static void set_mode(struct tl_control_call *call, enum tl_queue_mode mode)
{
    const struct tl_queue_change change = {.name = "mode", .value = tl_mode_name(mode)};
    const struct tl_queue_changes changes = {.list = &change, .n = 1};
    struct tl_changes_made made = {0};
    if (tl_call_members(call, NULL, NULL) && tl_resource_change(call, &changes, &made))
        tl_resource_answer(call, 200, &made);
    /* The values are sound, so what refuses is the mode it has now. */
    if (call->answer->status == 422)
        tl_control_problem(call->answer, 409, "%s",
                           json_string_value(json_object_get(call->answer->body, "detail")));
    tl_changes_made_free(&made);
}

void tl_handle_open(struct tl_control_call *call)
{
    set_mode(call, TL_MODE_OPEN);
}

void tl_handle_pause(struct tl_control_call *call)
{
    set_mode(call, TL_MODE_PAUSED);
}

void tl_handle_drain(struct tl_control_call *call)
{
    set_mode(call, TL_MODE_DRAINING);
}

void tl_handle_close(struct tl_control_call *call)
{
    set_mode(call, TL_MODE_CLOSED);
}

void tl_handle_sell_out(struct tl_control_call *call)
{
    set_mode(call, TL_MODE_SOLD_OUT);
}

void tl_handle_passthrough(struct tl_control_call *call)
{
    set_mode(call, TL_MODE_PASSTHROUGH);
}

/* Sets the notice: one text, or those of the languages. */
static void set_notice(struct tl_control_call *call, const char *notice)
{
    struct tl_error err = {0};
    json_t *body;
    if (!tl_queue_notice(call->redis, &call->keys, notice, call->request->actor, &err)) {
        if (err.kind == TL_ERR_INVALID)
            tl_call_refuse(call, 422, "%s", err.text);
        else
            tl_call_fail(call, &err);
        return;
    }
    body = json_pack("{s:s}", "queue", call->keys.queue);
    if (body != NULL && !tl_notice_to_json(body, notice, strlen(notice))) {
        json_decref(body);
        body = NULL;
    }
    tl_call_answer(call, 200, body);
}

void tl_handle_notice(struct tl_control_call *call)
{
    struct tl_error err = {0};
    struct tl_text notice = {0};
    const char *text = NULL;
    const json_t *texts = json_object_get(call->request->body, "texts");
    if (!tl_call_members(call, "text", "texts", NULL) ||
        !tl_call_text(call, "text", texts == NULL, &text))
        return;
    if (text != NULL && texts != NULL)
        tl_call_refuse(call, 400, "give text or texts, not both");
    else if (text != NULL && tl_notice_is_several(text))
        tl_call_refuse(call, 422, "text: a notice without the character U+001E");
    else if (text != NULL)
        set_notice(call, text);
    else if (!tl_notice_of_json(texts, &notice, &err))
        tl_call_refuse(call, 422, "%s", err.text);
    else if (notice.failed)
        tl_call_answer(call, 500, NULL);
    else
        set_notice(call, notice.data);
    tl_text_free(&notice);
}

/* How long no one is admitted from now on, ms; 0: the recovery ends. */
static bool read_wait(struct tl_control_call *call, int64_t *wait_ms)
{
    const json_t *now = json_object_get(call->request->body, "now");
    const char *wait = NULL;
    struct tl_error err = {0};
    if (!tl_call_members(call, "now", "wait", NULL) || !tl_call_text(call, "wait", false, &wait))
        return false;
    if (json_is_true(now) == (wait != NULL))
        return tl_call_refuse(call, 400,
                              "the body needs one of \"now\": true and \"wait\": \"90s\"");
    *wait_ms = 0;
    if (wait == NULL || (tl_duration_parse(wait, wait_ms, &err) && *wait_ms > 0))
        return true;
    return tl_call_refuse(call, 422, "wait: %s", err.text[0] != '\0' ? err.text : "a time above 0");
}

void tl_handle_recover(struct tl_control_call *call)
{
    struct tl_error err = {0};
    struct tl_state state;
    int64_t wait_ms = 0;
    if (!read_wait(call, &wait_ms))
        return;
    if (!tl_state_read(call->redis, &call->keys, TL_STATE_RECOVERY, &state, &err) ||
        !tl_recovery_end_in(call->redis, &call->keys, wait_ms, call->request->actor, &err)) {
        tl_call_fail(call, &err);
        return;
    }
    tl_call_answer(call, 200,
                   json_pack("{s:s, s:b, s:I, s:I}", "queue", call->keys.queue, "was_recovering",
                             state.recovery.until_ms != 0, "restored",
                             (json_int_t)state.recovery.restored, "wait_ms", (json_int_t)wait_ms));
}
