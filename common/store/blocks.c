/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/blocks.h"
#include "common/store/keys.h"
#include "common/store/records.h"
#include "common/store/reply.h"

bool tl_blocks_version(struct tl_redis *redis, const char *key_prefix, uint64_t *version,
                       struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct tl_reply *reply = tl_ask(
        redis, err, "HGET", tl_key_common(key_prefix, TL_COMMON_BLOCKS, key), "version", NULL);
    if (reply == NULL)
        return false;
    *version = (uint64_t)tl_reply_integer(reply);
    tl_reply_free(reply);
    return true;
}

bool tl_block_parse(const char *prefix, const char *queue, struct tl_block *block,
                    struct tl_error *err)
{
    *block = (struct tl_block){0};
    if (!tl_prefix_parse(prefix, &block->prefix, err))
        return false;
    if (queue[0] != '\0' && !tl_queue_name_valid(queue, strlen(queue)))
        return tl_error_set(err, TL_ERR_INVALID, "that is not a valid queue name");
    snprintf(block->queue, sizeof(block->queue), "%s", queue);
    return true;
}

void tl_block_format(const struct tl_block *block, char text[TL_BLOCK_TEXT_MAX])
{
    char prefix[TL_PREFIX_TEXT_MAX];
    tl_prefix_format(&block->prefix, prefix);
    snprintf(text, TL_BLOCK_TEXT_MAX, "%s%s%s", prefix, block->queue[0] != '\0' ? " " : "",
             block->queue);
}

/* An entry of the table: "PREFIX" or "PREFIX QUEUE", and when it ends. */
static bool read_block(const char *text, const char *until, struct tl_block *block)
{
    char copy[TL_BLOCK_TEXT_MAX];
    uint64_t ms;
    if (strlen(text) >= sizeof(copy) || !tl_record_score(until, &ms))
        return false;
    memcpy(copy, text, strlen(text) + 1);
    char *space = strchr(copy, ' ');
    if (space != NULL)
        *space = '\0';
    if (!tl_block_parse(copy, space != NULL ? space + 1 : "", block, NULL))
        return false;
    block->until_ms = (int64_t)ms;
    return true;
}

static int compare(const void *a, const void *b)
{
    const struct tl_block *one = a;
    const struct tl_block *other = b;
    int order = (int)other->prefix.bits - (int)one->prefix.bits;
    if (order == 0)
        order = memcmp(&one->prefix, &other->prefix, sizeof(one->prefix));
    return order != 0 ? order : strcmp(one->queue, other->queue);
}

struct tl_blocks *tl_blocks_read(struct tl_redis *redis, const char *key_prefix,
                                 struct tl_error *err)
{
    char key[TL_KEY_MAX];
    struct tl_reply *reply =
        tl_ask(redis, err, "HGETALL", tl_key_common(key_prefix, TL_COMMON_BLOCKS, key), NULL);
    if (reply == NULL)
        return NULL;
    size_t most = tl_reply_count(reply) / 2;
    if (most > TL_BLOCKS_MAX + 1) /* with `version`; more were written by hand */
        most = TL_BLOCKS_MAX + 1;
    struct tl_blocks *blocks = calloc(1, sizeof(*blocks) + most * sizeof(blocks->list[0]));
    for (size_t i = 0; blocks != NULL && i < most; i++) {
        const char *text = tl_reply_text(reply, 2 * i);
        const char *until = tl_reply_text(reply, 2 * i + 1);
        if (read_block(text, until, &blocks->list[blocks->n]))
            blocks->n++;
    }
    tl_reply_free(reply);
    if (blocks == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for %zu blocks", most);
    else
        qsort(blocks->list, blocks->n, sizeof(blocks->list[0]), compare);
    return blocks;
}

const struct tl_block *tl_blocks_find(const struct tl_blocks *blocks,
                                      const struct tl_address *address, const char *queue,
                                      int64_t store_ms)
{
    for (size_t i = 0; blocks != NULL && i < blocks->n; i++) {
        const struct tl_block *block = &blocks->list[i];
        if (tl_prefix_contains(&block->prefix, address) &&
            (block->queue[0] == '\0' || strcmp(block->queue, queue) == 0) &&
            (block->until_ms == 0 || block->until_ms > store_ms))
            return block;
    }
    return NULL;
}
