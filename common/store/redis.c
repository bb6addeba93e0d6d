/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <hiredis/hiredis.h>

#include "common/base/clock.h"
#include "common/base/grow.h"
#include "common/config/settings.h"
#include "common/store/redis.h"
#include "common/store/reply.h"
#include "common/store/tls.h"

/* How often an open connection is asked whether it still leads to a master. */
enum { LOOK_MS = 1000 };

/* A node of a cluster gets less time than redis.timeout, because the queues of the others wait as
 * well: this, and ten times what its slowest answer took in the last two windows, or twice what
 * was waited for one that did not come. */
enum { PATIENCE_MS = 500, PATIENCE_TIMES = 10, FAILED_TIMES = 2, WINDOW_MS = 5000 };

struct tl_redis {
    struct tl_redis_url url;
    char address[280]; /* for people */
    int64_t timeout_ms;
    int64_t socket_timeout_ms; /* the current setting of the socket */
    redisContext *context;     /* NULL while closed */
    uint64_t epoch;
    int64_t look_ms;       /* when to ask again for the role of the server */
    bool node;             /* of a cluster */
    bool blocks;           /* the command that is waited for */
    bool disowned;         /* it answered that it does not serve a slot */
    int64_t slowest_ms[2]; /* the slowest answer in this window, and in the one before */
    int64_t window_ms;     /* when the next one begins */
    bool doubtful;     /* the last server was a replica: ask for the role as part of connecting */
    const char **argv; /* buffer for one command */
    size_t argv_capacity;
    struct ssl_ctx_st *trust; /* NULL without TLS */
    bool borrows_trust;
    struct ssl_st *tls; /* NULL while closed */
    char *unsent;       /* commands that go through TLS */
    size_t n_unsent, unsent_size;
    void (*measured)(void *context, int64_t us); /* NULL: nobody wants to know */
    void *measured_context;
};

struct tl_redis_settings tl_redis_settings_of(const struct tl_config *config, const char *url)
{
    return (struct tl_redis_settings){.url = url != NULL ? url : config->redis.url,
                                      .ca_file = config->redis.ca_file,
                                      .timeout_ms = config->redis.timeout_ms,
                                      .key_prefix = config->redis.key_prefix};
}

/* Names the server that the URL leads to. */
static void name_server(struct tl_redis *redis)
{
    if (redis->url.unix_path[0] != '\0')
        snprintf(redis->address, sizeof(redis->address), "%s", redis->url.unix_path);
    else
        snprintf(redis->address, sizeof(redis->address),
                 strchr(redis->url.host, ':') != NULL ? "[%s]:%d" : "%s:%d", redis->url.host,
                 redis->url.port);
}

static struct tl_redis *new_closed(const struct tl_redis_url *url, int64_t timeout_ms,
                                   struct tl_error *err)
{
    struct tl_redis *redis = calloc(1, sizeof(*redis));
    if (redis == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for a store connection");
        return NULL;
    }
    redis->url = *url;
    redis->timeout_ms = redis->slowest_ms[1] = timeout_ms;
    name_server(redis);
    return redis;
}

struct tl_redis *tl_redis_new_at(const struct tl_redis_url *url,
                                 const struct tl_redis_settings *settings, struct tl_error *err)
{
    const char *ca_file = settings->ca_file != NULL ? settings->ca_file : "";
    struct tl_redis *redis = new_closed(url, settings->timeout_ms, err);
    if (redis != NULL && url->tls && (redis->trust = tl_tls_trust_new(ca_file, err)) == NULL)
        tl_redis_free(&redis);
    return redis;
}

struct tl_redis *tl_redis_new(const struct tl_redis_settings *settings, struct tl_error *err)
{
    struct tl_redis_url url;
    struct tl_redis *redis = NULL;
    if (tl_redis_url_parse(settings->url, &url, err))
        redis = tl_redis_new_at(&url, settings, err);
    explicit_bzero(&url, sizeof(url));
    return redis;
}

