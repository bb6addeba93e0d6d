/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/store/queue.h"
#include "common/store/reply.h"
#include "common/store/turns_state.h"

bool tl_turns_read(struct tl_redis *redis, const struct tl_keys *keys, struct tl_turns_state *turns,
                   struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_strs(&args, "HMGET", keys->names[TL_KEY_STATE], "generation", "event", "turns", NULL);
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    bool exists = tl_reply_signed(reply, 0) != 0;
    turns->event = tl_reply_number(reply, 1);
    snprintf(turns->field, sizeof(turns->field), "%s", tl_reply_text(reply, 2));
    tl_reply_free(reply);
    return exists || tl_queue_fail_missing(keys, err);
}
