/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatcher/lag.h"
#include "common/store/library.h"
#include "common/store/reply.h"

bool tl_lag_add(struct tl_lag *lag, struct tl_redis *redis, const struct tl_keys *keys,
                struct tl_args *args, struct tl_error *err)
{
    tl_call_begin_read(args, TL_FN_LAG, keys);
    struct tl_reply *reply = tl_call(redis, args, err);
    if (reply == NULL)
        return false;
    int64_t age_ms = tl_reply_integer(tl_reply_at(reply, 1));
    lag->entries += tl_reply_integer(tl_reply_at(reply, 0));
    lag->age_ms = age_ms > lag->age_ms ? age_ms : lag->age_ms;
    tl_reply_free(reply);
    return true;
}