struct tl_redis *tl_redis_new_beside(const struct tl_redis *redis, struct tl_error *err)
{
    struct tl_redis *beside = new_closed(&redis->url, redis->timeout_ms, err);
    if (beside != NULL) {
        beside->trust = redis->trust;
        beside->borrows_trust = true;
        beside->node = redis->node;
    }
    return beside;
}

void tl_redis_free(struct tl_redis **redis)
{
    if (*redis == NULL)
        return;
    tl_redis_close(*redis);
    if (!(*redis)->borrows_trust)
        tl_tls_trust_free((*redis)->trust);
    free((*redis)->unsent);
    free((*redis)->argv);
    explicit_bzero(&(*redis)->url, sizeof((*redis)->url));
    free(*redis);
    *redis = NULL;
}

void tl_redis_close(struct tl_redis *redis)
{
    tl_tls_close(&redis->tls);
    redis->n_unsent = 0;
    if (redis->context != NULL)
        redisFree(redis->context);
    redis->context = NULL;
}

bool tl_redis_connected(const struct tl_redis *redis)
{
    return redis->context != NULL;
}

const char *tl_redis_address(const struct tl_redis *redis)
{
    return redis->address;
}

uint64_t tl_redis_epoch(const struct tl_redis *redis)
{
    return redis->epoch;
}

void tl_redis_set_node(struct tl_redis *redis)
{
    redis->node = true;
}

bool tl_redis_is_node(const struct tl_redis *redis)
{
    return redis->node;
}

bool tl_redis_disowned(struct tl_redis *redis)
{
    bool disowned = redis->disowned;
    redis->disowned = false;
    return disowned;
}

void tl_redis_measure(struct tl_redis *redis, void (*measured)(void *context, int64_t us),
                      void *context)
{
    redis->measured = measured;
    redis->measured_context = context;
}

/* How long the server may take for an answer. */
static int64_t patience_ms(const struct tl_redis *redis)
{
    const int64_t *slowest_ms = redis->slowest_ms;
    int64_t ms = PATIENCE_MS +
                 PATIENCE_TIMES * (slowest_ms[0] > slowest_ms[1] ? slowest_ms[0] : slowest_ms[1]);
    return redis->node && ms < redis->timeout_ms ? ms : redis->timeout_ms;
}

/* What was waited for since then came, or failed to. A command that blocks says nothing. */
static void note_answer(struct tl_redis *redis, int64_t since_ms, bool came)
{
    int64_t now_ms = tl_clock_ms(), took_ms = redis->blocks ? 0 : now_ms - since_ms;
    if (!came)
        took_ms = took_ms * FAILED_TIMES / PATIENCE_TIMES;
    if (now_ms >= redis->window_ms) {
        redis->slowest_ms[1] = redis->window_ms > 0 ? redis->slowest_ms[0] : redis->timeout_ms;
        redis->slowest_ms[0] = 0;
        redis->window_ms = now_ms + WINDOW_MS;
    }
    if (took_ms > redis->slowest_ms[0])
        redis->slowest_ms[0] = took_ms;
}

static struct timeval to_timeval(int64_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
}

/* A replica stays one until it is told otherwise: another server may be the master by now. */
static void leave_replica(struct tl_redis *redis)
{
    redis->doubtful = true;
    tl_redis_close(redis);
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
    return redisSetTimeout(redis->context, to_timeval(ms)) == REDIS_OK || fail_io(redis, err);
}

/* ---- with TLS hiredis formats and parses only; the bytes go through OpenSSL ---- */

static bool append_tls(struct tl_redis *redis, const struct tl_args *args, struct tl_error *err)
{
    char *bytes = NULL;
    /* int in hiredis 0.14 */
    long long length = redisFormatCommandArgv(&bytes, (int)args->n, redis->argv, args->lengths);
    if (length < 0)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a command");
    size_t needed = redis->n_unsent + (size_t)length;
    char *unsent = tl_grow(redis->unsent, &redis->unsent_size, needed, 1);
    if (unsent != NULL) {
        redis->unsent = unsent;
        memcpy(unsent + redis->n_unsent, bytes, (size_t)length);
        redis->n_unsent = needed;
    }
    redisFreeCommand(bytes);
    return unsent != NULL || tl_error_set(err, TL_ERR_NOMEM, "no memory for a command");
}

