/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/reply.h"
#include "worker/feed/change.h"

bool tl_change_post(struct tl_mailbox *changes, const char *queue, const struct tl_change *change,
                    struct tl_error *err)
{
    const bool settings = change->settings != NULL;
    const void *bytes = settings ? change->settings : change->bytes;
    const size_t length = settings ? sizeof(*change->settings) : change->length;
    struct tl_change *copy = malloc(sizeof(*copy) + length);
    if (copy == NULL) {
        struct tl_line *line = change->line;
        tl_line_free(&line);
        free(change->blocks);
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a change in the store");
    }
    *copy = *change;
    snprintf(copy->queue, sizeof(copy->queue), "%s", queue);
    if (bytes != NULL)
        copy->bytes = memcpy(copy + 1, bytes, length);
    if (settings)
        copy->settings = copy->bytes;
    tl_mailbox_put(changes, &copy->message, sizeof(*copy) + length);
    return true;
}

void tl_change_free(struct tl_change *change)
{
    tl_line_free(&change->line);
    free(change->blocks);
    free(change);
}

bool tl_change_read_state(struct tl_mailbox *changes, struct tl_redis *redis,
                          const struct tl_keys *keys, enum tl_change_kind kind,
                          struct tl_error *err)
{
    const bool turns = kind == TL_CHANGE_TURNS;
    struct tl_state state;
    struct tl_change change = {.kind = kind};
    if (!tl_state_read(redis, keys, turns ? TL_STATE_TURNS : TL_STATE_RECOVERY, &state, err))
        return false;
    if (turns)
        change.turns = state.turns;
    else
        change.recovery = state.recovery;
    return tl_change_post(changes, keys->queue, &change, err);
}

bool tl_change_read_notice(struct tl_mailbox *changes, struct tl_redis *redis,
                           const struct tl_keys *keys, struct tl_error *err)
{
    struct tl_change change = {.kind = TL_CHANGE_NOTICE};
    struct tl_reply *reply = tl_ask(redis, err, "HGET", keys->names[TL_KEY_STATE], "notice", NULL);
    change.bytes = tl_reply_string(reply, &change.length);
    bool ok = reply != NULL && tl_change_post(changes, keys->queue, &change, err);
    tl_reply_free(reply);
    return ok;
}
