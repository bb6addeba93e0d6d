/*
 * One blocking connection to Redis or Valkey. Hides hiredis (0.14 and 1.x): commands are argument
 * vectors, error replies become error kinds, scripts survive an emptied script cache.
 *
 * Life of a connection: created closed, opened by tl_redis_connect, closed by itself on any I/O
 * error or time-out. Then the outcome of what was under way is unknown, the caller waits as its
 * back-off says and connects again. Not thread-safe: one connection per thread.
 */
#ifndef TL_REDIS_H
#define TL_REDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/store/args.h"

struct tl_redis;
struct tl_reply; /* one reply; freed by tl_reply_free; parts of it are borrowed from it */

struct tl_redis_settings {
    const char
        *url; /* redis://[user:password@]host[:port][/db], unix:///path[?db=N], rediss:// (TLS) */
    const char *ca_file; /* for rediss://; NULL or "": the system's */
    int64_t
        timeout_ms; /* to connect, and for each command beyond the time it blocks by its own word */
};

/* Parses the URL; opens nothing. NULL with TL_ERR_INVALID for a URL that makes no sense (or TLS
 * without support for it), TL_ERR_NOMEM. Settings are copied. */
struct tl_redis *tl_redis_new(const struct tl_redis_settings *settings, struct tl_error *err);
void tl_redis_free(struct tl_redis **redis);

/* Opens the connection (AUTH, SELECT, CLIENT SETNAME included) unless it is open. */
bool tl_redis_connect(struct tl_redis *redis, struct tl_error *err);
void tl_redis_close(struct tl_redis *redis);
bool tl_redis_connected(const struct tl_redis *redis);
/* Grows with every successful connect: a change means that what was known may be out of date. */
uint64_t tl_redis_epoch(const struct tl_redis *redis);

/* Sends one command and returns its reply, or NULL with err. An error reply is an err of its kind;
 * the connection stays open after one. */
struct tl_reply *tl_redis_call(struct tl_redis *redis, const struct tl_args *args,
                               struct tl_error *err);
/* The same for a command that blocks up to block_ms by its own word (XREAD BLOCK). */
struct tl_reply *tl_redis_call_blocking(struct tl_redis *redis, const struct tl_args *args,
                                        int64_t block_ms, struct tl_error *err);
/* The same where the reply does not matter. */
bool tl_redis_do(struct tl_redis *redis, const struct tl_args *args, struct tl_error *err);

/* Pipelining: queue commands with append, then fetch exactly as many replies with next. */
bool tl_redis_append(struct tl_redis *redis, const struct tl_args *args, struct tl_error *err);
/* Sends what is queued now, so that the store can begin with it: otherwise the first next does.
 * Only where the replies to come are small: while both sides write, neither reads. */
bool tl_redis_flush(struct tl_redis *redis, struct tl_error *err);
struct tl_reply *tl_redis_next(struct tl_redis *redis, struct tl_error *err);

#endif