static bool read_bytes(struct tl_redis *redis, struct tl_error *err)
{
    char bytes[16384]; /* as much as OpenSSL decrypts at once: none stay behind in it */
    errno = 0;
    if (redis->tls == NULL)
        return redisBufferRead(redis->context) == REDIS_OK || fail_io(redis, err);
    size_t n = tl_tls_read(redis->tls, bytes, sizeof(bytes), err);
    if (n > 0 && redisReaderFeed(redis->context->reader, bytes, n) == REDIS_OK)
        return true;
    if (n > 0)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for a reply");
    tl_redis_close(redis);
    return false;
}

/* Waits for bytes of a reply. */
static bool receive(struct tl_redis *redis, struct tl_error *err)
{
    const int64_t since_ms = tl_clock_ms();
    bool ok = read_bytes(redis, err);
    note_answer(redis, since_ms, ok);
    return ok;
}

/* ---- connecting ---- */

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
    if (args.bytes != NULL)
        explicit_bzero(args.bytes, args.bytes_capacity);
    tl_args_free(&args);
    return ok;
}

/* Leaves a server that is a replica. Also false when the connection broke. A server that refuses
 * the command is taken for a master: its answers to writes will tell. */
static bool check_role(struct tl_redis *redis, struct tl_error *err)
{
    struct tl_error refusal = {0};
    struct tl_reply *reply = tl_ask(redis, &refusal, "ROLE", NULL);
    const char *role = tl_reply_text(reply, 0);
    bool replica = strcmp(role, "slave") == 0;
    if (replica) {
        tl_error_set(err, TL_ERR_READONLY, "the store at %s is a replica", redis->url.host);
        leave_replica(redis);
    } else if (redis->context == NULL && err != NULL) {
        *err = refusal;
    }
    tl_reply_free(reply);
    redis->look_ms = tl_clock_ms() + LOOK_MS;
    return redis->context != NULL;
}

