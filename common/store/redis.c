#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>
#ifdef TELLERLINE_TLS
#include <hiredis/hiredis_ssl.h>
#endif

#include "common/config/redis_url.h"
#include "common/store/redis.h"
#include "common/store/reply.h"

struct tl_redis {
    struct tl_redis_url url;
    char ca_file[256];
    int64_t timeout_ms;
    int64_t socket_timeout_ms; /* the current setting of the socket */
    redisContext *context;     /* NULL while closed */
    uint64_t epoch;
    const char **argv; /* buffer for one command */
    size_t *argv_length;
    size_t argv_capacity;
#ifdef TELLERLINE_TLS
    redisSSLContext *tls;
#endif
};

struct tl_redis *tl_redis_new(const struct tl_redis_settings *settings, struct tl_error *err)
{
    struct tl_redis_url url;
    if (!tl_redis_url_parse(settings->url, &url, err))
        return NULL;
#ifndef TELLERLINE_TLS
    if (url.tls) {
        tl_error_set(
            err, TL_ERR_INVALID,
            "redis url: rediss:// needs hiredis 1.0 or newer with TLS, which this build lacks; "
            "use redis:// through a private network or a TLS tunnel");
        return NULL;
    }
#endif
    struct tl_redis *redis = calloc(1, sizeof(*redis));
    if (redis == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for a store connection");
        return NULL;
    }
    redis->url = url;
    redis->timeout_ms = settings->timeout_ms;
    if (settings->ca_file != NULL)
        snprintf(redis->ca_file, sizeof(redis->ca_file), "%s", settings->ca_file);
    return redis;
}

void tl_redis_free(struct tl_redis **redis)
{
    if (*redis == NULL)
        return;
    tl_redis_close(*redis);
#ifdef TELLERLINE_TLS
    if ((*redis)->tls != NULL)
        redisFreeSSLContext((*redis)->tls);
#endif
    free((*redis)->argv);
    free((*redis)->argv_length);
    explicit_bzero(&(*redis)->url, sizeof((*redis)->url));
    free(*redis);
    *redis = NULL;
}

void tl_redis_close(struct tl_redis *redis)
{
    if (redis->context != NULL)
        redisFree(redis->context);
    redis->context = NULL;
}

bool tl_redis_connected(const struct tl_redis *redis)
{
    return redis->context != NULL;
}

uint64_t tl_redis_epoch(const struct tl_redis *redis)
{
    return redis->epoch;
}

static struct timeval to_timeval(int64_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
}

/* Closes the connection after an I/O error and stores the reason. */
static bool fail_io(struct tl_redis *redis, struct tl_error *err)
{
    int saved = errno;
    const redisContext *context = redis->context;
    bool timeout = context->err == REDIS_ERR_IO && (saved == EAGAIN || saved == ETIMEDOUT);
    if (timeout)
        tl_error_set(err, TL_ERR_TIMEOUT, "the store did not answer within %lld ms",
                     (long long)redis->socket_timeout_ms);
    else if (context->err == REDIS_ERR_PROTOCOL)
        tl_error_set(err, TL_ERR_PROTOCOL, "the store broke the Redis protocol: %s",
                     context->errstr);
    else
        tl_error_set(err, TL_ERR_CONNECT, "the connection to the store broke: %s", context->errstr);
    tl_redis_close(redis);
    return false;
}

static bool set_socket_timeout(struct tl_redis *redis, int64_t ms, struct tl_error *err)
{
    if (redis->socket_timeout_ms == ms)
        return true;
    redis->socket_timeout_ms = ms;
    if (redisSetTimeout(redis->context, to_timeval(ms)) != REDIS_OK)
        return fail_io(redis, err);
    return true;
}

