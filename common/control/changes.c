/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/control/call.h"
#include "common/control/changes.h"
#include "common/control/settings_json.h"
#include "common/store/changes.h"

enum { LIMIT = 100 };

static bool add(void *context, const struct tl_changes_entry *change, struct tl_error *err)
{
    json_t *list = context;
    json_t *entry =
        json_pack("{s:s, s:o, s:o, s:s, s:s, s:s, s:o, s:o}", "id", change->id, "queue",
                  change->queue[0] != '\0' ? json_string(change->queue) : json_null(), "at",
                  tl_call_time(change->at_ms), "who", change->who, "from", change->from, "what",
                  change->what, "before", tl_settings_record_to_json(change->before), "after",
                  tl_settings_record_to_json(change->after));
    return json_array_append_new(list, entry) == 0 ||
           tl_error_set(err, TL_ERR_NOMEM, "no memory for the changes");
}

void tl_handle_changes(struct tl_control_call *call)
{
    struct tl_error err = {0};
    struct tl_keys keys;
    uint64_t limit = LIMIT;
    const char *queue = tl_target_parameter(&call->target, "queue");
    if (!tl_call_number(call, "limit", 1, TL_CHANGES_LIMIT_MAX, &limit))
        return;
    if (queue != NULL && !tl_call_keys(call->control, queue, &keys, &err)) {
        tl_call_fail(call, &err);
        return;
    }
    const struct tl_changes_query query = {.queue = queue,
                                           .before = tl_target_parameter(&call->target, "before"),
                                           .limit = (size_t)limit};
    json_t *list = json_array();
    if (list != NULL && tl_changes_read(call->redis, call->control->config->redis.key_prefix,
                                        &query, add, list, &err)) {
        const json_t *last = json_array_get(list, json_array_size(list) - 1);
        bool more = json_array_size(list) == limit;
        json_t *before = json_object_get(last, "id");
        tl_call_answer(call, 200,
                       json_pack("{s:o, s:O?}", "changes", list, "next", more ? before : NULL));
        return;
    }
    json_decref(list);
    if (list == NULL)
        tl_call_answer(call, 500, NULL);
    else
        tl_call_fail(call, &err);
}
