/* SPDX-License-Identifier: Apache-2.0 */
#include "common/control/deletion.h"
#include "common/store/library.h"
#include "common/store/reply.h"

/* Takes the queue off the list. *listed: it was on it. */
static bool unlist(struct tl_redis *redis, const char *key_prefix, const char *queue,
                   const char *generation, const struct tl_actor *actor, bool *listed,
                   struct tl_error *err)
{
    char queues[TL_KEY_MAX];
    char changes[TL_KEY_MAX];
    struct tl_args args = {0};
    tl_call_begin_on(&args, TL_FN_UNLIST_QUEUE, 2);
    tl_args_strs(&args, tl_key_common(key_prefix, TL_COMMON_QUEUES, queues),
                 tl_key_common(key_prefix, TL_COMMON_CHANGES, changes), queue, generation, NULL);
    tl_actor_append(actor, &args);
    struct tl_reply *reply = tl_call_once(redis, &args, err);
    if (reply == NULL)
        return false;
    *listed = tl_reply_integer(reply) == 1;
    tl_reply_free(reply);
    return true;
}

static bool is_listed(struct tl_redis *redis, const char *key_prefix, const char *queue,
                      bool *listed, struct tl_error *err)
{
    char queues[TL_KEY_MAX];
    struct tl_reply *reply = tl_ask(
        redis, err, "SISMEMBER", tl_key_common(key_prefix, TL_COMMON_QUEUES, queues), queue, NULL);
    *listed = tl_reply_integer(reply) == 1;
    tl_reply_free(reply);
    return reply != NULL;
}

bool tl_queue_delete(struct tl_redis *redis, struct tl_redis *none, const char *key_prefix,
                     const struct tl_keys *keys, int64_t kept_ms, const struct tl_actor *actor,
                     bool *existed, struct tl_error *err)
{
    struct tl_args args = {0};
    bool listed = false;
    if (!is_listed(none, key_prefix, keys->queue, &listed, err))
        return false;
    tl_call_begin(&args, TL_FN_DELETE, keys);
    tl_args_int(&args, kept_ms);
    tl_args_str(&args, listed ? "1" : "0");
    tl_actor_append(actor, &args);
    struct tl_reply *reply = tl_call_once(redis, &args, err);
    if (reply == NULL)
        return false;
    bool ok = unlist(none, key_prefix, keys->queue, tl_reply_text(reply, 1), actor, &listed, err);
    *existed = tl_reply_signed(reply, 0) == 1 || listed;
    tl_reply_free(reply);
    return ok;
}
