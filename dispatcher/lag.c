/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatcher/lag.h"
#include "common/store/reply.h"
#include "generated/dispatcher_scripts.h"

bool tl_lag_add(struct tl_lag *lag, struct tl_redis *redis, struct tl_script *script,
                const struct tl_keys *keys, struct tl_args *args, struct tl_error *err)
{
    script->source = tl_script_lag;
    script->read_only = true;
    if (!tl_script_begin(redis, script, args, err))
        return false;
    tl_keys_append(keys, args);
    struct tl_reply *reply = tl_script_call(redis, script, args, err);
    if (reply == NULL)
        return false;
    int64_t age_ms = tl_reply_integer(tl_reply_at(reply, 1));
    lag->entries += tl_reply_integer(tl_reply_at(reply, 0));
    lag->age_ms = age_ms > lag->age_ms ? age_ms : lag->age_ms;
    tl_reply_free(reply);
    return true;
}
