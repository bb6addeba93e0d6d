/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "common/store/library.h"
#include "common/store/mend.h"
#include "common/store/queue.h"
#include "common/store/reply.h"

/* Returns { what was mended, what is wrong }. */
static struct tl_reply *run(struct tl_redis *redis, const struct tl_keys *keys, const char *how,
                            const struct tl_queue_settings *settings, const struct tl_actor *actor,
                            struct tl_error *err)
{
    struct tl_args args = {0};
    tl_call_begin(&args, TL_FN_MEND, keys);
    tl_args_strs(&args, how, TL_EVENTS_KEPT, NULL);
    if (settings != NULL)
        tl_queue_append_settings(settings, &args);
    tl_actor_append(actor, &args);
    return tl_call_once(redis, &args, err);
}

bool tl_queue_examine(struct tl_redis *redis, const struct tl_keys *keys, char wrong[320],
                      struct tl_error *err)
{
    struct tl_reply *reply = run(redis, keys, "look", NULL, &(struct tl_actor){0}, err);
    if (reply == NULL)
        return false;
    snprintf(wrong, 320, "%s", tl_reply_text(reply, 1));
    tl_reply_free(reply);
    return true;
}

bool tl_queue_set_aside(struct tl_troubles *troubles, struct tl_redis *redis,
                        const struct tl_keys *keys, const struct tl_mend_offer *offer,
                        struct tl_error *err, int64_t now_ms)
{
    struct tl_error problem = {0};
    struct tl_reply *reply = run(redis, keys, offer->from_memory ? "memory" : "file",
                                 offer->settings, offer->actor, &problem);
    const char *mended = tl_reply_text(reply, 0);
    const char *wrong = tl_reply_text(reply, 1);
    if (wrong[0] != '\0' || mended[0] != '\0')
        tl_error_set(err, TL_ERR_STORE, "%s", wrong[0] != '\0' ? wrong : mended);
    /* A worker's own user of the store may not mend: the other programs do. */
    bool is_absent =
        err->kind == TL_ERR_NOQUEUE && (reply != NULL || problem.kind == TL_ERR_DENIED);
    tl_reply_free(reply);
    if (is_absent)
        return false;
    tl_troubles_note(troubles, keys->queue, err, now_ms);
    return true;
}
