/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/recovery.h"
#include "common/store/library.h"
#include "common/store/queue.h"
#include "common/store/reply.h"

bool tl_recovery_read(struct tl_redis *redis, const struct tl_keys *keys,
                      struct tl_recovery *recovery, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_strs(&args, "HMGET", keys->names[TL_KEY_STATE], "generation", "lost_generation",
                 "recover_until", "lost_size", "restored", "draw", "draw_hash", "draw_seed",
                 "full_since", NULL);
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    *recovery = (struct tl_recovery){
        .present = tl_reply_number(reply, 0),
        .lost_generation = tl_reply_number(reply, 1),
        .until_ms = tl_reply_signed(reply, 2),
        .lost_size = tl_reply_number(reply, 3),
        .restored = tl_reply_number(reply, 4),
        .full_since_ms = tl_reply_signed(reply, 8),
    };
    tl_draw_record_parse(tl_reply_text(reply, 5), tl_reply_text(reply, 6), tl_reply_text(reply, 7),
                         &recovery->draw);
    tl_reply_free(reply);
    return recovery->present != 0 || tl_queue_fail_missing(keys, err);
}

bool tl_recovery_end_in(struct tl_redis *redis, const struct tl_keys *keys, int64_t ms,
                        const struct tl_actor *actor, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_call_begin(&args, TL_FN_RECOVER, keys);
    tl_args_str(&args, TL_EVENTS_KEPT);
    tl_args_int(&args, ms);
    tl_actor_append(actor, &args);
    return tl_call_do(redis, &args, err);
}