#ifdef TELLERLINE_TLS
static bool start_tls(struct tl_redis *redis, struct tl_error *err)
{
    if (!redis->url.tls)
        return true;
    redisSSLContextError problem = REDIS_SSL_CTX_NONE;
    if (redis->tls == NULL) {
        const char *ca = redis->ca_file[0] != '\0' ? redis->ca_file : NULL;
        redisInitOpenSSL();
        redis->tls = redisCreateSSLContext(ca, ca == NULL ? "/etc/ssl/certs" : NULL, NULL, NULL,
                                           redis->url.host, &problem);
    }
    if (redis->tls == NULL) {
        tl_error_set(err, TL_ERR_CONNECT, "TLS to the store: %s", redisSSLContextGetError(problem));
        tl_redis_close(redis);
        return false;
    }
    if (redisInitiateSSLWithContext(redis->context, redis->tls) != REDIS_OK)
        return fail_io(redis, err);
    return true;
}
#else
static bool start_tls(struct tl_redis *redis, struct tl_error *err)
{
    (void)redis;
    (void)err;
    return true; /* tl_redis_new refused rediss:// */
}
#endif

/* AUTH and SELECT from the URL. */
static bool authenticate(struct tl_redis *redis, struct tl_error *err)
{
    struct tl_args args = {0};
    bool ok = true;
    if (redis->url.password[0] != '\0' || redis->url.user[0] != '\0') {
        tl_args_str(&args, "AUTH");
        if (redis->url.user[0] != '\0')
            tl_args_str(&args, redis->url.user);
        tl_args_str(&args, redis->url.password);
        ok = tl_redis_do(redis, &args, err) || tl_error_prefix(err, "logging in to the store");
        tl_args_reset(&args);
    }
    if (ok && redis->url.db != 0) {
        tl_args_str(&args, "SELECT");
        tl_args_int(&args, redis->url.db);
        ok = tl_redis_do(redis, &args, err) ||
             tl_error_prefix(err, "selecting database %d", redis->url.db);
    }
    if (args.n_bytes > 0)
        explicit_bzero(args.bytes, args.n_bytes);
    tl_args_free(&args);
    return ok;
}

