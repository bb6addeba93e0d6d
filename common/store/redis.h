/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One blocking connection to Redis or Valkey, of one thread. Hides hiredis (0.14 and 1.x): commands
 * are argument vectors, and error replies become error kinds.
 *
 * tl_redis_connect opens it; any I/O error or time-out closes it. Then the outcome of commands
 * already sent is unknown, and the caller backs off and connects again. A server that turns out to
 * be a replica is left in the same way (TL_ERR_READONLY): the address may lead to another one by
 * now.
 */
#ifndef TL_REDIS_H
#define TL_REDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/config/redis_url.h"
#include "common/store/args.h"

#define TL_STORE_NODES_MAX 128 /* masters of a cluster */

struct tl_config;
struct tl_redis;
struct tl_reply; /* one reply; freed by tl_reply_free; parts of it are borrowed from it */

struct tl_redis_settings {
    const char *url; /* as tl_redis_url_parse wants it; one with sentinels only for tl_store_new */
    const char *ca_file;    /* for rediss://; NULL or "": the system's */
    int64_t timeout_ms;     /* to connect, and for each command on top of its own blocking time */
    const char *key_prefix; /* names the slot of the keys of no queue; only for tl_store_new */
};

/* Those of the configuration, which stays the owner of the texts; with another address, unless url
 * is NULL. */
struct tl_redis_settings tl_redis_settings_of(const struct tl_config *config, const char *url);

/* Parses the URL and opens nothing. NULL with TL_ERR_INVALID for an invalid URL or ca_file, or with
 * TL_ERR_NOMEM. Settings are copied. */
struct tl_redis *tl_redis_new(const struct tl_redis_settings *settings, struct tl_error *err);
/* The same for a URL that was parsed before; settings->url is not used. */
struct tl_redis *tl_redis_new_at(const struct tl_redis_url *url,
                                 const struct tl_redis_settings *settings, struct tl_error *err);
/* A second connection to the server that this one leads to now, and must not outlive it. NULL with
 * TL_ERR_NOMEM. */
struct tl_redis *tl_redis_new_beside(const struct tl_redis *redis, struct tl_error *err);
void tl_redis_free(struct tl_redis **redis);
/* Where the next tl_redis_connect leads: to a server that must prove to be a master. Closes the
 * connection. Cuts off a host of more than 255 bytes. */
void tl_redis_lead_to(struct tl_redis *redis, const char *host, int port);

/* From now on this is one of the nodes of a cluster: what is wrong with it concerns the queues that
 * are on it, and no other. */
void tl_redis_set_node(struct tl_redis *redis);
bool tl_redis_is_node(const struct tl_redis *redis);
/* Has it answered since the last call that it does not serve a slot (TL_ERR_MOVED)? */
bool tl_redis_disowned(struct tl_redis *redis);

/* Calls `measured` after each command that neither blocks nor is of a pipeline, with the time until
 * its reply came, or until it failed, in microseconds. */
void tl_redis_measure(struct tl_redis *redis, void (*measured)(void *context, int64_t us),
                      void *context);

/* Opens the connection, including AUTH and SELECT, unless tl_redis_check finds it open. Call both
 * when no reply is due. */
bool tl_redis_connect(struct tl_redis *redis, struct tl_error *err);
/* Is the connection open? About once a second this asks the server whether it is still a master,
 * and leaves it if not. */
bool tl_redis_check(struct tl_redis *redis);
void tl_redis_close(struct tl_redis *redis);
bool tl_redis_connected(const struct tl_redis *redis);
/* "host:port", or the path of the socket. Valid until tl_redis_lead_to. */
const char *tl_redis_address(const struct tl_redis *redis);
/* Counts successful connects: a change means that what was known may be out of date. */
uint64_t tl_redis_epoch(const struct tl_redis *redis);

/* Sends one command and returns its reply, or NULL with err. An error reply becomes an error of its
 * kind and leaves the connection open, except for TL_ERR_READONLY. */
struct tl_reply *tl_redis_call(struct tl_redis *redis, const struct tl_args *args,
                               struct tl_error *err);
/* The same for a command that is sent once: frees args. */
struct tl_reply *tl_redis_once(struct tl_redis *redis, struct tl_args *args, struct tl_error *err);
/* The same for a command of texts; the last must be NULL. */
struct tl_reply *tl_ask(struct tl_redis *redis, struct tl_error *err, const char *first, ...)
    __attribute__((sentinel));
/* Unix time in microseconds by the clock of the store. */
bool tl_redis_time(struct tl_redis *redis, int64_t *now_us, struct tl_error *err);
/* tl_redis_call for a command that itself blocks up to block_ms (XREAD BLOCK). */
struct tl_reply *tl_redis_call_blocking(struct tl_redis *redis, const struct tl_args *args,
                                        int64_t block_ms, struct tl_error *err);
/* tl_redis_call when the reply does not matter. */
bool tl_redis_do(struct tl_redis *redis, const struct tl_args *args, struct tl_error *err);

/* Pipelining: append commands, then read exactly as many replies with next. */
bool tl_redis_append(struct tl_redis *redis, const struct tl_args *args, struct tl_error *err);
/* Sends the appended commands now, so that the store can start on them; otherwise the first next
 * sends them. Only for commands with small replies: while both sides write, neither reads. */
bool tl_redis_flush(struct tl_redis *redis, struct tl_error *err);
struct tl_reply *tl_redis_next(struct tl_redis *redis, struct tl_error *err);

/* After SUBSCRIBE: waits up to wait_ms for a message of the server. *message NULL: none came. */
bool tl_redis_await(struct tl_redis *redis, int64_t wait_ms, struct tl_reply **message,
                    struct tl_error *err);
/* Is there something to read? Then tl_redis_next waits for the rest of a reply at most. */
bool tl_redis_readable(const struct tl_redis *redis);
/* Waits up to wait_ms until one of these, at most TL_STORE_NODES_MAX, of which some may be NULL or
 * closed, has something to read. */
void tl_redis_await_any(struct tl_redis *const *all, size_t n, int64_t wait_ms);

#endif
