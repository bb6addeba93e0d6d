/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/net.h"
#include "common/control/call.h"
#include "common/store/blocks.h"

/* Wider prefixes would block half of the world by one typing error. */
enum { LEAST_BITS_IPV4 = 96 + 8, LEAST_BITS_IPV6 = 16 };

/* Calls block.lua. *done gets its answer. */
static bool change(struct tl_control_call *call, const char *what, const struct tl_block *block,
                   int64_t for_ms, bool *done)
{
    const char *prefix = call->config->redis.key_prefix;
    char blocks[TL_KEY_MAX];
    char changes[TL_KEY_MAX];
    char entry[TL_BLOCK_TEXT_MAX];
    struct tl_args args = {0};
    tl_block_format(block, entry);
    tl_call_begin_on(&args, TL_FN_BLOCK, 2);
    tl_args_strs(&args, tl_key_common(prefix, TL_COMMON_BLOCKS, blocks),
                 tl_key_common(prefix, TL_COMMON_CHANGES, changes), what, entry, NULL);
    tl_args_int(&args, for_ms);
    tl_actor_append(call->request->actor, &args);
    struct tl_reply *reply = tl_call_once(call->redis, &args, &call->err);
    if (reply == NULL && call->err.kind == TL_ERR_STORE &&
        strstr(call->err.text, "blocks already") != NULL)
        return tl_call_refuse(call, TL_REFUSAL_LIMIT, "%s", call->err.text);
    *done = tl_reply_integer(reply) == 1;
    tl_reply_free(reply);
    return reply != NULL;
}

static json_t *queue_of(const struct tl_block *block)
{
    return block->queue[0] != '\0' ? json_string(block->queue) : json_null();
}

/* for_s: for how long it is blocked, -1 without an end; NULL: no such member. NULL: out of memory.
 */
static json_t *describe(const struct tl_block *block, const int64_t *for_s)
{
    char prefix[TL_PREFIX_TEXT_MAX];
    tl_prefix_format(&block->prefix, prefix);
    json_t *seconds = for_s == NULL ? NULL
                      : *for_s > 0  ? json_integer((json_int_t)*for_s)
                                    : json_null();
    return json_pack("{s:s, s:o, s:o*}", "prefix", prefix, "queue", queue_of(block), "for_seconds",
                     seconds);
}

static int by_id(const void *a, const void *b)
{
    char id[TL_BLOCK_TEXT_MAX];
    char other[TL_BLOCK_TEXT_MAX];
    tl_block_format(a, id);
    tl_block_format(b, other);
    return strcmp(id, other);
}

json_t *tl_handle_block_list(struct tl_control_call *call)
{
    struct tl_list_page page;
    struct tl_blocks *blocks = NULL;
    int64_t now_us;
    if (!tl_list_page_read(call, &page))
        return NULL;
    if (tl_redis_time(call->redis, &now_us, &call->err))
        blocks = tl_blocks_read(call->redis, call->config->redis.key_prefix, &call->err);
    if (blocks == NULL)
        return NULL;
    qsort(blocks->list, blocks->n, sizeof(blocks->list[0]), by_id);
    json_t *list = json_array();
    for (size_t i = 0; i < blocks->n; i++) {
        char id[TL_BLOCK_TEXT_MAX];
        const struct tl_block *block = &blocks->list[i];
        tl_block_format(block, id);
        if ((block->until_ms != 0 && block->until_ms <= now_us / 1000) ||
            !tl_list_page_takes(&page, id))
            continue;
        json_t *row = describe(block, NULL);
        tl_object_set(&row, "id", json_string(id));
        tl_object_set(&row, "until", tl_call_time(block->until_ms));
        tl_list_add(&list, row);
    }
    free(blocks);
    return tl_list_page_to_json(&page, true, "blocks", list);
}

/* A queue that is not there would be blocked without effect, by a slip of the keyboard. */
static bool queue_exists(struct tl_control_call *call, const char *queue)
{
    bool exists = queue[0] == '\0';
    if (!exists && !tl_queue_listed(call->control, queue, &exists, &call->err))
        return false;
    return exists || tl_call_refuse(call, TL_REFUSAL_NO_QUEUE, "queue %s does not exist", queue);
}

/* Visitors have the addresses that a trusted proxy says. What has its own address are requests of
 * the proxy itself, and of visitors whose address it does not pass on: all of them. */
static bool is_of_visitors(struct tl_control_call *call, const struct tl_prefix *prefix)
{
    struct tl_networks *proxies = tl_networks_parse(call->config->http.trusted_proxies, &call->err);
    if (proxies == NULL)
        return false;
    bool is_proxy = tl_networks_overlap(proxies, prefix);
    tl_networks_free(&proxies);
    return !is_proxy || tl_call_refuse(call, TL_REFUSAL_INVALID,
                                       "the prefix has addresses of http.trusted_proxies: no "
                                       "visitor has one of "
                                       "these, unless a proxy does not pass on "
                                       "X-Forwarded-For, and then all "
                                       "have it");
}

json_t *tl_handle_block_create(struct tl_control_call *call)
{
    struct tl_block block;
    const char *prefix = NULL;
    const char *queue = "";
    int64_t for_s = -1;
    bool done;
    if (!tl_call_body(call, "prefix", &prefix, "queue?", &queue, "for_seconds#", &for_s, NULL) ||
        !tl_block_parse(prefix, queue, &block, &call->err))
        return NULL;
    if (for_s == 0)
        return tl_call_refuse(call, TL_REFUSAL_BAD_BODY, "\"for_seconds\" is at least 1");
    bool v4 = tl_address_is_ipv4(&block.prefix.address);
    if (block.prefix.bits < (v4 ? LEAST_BITS_IPV4 : LEAST_BITS_IPV6))
        return tl_call_refuse(call, TL_REFUSAL_INVALID,
                              "the prefix is too wide: at least /%d for IPv4, /%d for IPv6",
                              LEAST_BITS_IPV4 - 96, LEAST_BITS_IPV6);
    if (!is_of_visitors(call, &block.prefix) || !queue_exists(call, block.queue) ||
        !change(call, "block", &block, for_s > 0 ? 1000 * for_s : 0, &done))
        return NULL;
    call->status = 201;
    return describe(&block, &for_s);
}

json_t *tl_handle_block_delete(struct tl_control_call *call)
{
    struct tl_block block;
    bool done = false;
    const char *prefix = tl_target_parameter(&call->target, "prefix");
    const char *queue = tl_target_parameter(&call->target, "queue");
    if (prefix == NULL)
        return tl_call_refuse(call, TL_REFUSAL_BAD_QUERY, "the query needs ?prefix=");
    if (!tl_block_parse(prefix, queue != NULL ? queue : "", &block, &call->err) ||
        !change(call, "unblock", &block, 0, &done))
        return NULL;
    return done ? describe(&block, NULL)
                : tl_call_refuse(call, TL_REFUSAL_NOT_FOUND, "this prefix was not blocked there");
}