/* Leaves it to the caller to close what failed. */
static bool open_connection(struct tl_redis *redis, struct tl_error *err)
{
    struct timeval timeout = to_timeval(patience_ms(redis));
    const struct tl_redis_url *url = &redis->url;
    if (url->unix_path[0] != '\0')
        redis->context = redisConnectUnixWithTimeout(url->unix_path, timeout);
    else
        redis->context = redisConnectWithTimeout(url->host, url->port, timeout);
    if (redis->context == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a store connection");
    if (redis->context->err != 0)
        return tl_error_set(err, TL_ERR_CONNECT, "cannot reach the store at %s: %s", redis->address,
                            redis->context->errstr);
    redis->socket_timeout_ms = -1;
    if (!set_socket_timeout(redis, patience_ms(redis), err))
        return false;
    if (redis->trust != NULL) {
        redis->tls = tl_tls_open(redis->trust, redis->context->fd, url->host, err);
        if (redis->tls == NULL)
            return false;
    }
    if (url->unix_path[0] == '\0' && redisEnableKeepAlive(redis->context) != REDIS_OK)
        return fail_io(redis, err);
    if (!authenticate(redis, err))
        return false;
    redis->look_ms = tl_clock_ms() + LOOK_MS;
    if (redis->doubtful && !check_role(redis, err))
        return false;
    redis->doubtful = false;
    redis->epoch++;
    return true;
}

bool tl_redis_check(struct tl_redis *redis)
{
    return redis->context != NULL && (tl_clock_ms() < redis->look_ms || check_role(redis, NULL));
}

bool tl_redis_connect(struct tl_redis *redis, struct tl_error *err)
{
    const int64_t began_ms = tl_clock_ms();
    if (tl_redis_check(redis) || open_connection(redis, err))
        return true;
    tl_redis_close(redis);
    note_answer(redis, began_ms, false);
    return false;
}

void tl_redis_lead_to(struct tl_redis *redis, const char *host, int port)
{
    tl_redis_close(redis);
    snprintf(redis->url.host, sizeof(redis->url.host), "%s", host);
    redis->url.port = port;
    name_server(redis);
    redis->doubtful = true;
}

/* Queues a command that may block for block_ms. */
static bool append(struct tl_redis *redis, const struct tl_args *args, int64_t block_ms,
                   struct tl_error *err)
{
    const char **argv = tl_grow(redis->argv, &redis->argv_capacity, args->n, sizeof(*argv));
    const char *at = args->bytes;
    redis->argv = argv != NULL ? argv : redis->argv;
    if (args->failed || argv == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a command");
    if (redis->context == NULL)
        return tl_error_set(err, TL_ERR_CONNECT, "not connected to the store");
    if (!set_socket_timeout(redis, patience_ms(redis) + block_ms, err))
        return false;
    for (size_t i = 0; i < args->n; i++) {
        argv[i] = at;
        at += args->lengths[i];
    }
    if (redis->tls != NULL)
        return append_tls(redis, args, err);
    return redisAppendCommandArgv(redis->context, (int)args->n, redis->argv, args->lengths) ==
               REDIS_OK ||
           fail_io(redis, err);
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
    if (redis->tls != NULL) {
        size_t n = redis->n_unsent;
        redis->n_unsent = 0;
        if (n == 0 || tl_tls_write(redis->tls, redis->unsent, n, err))
            return true;
        tl_redis_close(redis);
        return false;
    }
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
        {"LOADING", TL_ERR_LOADING},
        {"READONLY", TL_ERR_READONLY},
        {"MISCONF", TL_ERR_MISCONF},
        {"OOM", TL_ERR_OOM},
        {"NOGROUP", TL_ERR_NOGROUP},
        {"ERR Function not found", TL_ERR_NOFUNCTION},
        {"STALE", TL_ERR_STALE},
        {"ORDER", TL_ERR_ORDER},
        {"NOQUEUE", TL_ERR_NOQUEUE},
        {"RETIRED", TL_ERR_RETIRED},
        {"INVALID", TL_ERR_INVALID},
        {"MOVED", TL_ERR_MOVED},
        {"ASK", TL_ERR_MOVED},
        {"TRYAGAIN", TL_ERR_MOVED},
        {"CLUSTERDOWN", TL_ERR_MOVED},
        {"UNBLOCKED the hash slot", TL_ERR_MOVED},
        {"ERR Attempted to access a non local key", TL_ERR_MOVED}, /* half of the slot is here */
        {"ERR Script attempted to access a non local key", TL_ERR_MOVED},
        {"MASTERDOWN", TL_ERR_READONLY},
        {"ERR WAIT cannot be used with replica", TL_ERR_READONLY},
        {"ERR WAITAOF cannot be used with replica", TL_ERR_READONLY},
        {"ERR max number", TL_ERR_CONNECT},
        {"UNBLOCKED the stream key no longer exists", TL_ERR_NOGROUP}, /* to XREADGROUP */
        {"UNBLOCKED", TL_ERR_READONLY},
        {"NOREPLICAS", TL_ERR_MISCONF},
        {"BUSY Redis", TL_ERR_LOADING}, /* a function runs too long */
        {"NOPERM", TL_ERR_DENIED},
        {"ERR The user executing the script can't", TL_ERR_DENIED}, /* in a function, Redis 7.0 */
        {"ERR ACL failure in script", TL_ERR_DENIED},
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
    while (redisGetReplyFromReader(redis->context, &answer) == REDIS_OK && answer == NULL)
        if (!tl_redis_flush(redis, err) || !receive(redis, err))
            return NULL;
    if (answer == NULL) {
        fail_io(redis, err);
        return NULL;
    }
    redisReply *reply = answer;
    if (reply->type == REDIS_REPLY_ERROR) {
        enum tl_error_kind kind = error_reply_kind(reply->str);
        tl_error_set(err, kind, "the store answered: %.250s", reply->str);
        freeReplyObject(reply);
        redis->disowned = redis->disowned || kind == TL_ERR_MOVED;
        if (kind == TL_ERR_READONLY)
            leave_replica(redis);
        return NULL;
    }
    return (struct tl_reply *)reply;
}

bool tl_redis_await(struct tl_redis *redis, int64_t wait_ms, struct tl_reply **message,
                    struct tl_error *err)
{
    int64_t until_ms = tl_clock_ms() + wait_ms;
    void *answer = NULL;
    *message = NULL;
    while (redisGetReplyFromReader(redis->context, &answer) == REDIS_OK) {
        *message = answer;
        if (answer != NULL)
            return true;
        int64_t left_ms = until_ms - tl_clock_ms();
        struct pollfd socket = {.fd = redis->context->fd, .events = POLLIN};
        if (poll(&socket, 1, left_ms > 0 ? (int)left_ms : 0) <= 0)
            return true;
        if (!receive(redis, err))
            return false;
    }
    return fail_io(redis, err);
}

bool tl_redis_readable(const struct tl_redis *redis)
{
    const redisReader *reader = redis->context->reader;
    struct pollfd socket = {.fd = redis->context->fd, .events = POLLIN};
    return reader->pos < reader->len || poll(&socket, 1, 0) > 0;
}

void tl_redis_await_any(struct tl_redis *const *all, size_t n, int64_t wait_ms)
{
    struct pollfd sockets[TL_STORE_NODES_MAX];
    nfds_t n_sockets = 0;
    for (size_t i = 0; i < n && i < TL_STORE_NODES_MAX; i++)
        if (all[i] != NULL && all[i]->context != NULL)
            sockets[n_sockets++] = (struct pollfd){.fd = all[i]->context->fd, .events = POLLIN};
    (void)poll(sockets, n_sockets, (int)wait_ms);
}

struct tl_reply *tl_redis_call_blocking(struct tl_redis *redis, const struct tl_args *args,
                                        int64_t block_ms, struct tl_error *err)
{
    if (!append(redis, args, block_ms, err))
        return NULL;
    redis->blocks = true;
    struct tl_reply *reply = tl_redis_next(redis, err);
    redis->blocks = false;
    return reply;
}

struct tl_reply *tl_redis_call(struct tl_redis *redis, const struct tl_args *args,
                               struct tl_error *err)
{
    int64_t started_us = tl_clock_us();
    if (!tl_redis_append(redis, args, err))
        return NULL;
    struct tl_reply *reply = tl_redis_next(redis, err);
    if (redis->measured != NULL)
        redis->measured(redis->measured_context, tl_clock_us() - started_us);
    return reply;
}

struct tl_reply *tl_redis_once(struct tl_redis *redis, struct tl_args *args, struct tl_error *err)
{
    struct tl_reply *reply = tl_redis_call(redis, args, err);
    tl_args_free(args);
    return reply;
}

struct tl_reply *tl_ask(struct tl_redis *redis, struct tl_error *err, const char *first, ...)
{
    struct tl_args args = {0};
    va_list list;
    va_start(list, first);
    for (const char *text = first; text != NULL; text = va_arg(list, const char *))
        tl_args_str(&args, text);
    va_end(list);
    return tl_redis_once(redis, &args, err);
}

bool tl_redis_time(struct tl_redis *redis, int64_t *now_us, struct tl_error *err)
{
    struct tl_reply *reply = tl_ask(redis, err, "TIME", NULL);
    if (reply == NULL)
        return false;
    *now_us = tl_reply_signed(reply, 0) * 1000000 + tl_reply_signed(reply, 1);
    tl_reply_free(reply);
    return true;
}

bool tl_redis_do(struct tl_redis *redis, const struct tl_args *args, struct tl_error *err)
{
    struct tl_reply *reply = tl_redis_call(redis, args, err);
    tl_reply_free(reply);
    return reply != NULL;
}