bool tl_redis_connect(struct tl_redis *redis, struct tl_error *err)
{
    if (redis->context != NULL)
        return true;
    struct timeval timeout = to_timeval(redis->timeout_ms);
    const struct tl_redis_url *url = &redis->url;
    if (url->unix_path[0] != '\0')
        redis->context = redisConnectUnixWithTimeout(url->unix_path, timeout);
    else
        redis->context = redisConnectWithTimeout(url->host, url->port, timeout);
    if (redis->context == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a store connection");
    if (redis->context->err != 0) {
        if (url->unix_path[0] != '\0')
            tl_error_set(err, TL_ERR_CONNECT, "cannot reach the store at %s: %s", url->unix_path,
                         redis->context->errstr);
        else
            tl_error_set(err, TL_ERR_CONNECT, "cannot reach the store at %s:%d: %s", url->host,
                         url->port, redis->context->errstr);
        tl_redis_close(redis);
        return false;
    }
    redis->socket_timeout_ms = -1;
    if (!set_socket_timeout(redis, redis->timeout_ms, err) || !start_tls(redis, err))
        return false;
    if (url->unix_path[0] == '\0' && redisEnableKeepAlive(redis->context) != REDIS_OK)
        return fail_io(redis, err);
    if (!authenticate(redis, err)) {
        tl_redis_close(redis);
        return false;
    }
    redis->epoch++;
    return true;
}

static bool fill_argv(struct tl_redis *redis, const struct tl_args *args, struct tl_error *err)
{
    if (args->n > redis->argv_capacity) {
        size_t capacity = args->n * 2;
        const char **argv = reallocarray(redis->argv, capacity, sizeof(*argv));
        if (argv != NULL)
            redis->argv = argv;
        size_t *lengths = reallocarray(redis->argv_length, capacity, sizeof(*lengths));
        if (lengths != NULL)
            redis->argv_length = lengths;
        if (argv == NULL || lengths == NULL)
            return tl_error_set(err, TL_ERR_NOMEM, "no memory for a command of %zu arguments",
                                args->n);
        redis->argv_capacity = capacity;
    }
    size_t start = 0;
    for (size_t i = 0; i < args->n; i++) {
        redis->argv[i] = args->bytes + start;
        redis->argv_length[i] = args->ends[i] - start;
        start = args->ends[i];
    }
    return true;
}

/* Queues a command that may block for block_ms. */
static bool append(struct tl_redis *redis, const struct tl_args *args, int64_t block_ms,
                   struct tl_error *err)
{
    if (args->failed)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a command");
    if (redis->context == NULL)
        return tl_error_set(err, TL_ERR_CONNECT, "not connected to the store");
    if (!set_socket_timeout(redis, redis->timeout_ms + block_ms, err) ||
        !fill_argv(redis, args, err))
        return false;
    if (redisAppendCommandArgv(redis->context, (int)args->n, redis->argv, redis->argv_length) !=
        REDIS_OK)
        return fail_io(redis, err);
    return true;
}

bool tl_redis_append(struct tl_redis *redis, const struct tl_args *args, struct tl_error *err)
{
    return append(redis, args, 0, err);
}

bool tl_redis_flush(struct tl_redis *redis, struct tl_error *err)
{
    int done = 0;
    if (redis->context == NULL)
        return tl_error_set(err, TL_ERR_CONNECT, "not connected to the store");
    errno = 0;
    while (done == 0)
        if (redisBufferWrite(redis->context, &done) != REDIS_OK)
            return fail_io(redis, err);
    return true;
}

static enum tl_error_kind error_reply_kind(const char *text)
{
    static const struct {
        const char *prefix;
        enum tl_error_kind kind;
    } table[] = {
        {"LOADING", TL_ERR_LOADING},     {"READONLY", TL_ERR_READONLY},
        {"MISCONF", TL_ERR_MISCONF},     {"OOM", TL_ERR_OOM},
        {"NOGROUP", TL_ERR_NOGROUP},     {"NOSCRIPT", TL_ERR_NOSCRIPT},
        {"STALE", TL_ERR_STALE},         {"ORDER", TL_ERR_STALE},
        {"NOQUEUE", TL_ERR_NOQUEUE},     {"INVALID", TL_ERR_INVALID},
        {"MASTERDOWN", TL_ERR_READONLY}, {"ERR max number", TL_ERR_CONNECT},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strncmp(text, table[i].prefix, strlen(table[i].prefix)) == 0)
            return table[i].kind;
    return TL_ERR_STORE;
}

struct tl_reply *tl_redis_next(struct tl_redis *redis, struct tl_error *err)
{
    if (redis->context == NULL) {
        tl_error_set(err, TL_ERR_CONNECT, "not connected to the store");
        return NULL;
    }
    void *answer = NULL;
    errno = 0;
    if (redisGetReply(redis->context, &answer) != REDIS_OK || answer == NULL) {
        fail_io(redis, err);
        return NULL;
    }
    redisReply *reply = answer;
    if (reply->type == REDIS_REPLY_ERROR) {
        tl_error_set(err, error_reply_kind(reply->str), "the store answered: %.250s", reply->str);
        freeReplyObject(reply);
        return NULL;
    }
    return (struct tl_reply *)reply;
}

struct tl_reply *tl_redis_call_blocking(struct tl_redis *redis, const struct tl_args *args,
                                        int64_t block_ms, struct tl_error *err)
{
    return append(redis, args, block_ms, err) ? tl_redis_next(redis, err) : NULL;
}

struct tl_reply *tl_redis_call(struct tl_redis *redis, const struct tl_args *args,
                               struct tl_error *err)
{
    if (!tl_redis_append(redis, args, err))
        return NULL;
    return tl_redis_next(redis, err);
}

bool tl_redis_do(struct tl_redis *redis, const struct tl_args *args, struct tl_error *err)
{
    struct tl_reply *reply = tl_redis_call(redis, args, err);
    tl_reply_free(reply);
    return reply != NULL;
}
