/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/config/mode.h"
#include "common/control/call.h"
#include "common/wire/notice_text.h"

json_t *tl_handle_mode(struct tl_control_call *call)
{
    const struct tl_queue_change change = {.name = "mode",
                                           .value = tl_mode_name(call->route->mode)};
    const struct tl_queue_changes changes = {.list = &change, .n = 1};
    json_t *body = tl_call_body(call, NULL) ? tl_resource_change(call, &changes) : NULL;
    /* The values are sound, so what refuses is the mode it has now. */
    if (body == NULL && call->answer->status == 0 && call->err.kind == TL_ERR_INVALID)
        tl_call_refuse(call, TL_REFUSAL_CONFLICT, "%s", call->err.text);
    return body;
}

/* Sets the notice: one text, or those of the languages. */
static json_t *set_notice(struct tl_control_call *call, const char *notice)
{
    if (!tl_queue_notice(call->redis, &call->keys, notice, call->request->actor, &call->err))
        return NULL;
    json_t *body = json_pack("{s:s}", "queue", call->keys.queue);
    tl_notice_to_json(&body, notice, strlen(notice));
    return body;
}

json_t *tl_handle_notice(struct tl_control_call *call)
{
    struct tl_text notice = {0};
    const char *text = NULL;
    const json_t *texts = NULL;
    json_t *body = NULL;
    if (!tl_call_body(call, "text?", &text, "texts*", &texts, NULL))
        return NULL;
    if (text == NULL && texts == NULL)
        return tl_call_refuse(call, TL_REFUSAL_BAD_BODY, "the body needs a text \"text\"");
    if (text != NULL && texts != NULL)
        return tl_call_refuse(call, TL_REFUSAL_BAD_BODY, "give text or texts, not both");
    if (text != NULL && tl_notice_is_several(text))
        return tl_call_refuse(call, TL_REFUSAL_INVALID,
                              "text: a notice without the character U+001E");
    if (text != NULL)
        return set_notice(call, text);
    if (tl_notice_of_json(texts, &notice, &call->err) && !notice.failed)
        body = set_notice(call, notice.data);
    tl_text_free(&notice);
    return body;
}

json_t *tl_handle_recover(struct tl_control_call *call)
{
    struct tl_state state = {0};
    int64_t wait_s = -1;
    if (!tl_call_body(call, "wait_seconds#", &wait_s, NULL))
        return NULL;
    if (wait_s < 0)
        return tl_call_refuse(call, TL_REFUSAL_BAD_BODY,
                              "the body needs \"wait_seconds\"; 0 ends the recovery");
    /* Where the state is missing, a part of the queue may be there, which goes on then. */
    if ((!tl_state_read(call->redis, &call->keys, TL_STATE_RECOVERY, &state, &call->err) &&
         call->err.kind != TL_ERR_NOQUEUE) ||
        !tl_recovery_end_in(call->redis, &call->keys, 1000 * wait_s, call->request->actor,
                            &call->err))
        return NULL;
    return json_pack("{s:s, s:b, s:I, s:I}", "queue", call->keys.queue, "was_recovering",
                     state.recovery.until_ms != 0, "restored", (json_int_t)state.recovery.restored,
                     "wait_seconds", (json_int_t)wait_s);
}
