/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of redis:// URLs. */
#ifndef TL_REDIS_URL_H
#define TL_REDIS_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

/* Sentinels, or nodes of a cluster, in one URL. */
#define TL_SENTINELS_MAX 9

struct tl_redis_address {
    char host[256];
    int port;
};

bool tl_redis_address_equal(const struct tl_redis_address *a, const struct tl_redis_address *b);

struct tl_redis_url {
    bool tls;
    char unix_path[108]; /* "" for TCP */
    char host[256];      /* "" for a socket path, with sentinels, and of a cluster */
    int port;
    struct tl_redis_address sentinels[TL_SENTINELS_MAX]; /* they know the address... */
    size_t n_sentinels;                                  /* 0: none */
    bool cluster;    /* ...or they are nodes of a Redis Cluster, and know the others */
    char master[64]; /* its name at the sentinels */
    int db;
    char user[128];     /* "" for none */
    char password[256]; /* "" for none */
};

/* redis://[user[:password]@]host[:port][/db], rediss:// likewise, unix:///path[?db=N], and
 * redis+sentinel:// or rediss+sentinel://[user[:password]@]host[:port],.../master[/db], and
 * redis+cluster:// or rediss+cluster://[user[:password]@]host[:port],... user and password may be
 * percent-encoded; "redis://:secret@host" has a password only. The sentence of an
 * error never holds the password. */
bool tl_redis_url_parse(const char *text, struct tl_redis_url *url, struct tl_error *err);

#endif
