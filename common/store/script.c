/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/store/reply.h"
#include "common/store/script.h"

bool tl_script_load(struct tl_redis *redis, struct tl_script *script, struct tl_error *err)
{
    struct tl_args args = {0};
    tl_args_strs(&args, "SCRIPT", "LOAD", script->source, NULL);
    struct tl_reply *reply = tl_redis_call(redis, &args, err);
    tl_args_free(&args);
    if (reply == NULL)
        return false;
    size_t length;
    const char *sha = tl_reply_string(reply, &length);
    bool ok = length == sizeof(script->sha) - 1;
    if (ok)
        memcpy(script->sha, sha, length + 1);
    else
        tl_error_set(err, TL_ERR_PROTOCOL, "SCRIPT LOAD answered something that is not a hash");
    tl_reply_free(reply);
    return ok;
}

bool tl_script_begin(struct tl_redis *redis, struct tl_script *script, struct tl_args *args,
                     struct tl_error *err)
{
    if (script->sha[0] == '\0' && !tl_script_load(redis, script, err))
        return false;
    tl_args_reset(args);
    tl_args_strs(args, script->read_only ? "EVALSHA_RO" : "EVALSHA", script->sha, NULL);
    return true;
}

struct tl_reply *tl_script_call(struct tl_redis *redis, struct tl_script *script,
                                struct tl_args *args, struct tl_error *err)
{
    struct tl_error first = {0};
    struct tl_reply *reply = tl_redis_call(redis, args, &first);
    if (reply == NULL && first.kind == TL_ERR_NOSCRIPT) {
        /* The hash depends on the source alone, so the command can be sent again as it is. */
        if (!tl_script_load(redis, script, err))
            return NULL;
        return tl_redis_call(redis, args, err);
    }
    if (reply == NULL && err != NULL)
        *err = first;
    return reply;
}

static struct tl_reply *run(struct tl_redis *redis, struct tl_script script,
                            const struct tl_keys *keys, const struct tl_args *more,
                            struct tl_error *err)
{
    struct tl_args args = {0};
    struct tl_reply *reply = NULL;
    if (tl_script_begin(redis, &script, &args, err)) {
        tl_keys_append(keys, &args);
        size_t start = 0;
        for (size_t i = 0; more != NULL && i < more->n; i++) {
            tl_args_bin(&args, more->bytes + start, more->ends[i] - start);
            start = more->ends[i];
        }
        reply = tl_script_call(redis, &script, &args, err);
    }
    tl_args_free(&args);
    return reply;
}

struct tl_reply *tl_script_run(struct tl_redis *redis, const char *source,
                               const struct tl_keys *keys, const struct tl_args *more,
                               struct tl_error *err)
{
    return run(redis, (struct tl_script){.source = source}, keys, more, err);
}

struct tl_reply *tl_script_read(struct tl_redis *redis, const char *source,
                                const struct tl_keys *keys, struct tl_error *err)
{
    const struct tl_script script = {.source = source, .read_only = true};
    return run(redis, script, keys, NULL, err);
}
