/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/store/redis.h"
#include "common/store/reply.h"

#include "ctl/up/up.h"

#define SOCKET_NAME "redis.sock"
#define LOCK_NAME   "lock"

enum { ANSWER_TIMEOUT_MS = 2000 };

/* Looks for an executable in the folders of PATH. */
static bool find_program(const char *name, char path[PATH_MAX])
{
    const char *folders = getenv("PATH");
    if (folders == NULL || folders[0] == '\0')
        folders = "/usr/local/bin:/usr/bin:/bin";
    while (*folders != '\0') {
        int length = (int)strcspn(folders, ":");
        int written = snprintf(path, PATH_MAX, "%.*s/%s", length, folders, name);
        if (length > 0 && written < PATH_MAX && access(path, X_OK) == 0)
            return true;
        folders += length + (folders[length] == ':' ? 1 : 0);
    }
    return false;
}

static bool make_folder(const char *data, char folder[PATH_MAX], struct tl_error *err)
{
    struct stat status;
    if (mkdir(data, 0700) != 0 && errno != EEXIST)
        return tl_error_set(err, TL_ERR_SYSTEM, "data folder %s: %s", data, strerror(errno));
    if (realpath(data, folder) == NULL || stat(folder, &status) != 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "data folder %s: %s", data, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return tl_error_set(err, TL_ERR_INVALID, "data folder %s: is not a folder", data);
    if ((status.st_mode & 022) != 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "data folder %s: other users may write to it; run `chmod 700 %s`", data,
                            data);
    return true;
}

/* Joins folder and name. */
static bool join_path(const char *folder, const char *name, char path[PATH_MAX],
                      struct tl_error *err)
{
    int length = snprintf(path, PATH_MAX, "%s/%s", folder, name);
    if (length < 0 || length >= PATH_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "data folder %s: the path is too long", folder);
    return true;
}

static bool lock_folder(struct tl_private_redis *redis, struct tl_error *err)
{
    char path[PATH_MAX];
    if (!join_path(redis->folder, LOCK_NAME, path, err))
        return false;
    redis->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (redis->lock < 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
    if (flock(redis->lock, LOCK_EX | LOCK_NB) == 0)
        return true;
    int flock_errno = errno;
    close(redis->lock);
    redis->lock = -1;
    if (flock_errno != EWOULDBLOCK)
        return tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(flock_errno));
    return tl_error_set(
        err, TL_ERR_INVALID,
        "data folder %s: another `tellerline up` already runs on it, or its redis-server is still "
        "stopping; stop it, or choose another folder with --data DIR",
        redis->folder);
}

void tl_private_redis_socket(const char *folder, char path[TL_SOCKET_PATH_MAX])
{
    int length = snprintf(path, TL_SOCKET_PATH_MAX, "%s/" SOCKET_NAME, folder);
    if (length < 0 || length >= TL_SOCKET_PATH_MAX || strchr(path, '?') != NULL)
        path[0] = '\0';
}

/* Makes a folder with a short path for the socket. */
static bool make_socket_folder(struct tl_private_redis *redis, struct tl_error *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const char *const places[] = {runtime != NULL ? runtime : "", "/tmp"};
    for (size_t i = 0; i < 2; i++) {
        int length = snprintf(redis->socket_folder, sizeof(redis->socket_folder),
                              "%s/tellerline-XXXXXX", places[i]);
        if (places[i][0] != '/' || length < 0 || (size_t)length >= sizeof(redis->socket_folder))
            continue;
        if (mkdtemp(redis->socket_folder) == NULL)
            continue;
        tl_private_redis_socket(redis->socket_folder, redis->socket);
        if (redis->socket[0] != '\0')
            return true;
        rmdir(redis->socket_folder);
    }
    redis->socket_folder[0] = '\0';
    return tl_error_set(
        err, TL_ERR_SYSTEM,
        "data folder %s: the path is too long for a socket, and no folder for the socket could be "
        "made in /tmp; choose a shorter path with --data DIR",
        redis->folder);
}

bool tl_private_redis_prepare(struct tl_private_redis *redis, const char *data,
                              struct tl_error *err)
{
    *redis = (struct tl_private_redis){.lock = -1};
    if (!find_program("redis-server", redis->program) &&
        !find_program("valkey-server", redis->program))
        return tl_error_set(
            err, TL_ERR_INVALID,
            "no Redis is configured, and neither redis-server nor valkey-server is installed; run "
            "`apt-get install redis-server`, or set redis.url");
    if (!make_folder(data, redis->folder, err) || !lock_folder(redis, err))
        return false;
    tl_private_redis_socket(redis->folder, redis->socket);
    if (redis->socket[0] == '\0' && !make_socket_folder(redis, err)) {
        tl_private_redis_release(redis);
        return false;
    }
    snprintf(redis->url, sizeof(redis->url), "unix://%s", redis->socket);
    return true;
}

bool tl_private_redis_publish(const struct tl_private_redis *redis, struct tl_error *err)
{
    char path[PATH_MAX];
    if (!join_path(redis->folder, TL_REDIS_URL_FILE, path, err))
        return false;
    FILE *file = fopen(path, "we");
    bool ok = file != NULL && fprintf(file, "%s\n", redis->url) > 0;
    if (file != NULL && fclose(file) != 0)
        ok = false;
    return ok || tl_error_set(err, TL_ERR_SYSTEM, "%s: %s", path, strerror(errno));
}

void tl_private_redis_release(struct tl_private_redis *redis)
{
    char path[PATH_MAX];
    if (redis->lock < 0)
        return;
    if (join_path(redis->folder, TL_REDIS_URL_FILE, path, NULL))
        unlink(path);
    if (redis->socket_folder[0] != '\0') {
        unlink(redis->socket);
        rmdir(redis->socket_folder);
    }
    close(redis->lock);
    redis->lock = -1;
}

void tl_private_redis_argv(const struct tl_private_redis *redis,
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
        redis->folder,
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

bool tl_private_redis_answers(const struct tl_private_redis *redis, struct tl_error *err)
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
