/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "common/store/durable.h"
#include "common/store/library.h"
#include "common/store/reply.h"

enum { WAIT_MS = 1000, LOOK_MS = 20, KEY_MS = 60000 };

void tl_durable_init(struct tl_durable *durable, enum tl_durability mode, const char *key_prefix)
{
    uint64_t id;
    randombytes_buf(&id, sizeof(id));
    durable->mode = mode;
    snprintf(durable->key, sizeof(durable->key), "%sdurable:%016" PRIx64, key_prefix, id);
}

/* The command that waits. */
static struct tl_args *wait_command(const struct tl_durable *durable, struct tl_args *args,
                                    int64_t wait_ms)
{
    tl_args_reset(args);
    if (durable->mode == TL_DURABILITY_FSYNC)
        tl_args_strs(args, "WAITAOF", "1", "0", NULL); /* of this server, of replicas */
    else
        tl_args_strs(args, "WAIT", "1", NULL);
    tl_args_int(args, wait_ms);
    return args;
}

bool tl_durable_supported(const struct tl_durable *durable, struct tl_redis *redis,
                          struct tl_error *err)
{
    struct tl_args args = {0};
    struct tl_error problem = {0};
    if (durable->mode == TL_DURABILITY_MEMORY)
        return true;
    bool ok = tl_redis_do(redis, wait_command(durable, &args, 1), &problem);
    tl_args_free(&args);
    if (ok)
        return true;
    if (problem.kind != TL_ERR_STORE) {
        *err = problem;
        return false;
    }
    if (strstr(problem.text, "unknown command") != NULL)
        return tl_error_set(err, TL_ERR_INVALID,
                            "redis.durability: fsync needs WAITAOF, which this store lacks; use "
                            "Redis 7.2, Valkey or newer, or another durability");
    return tl_error_set(err, TL_ERR_INVALID, "redis.durability cannot be kept: %.200s",
                        problem.text);
}

/* Sends the write and the wait, in one pipeline; but the node of a cluster, for which others wait
 * as well, must answer the write before it gets the time of the wait. *reply gets the answer to the
 * wait. */
static bool ask(const struct tl_durable *durable, struct tl_redis *redis, const char *queue,
                struct tl_reply **reply, struct tl_error *err)
{
    char key[TL_KEY_MAX + TL_QUEUE_NAME_MAX];
    struct tl_args args = {0};
    struct tl_reply *written = NULL;
    tl_call_begin_on(&args, TL_FN_DURABLE, 1);
    snprintf(key, sizeof(key), "%s{%s}", durable->key, queue);
    tl_args_str(&args, key);
    tl_args_int(&args, KEY_MS);
    *reply = NULL;
    if (tl_redis_is_node(redis)) {
        written = tl_redis_call(redis, &args, err);
        if (written != NULL)
            *reply =
                tl_redis_call_blocking(redis, wait_command(durable, &args, WAIT_MS), WAIT_MS, err);
    } else if (tl_redis_append(redis, &args, err)) {
        written =
            tl_redis_call_blocking(redis, wait_command(durable, &args, WAIT_MS), WAIT_MS, err);
        *reply = tl_redis_next(redis, written != NULL ? err : NULL);
    }
    tl_args_free(&args);
    tl_reply_free(written);
    return written != NULL && *reply != NULL;
}

/* What an answer to the wait says. */
static bool is_kept(const struct tl_durable *durable, const struct tl_reply *reply)
{
    bool fsync = durable->mode == TL_DURABILITY_FSYNC;
    return tl_reply_integer(fsync ? tl_reply_at(reply, 0) : reply) > 0;
}

bool tl_durable_caught_up(const struct tl_durable *durable, struct tl_redis *redis)
{
    struct tl_args args = {0};
    struct tl_reply *reply =
        tl_redis_call_blocking(redis, wait_command(durable, &args, LOOK_MS), LOOK_MS, NULL);
    bool kept = is_kept(durable, reply);
    tl_reply_free(reply);
    tl_args_free(&args);
    return kept;
}

bool tl_durable_wait(const struct tl_durable *durable, struct tl_redis *redis, const char *queue,
                     struct tl_error *err)
{
    struct tl_error problem = {0};
    struct tl_reply *reply;
    if (durable->mode == TL_DURABILITY_MEMORY)
        return true;
    bool ok = ask(durable, redis, queue, &reply, &problem);
    if (!ok && problem.kind == TL_ERR_NOFUNCTION) {
        tl_reply_free(reply);
        reply = NULL;
        ok = tl_library_load(redis, &problem) && ask(durable, redis, queue, &reply, &problem);
    }
    bool fsync = durable->mode == TL_DURABILITY_FSYNC;
    bool kept = is_kept(durable, reply);
    tl_reply_free(reply);
    if (!ok && err != NULL)
        *err = problem;
    if (!ok)
        return false;
    return kept || tl_error_set(err, TL_ERR_MISCONF, "%s within %d ms (redis.durability)",
                                fsync ? "the store has not written to its disk"
                                      : "no replica of the store has answered",
                                WAIT_MS);
}
