/* Parsing of redis:// URLs. */
#ifndef TL_REDIS_URL_H
#define TL_REDIS_URL_H

#include <stdbool.h>

#include "common/base/error.h"

struct tl_redis_url {
    bool tls;
    char unix_path[108]; /* "" for TCP */
    char host[256];
    int port;
    int db;
    char user[128];     /* "" for none */
    char password[256]; /* "" for none */
};

/* redis://[user[:password]@]host[:port][/db], rediss:// likewise, unix:///path[?db=N]. user and
 * password may be percent-encoded; "redis://:secret@host" has a password only. The sentence of an
 * error never holds the password. */
bool tl_redis_url_parse(const char *text, struct tl_redis_url *url, struct tl_error *err);

#endif
