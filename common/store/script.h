/* SPDX-License-Identifier: Apache-2.0 */
/* Lua scripts of a connection: loaded once, called by their hash. */
#ifndef TL_SCRIPT_H
#define TL_SCRIPT_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/store/args.h"
#include "common/store/keys.h"
#include "common/store/redis.h"

/* A Lua script. `source` is static text; sha is filled in by the first load. One object per
 * connection. */
struct tl_script {
    const char *source;
    bool read_only; /* it changes nothing: a user without write permission may call it */
    char sha[41];
};

/* Starts args with EVALSHA and the script's hash, loading the script first if its hash is not yet
 * known. The caller adds the number of keys, keys and arguments. */
bool tl_script_begin(struct tl_redis *redis, struct tl_script *script, struct tl_args *args,
                     struct tl_error *err);
/* tl_redis_call for args begun with tl_script_begin: after NOSCRIPT loads the script and tries once
 * more. */
struct tl_reply *tl_script_call(struct tl_redis *redis, struct tl_script *script,
                                struct tl_args *args, struct tl_error *err);
/* Loads the script, for a pipeline: before its first command, and after NOSCRIPT. */
bool tl_script_load(struct tl_redis *redis, struct tl_script *script, struct tl_error *err);

/* Runs a script once on the keys of a queue, with these arguments (NULL: none). It sends the source
 * along, so it is meant for what is done rarely. Returns its reply, or NULL with err. */
struct tl_reply *tl_script_run(struct tl_redis *redis, const char *source,
                               const struct tl_keys *keys, const struct tl_args *more,
                               struct tl_error *err);
/* The same for a script that changes nothing. */
struct tl_reply *tl_script_read(struct tl_redis *redis, const char *source,
                                const struct tl_keys *keys, struct tl_error *err);

#endif
