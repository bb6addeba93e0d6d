/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archiver/entries.h"

struct tl_reply *tl_entries_after(const struct tl_held_queue *held, enum tl_key stream,
                                  const char *id, const char *most, struct tl_error *err)
{
    char key[TL_KEY_MAX], after[TL_ENTRY_ID_MAX + 1];
    snprintf(after, sizeof(after), "(%s", id);
    return tl_ask(held->redis, err, "XRANGE", tl_key(&held->keys, stream, key), after, "+", "COUNT",
                  most, NULL);
}

bool tl_entries_drop(const struct tl_held_queue *held, const char *id, struct tl_error *err)
{
    char key[TL_KEY_MAX], past[TL_ENTRY_ID_MAX + 8];
    const char *dash = strchr(id, '-');
    if (dash == NULL)
        return true;
    snprintf(past, sizeof(past), "%.*s-%llu", (int)(dash - id), id,
             strtoull(dash + 1, NULL, 10) + 1);
    struct tl_reply *reply =
        tl_ask(held->redis, err, "XTRIM", tl_key(&held->keys, TL_KEY_RECORD, key), "MINID", "=",
               past, NULL);
    tl_reply_free(reply);
    return reply != NULL;
}

bool tl_entries_queue_exists(const struct tl_held_queue *held, bool *is_there, struct tl_error *err)
{
    struct tl_reply *reply =
        tl_ask(held->redis, err, "EXISTS", held->keys.names[TL_KEY_STATE], NULL);
    *is_there = tl_reply_integer(reply) == 1;
    tl_reply_free(reply);
    return reply != NULL;
}
