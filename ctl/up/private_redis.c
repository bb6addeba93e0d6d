/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/store/redis.h"
#include "common/store/reply.h"

#include "ctl/up/up.h"

enum { ANSWER_TIMEOUT_MS = 2000 };

bool tl_private_redis_prepare(struct tl_private_server *redis, struct tl_data_folder *folder,
                              struct tl_error *err)
{
    if (!tl_find_program("redis-server", redis->program) &&
        !tl_find_program("valkey-server", redis->program))
        return tl_error_set(
            err, TL_ERR_INVALID,
            "no Redis is configured, and neither redis-server nor valkey-server is installed; run "
            "`apt-get install redis-server`, or set redis.url");
    if (!tl_data_folder_open(folder, err))
        return false;
    redis->folder = folder;
    redis->url_file = TL_REDIS_URL_FILE;
    memcpy(redis->data, folder->path, sizeof(redis->data));
    if (!tl_private_server_socket(redis, "redis.sock", err))
        return false;
    snprintf(redis->url, sizeof(redis->url), "unix://%s", redis->socket);
    return true;
}

void tl_private_redis_argv(const struct tl_private_server *redis,
                           const char *argv[TL_PROGRAM_ARGS_MAX])
{
    const char *const words[] = {
        redis->program,
        /* reachable by this user alone */
        "--port",
        "0",
        "--unixsocket",
        redis->socket,
        "--unixsocketperm",
        "700",
        /* acknowledged changes are kept: no eviction, every change in the append-only file */
        "--dir",
        redis->data,
        "--appendonly",
        "yes",
        "--appendfsync",
        "everysec",
        "--save",
        "",
        "--maxmemory-policy",
        "noeviction",
        /* output to us: warnings and errors */
        "--daemonize",
        "no",
        "--logfile",
        "",
        "--loglevel",
        "warning",
        NULL,
    };
    _Static_assert(sizeof(words) / sizeof(words[0]) <= TL_PROGRAM_ARGS_MAX, "the words fit");
    memcpy(argv, words, sizeof(words));
}

bool tl_private_redis_answers(const struct tl_private_server *redis, struct tl_error *err)
{
    const struct tl_redis_settings settings = {.url = redis->url, .timeout_ms = ANSWER_TIMEOUT_MS};
    struct tl_redis *connection = tl_redis_new(&settings, err);
    if (connection == NULL)
        return false;
    struct tl_reply *reply =
        tl_redis_connect(connection, err) ? tl_ask(connection, err, "PING", NULL) : NULL;
    tl_reply_free(reply);
    tl_redis_free(&connection);
    return reply != NULL;
}
