#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/base/units.h"
#include "common/store/blocks.h"
#include "common/store/keys.h"
#include "common/store/reply.h"

#include "ctl/command.h"
#include "ctl/json.h"
#include "ctl/session.h"
#include "ctl/table.h"
#include "generated/control_scripts.h"

/* Wider prefixes would block half of the world by one typing error. */
enum { LEAST_BITS_IPV4 = 96 + 8, LEAST_BITS_IPV6 = 16 };

/* Calls block.lua. *done gets its answer. */
static bool change(struct tl_ctl_session *session, const char *what, const struct tl_block *block,
                   int64_t for_ms, bool *done, struct tl_error *err)
{
    char key[TL_KEY_MAX];
    char changes[TL_KEY_MAX];
    char entry[TL_BLOCK_TEXT_MAX];
    struct tl_args args = {0};
    struct tl_redis *redis = tl_ctl_session_redis(session, NULL, err);
    if (redis == NULL)
        return false;
    tl_keys_blocks(session->config->redis.key_prefix, key);
    tl_keys_changes(session->config->redis.key_prefix, NULL, changes);
    tl_block_format(block, entry);
    tl_args_strs(&args, "EVAL", tl_script_block, "2", key, changes, what, entry, NULL);
    tl_args_int(&args, for_ms);
    tl_actor_append(&session->actor, &args);
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    *done = tl_reply_integer(reply) == 1;
    tl_reply_free(reply);
    return true;
}

static int failed(const struct tl_error *err)
{
    return tl_ctl_fail(err->kind == TL_ERR_INVALID ? TL_EXIT_PROBLEM : TL_EXIT_FAILED, err);
}

/* The entry that the command line names. */
static bool parse(const struct tl_ctl_options *options, struct tl_block *block,
                  struct tl_error *err)
{
    const char *queue = options->queue != NULL ? options->queue : "";
    if (!tl_block_parse(options->words[0], queue, block, err))
        return false;
    bool v4 = tl_address_is_ipv4(&block->prefix.address);
    if (block->prefix.bits >= (v4 ? LEAST_BITS_IPV4 : LEAST_BITS_IPV6))
        return true;
    return tl_error_set(err, TL_ERR_INVALID,
                        "the prefix is too wide: at least /%d for IPv4, /%d for IPv6",
                        LEAST_BITS_IPV4 - 96, LEAST_BITS_IPV6);
}

int tl_command_block(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct tl_block block;
    char text[TL_BLOCK_TEXT_MAX];
    char duration[TL_UNITS_TEXT_MAX] = "";
    bool done;
    if (!parse(options, &block, &err))
        return failed(&err);
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    bool ok = change(&session, "block", &block, options->for_ms, &done, &err);
    tl_ctl_session_close(&session);
    if (!ok)
        return failed(&err);
    tl_prefix_format(&block.prefix, text);
    if (options->for_ms > 0)
        tl_duration_format(options->for_ms, duration, sizeof(duration));
    printf("%s is blocked from %s%s, %s%s\n"
           "It is not known which places its visitors hold: Redis keeps no addresses. Those who "
           "wait are\nnot seen any more and lose their places after waiting_ttl; sessions go on. "
           "`tellerline visitor\nremove` ends one at once.\n",
           text, block.queue[0] != '\0' ? "queue " : "all queues", block.queue,
           options->for_ms > 0 ? "for " : "until `tellerline unblock`", duration);
    return TL_EXIT_OK;
}

int tl_command_unblock(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct tl_block block;
    char text[TL_BLOCK_TEXT_MAX];
    bool done = false;
    const char *queue = options->queue != NULL ? options->queue : "";
    if (!tl_block_parse(options->words[0], queue, &block, &err))
        return failed(&err);
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    bool ok = change(&session, "unblock", &block, 0, &done, &err);
    tl_ctl_session_close(&session);
    if (!ok)
        return failed(&err);
    tl_prefix_format(&block.prefix, text);
    printf("%s %s from %s%s\n", text, done ? "is not blocked any more" : "was not blocked",
           block.queue[0] != '\0' ? "queue " : "all queues", block.queue);
    return done ? TL_EXIT_OK : TL_EXIT_PROBLEM;
}

/* ---- the list ---- */

static bool write_json(const struct tl_blocks *blocks)
{
    json_t *list = json_array();
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < blocks->n; i++) {
        const struct tl_block *block = &blocks->list[i];
        char prefix[TL_PREFIX_TEXT_MAX];
        char until[TL_UNITS_TEXT_MAX];
        tl_prefix_format(&block->prefix, prefix);
        tl_time_format(block->until_ms, until, sizeof(until));
        json_t *object = json_pack("{s:s, s:s*, s:s*}", "prefix", prefix, "queue",
                                   block->queue[0] != '\0' ? block->queue : NULL, "until",
                                   block->until_ms != 0 ? until : NULL);
        ok = json_array_append_new(list, object) == 0;
    }
    if (!ok) {
        json_decref(list);
        return false;
    }
    return tl_json_write(json_pack("{s:o}", "blocks", list));
}

static bool write_table(const struct tl_blocks *blocks)
{
    static const struct tl_column columns[] = {
        {"PREFIX", false}, {"QUEUE", false}, {"UNTIL", false}};
    struct tl_text out = {0};
    if (blocks->n == 0) {
        printf("no prefix is blocked\n");
        return true;
    }
    struct tl_table *table = tl_table_new(columns, sizeof(columns) / sizeof(columns[0]));
    if (table == NULL)
        return false;
    for (size_t i = 0; i < blocks->n; i++) {
        const struct tl_block *block = &blocks->list[i];
        char prefix[TL_PREFIX_TEXT_MAX];
        char until[TL_UNITS_TEXT_MAX] = "unblocked";
        tl_prefix_format(&block->prefix, prefix);
        if (block->until_ms != 0)
            tl_time_format(block->until_ms, until, sizeof(until));
        tl_table_text(table, prefix);
        tl_table_text(table, block->queue[0] != '\0' ? block->queue : "all");
        tl_table_text(table, until);
    }
    tl_table_write(table, &out);
    bool ok = !out.failed;
    if (ok)
        fputs(out.data, stdout);
    tl_text_free(&out);
    tl_table_free(&table);
    return ok;
}

int tl_command_blocks(const struct tl_ctl_options *options)
{
    struct tl_error err = {0};
    struct tl_ctl_session session;
    struct tl_block none = {0};
    bool done;
    if (!tl_ctl_session_open(&session, options, &err))
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    struct tl_redis *redis = tl_ctl_session_redis(&session, NULL, &err);
    struct tl_blocks *blocks = NULL;
    if (redis != NULL && change(&session, "clean", &none, 0, &done, &err))
        blocks = tl_blocks_read(redis, session.config->redis.key_prefix, &err);
    tl_ctl_session_close(&session);
    if (blocks == NULL)
        return tl_ctl_fail(TL_EXIT_FAILED, &err);
    bool ok = options->json ? write_json(blocks) : write_table(blocks);
    free(blocks);
    return ok ? TL_EXIT_OK : TL_EXIT_FAILED;
}
