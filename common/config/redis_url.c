/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/config/redis_url.h"

bool tl_redis_address_equal(const struct tl_redis_address *a, const struct tl_redis_address *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

static bool bad(struct tl_error *err, const char *what)
{
    return tl_error_set(
        err, TL_ERR_INVALID,
        "redis url: %s; expected redis://[user:password@]host[:port][/db], rediss://..., "
        "redis+sentinel://[user:password@]host[:port],.../master[/db], "
        "redis+cluster://[user:password@]host[:port],... or unix:///path",
        what);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Copies [from, to) into out, resolving %XX. False when it does not fit or a %XX is broken. */
static bool copy_decoded(const char *from, const char *to, char *out, size_t size)
{
    size_t n = 0;
    while (from < to) {
        if (n + 1 >= size)
            return false;
        if (*from != '%') {
            out[n++] = *from++;
            continue;
        }
        if (to - from < 3 || hex_value(from[1]) < 0 || hex_value(from[2]) < 0)
            return false;
        int byte = hex_value(from[1]) * 16 + hex_value(from[2]);
        if (byte == 0)
            return false;
        out[n++] = (char)byte;
        from += 3;
    }
    out[n] = '\0';
    return true;
}

/* Digits only, within [0, limit]. */
static bool parse_number(const char *text, const char *end, int limit, int *value)
{
    if (text == end || end - text > 9)
        return false;
    int number = 0;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return false;
        number = number * 10 + (*text - '0');
    }
    *value = number;
    return number <= limit;
}

static bool parse_unix(const char *path, struct tl_redis_url *url, struct tl_error *err)
{
    const char *end = strchr(path, '?');
    size_t length = end != NULL ? (size_t)(end - path) : strlen(path);
    if (length == 0 || path[0] != '/')
        return bad(err, "the socket path must be absolute");
    if (length >= sizeof(url->unix_path))
        return bad(err, "the socket path is longer than 107 bytes");
    memcpy(url->unix_path, path, length);
    url->unix_path[length] = '\0';
    if (end == NULL)
        return true;
    if (strncmp(end, "?db=", 4) != 0 ||
        !parse_number(end + 4, end + strlen(end), 1000000, &url->db))
        return bad(err, "only ?db=NUMBER may follow a socket path");
    return true;
}

static bool parse_host(const char *from, const char *end, char host[256], int *port,
                       struct tl_error *err)
{
    const char *host_end = end;
    const char *port_text = NULL;
    if (from < end && *from == '[') {
        host_end = memchr(from, ']', (size_t)(end - from));
        if (host_end == NULL)
            return bad(err, "a '[' without ']'");
        from++;
        if (host_end + 1 < end && host_end[1] != ':')
            return bad(err, "only ':port' may follow ']'");
        port_text = host_end + 1 < end ? host_end + 2 : NULL;
    } else {
        const char *colon = memchr(from, ':', (size_t)(end - from));
        if (colon != NULL) {
            host_end = colon;
            port_text = colon + 1;
        }
    }
    size_t length = (size_t)(host_end - from);
    if (length == 0 || length >= 256)
        return bad(err, "the host is missing or too long");
    memcpy(host, from, length);
    host[length] = '\0';
    if (port_text != NULL && (!parse_number(port_text, end, 65535, port) || *port == 0))
        return bad(err, "the port must be 1 to 65535");
    return true;
}

static bool parse_hosts(const char *from, const char *end, int port, struct tl_redis_url *url,
                        struct tl_error *err)
{
    for (;;) {
        const char *comma = memchr(from, ',', (size_t)(end - from));
        if (url->n_sentinels == TL_SENTINELS_MAX)
            return bad(err, "more than 9 addresses");
        struct tl_redis_address *sentinel = &url->sentinels[url->n_sentinels++];
        sentinel->port = port;
        if (!parse_host(from, comma != NULL ? comma : end, sentinel->host, &sentinel->port, err))
            return false;
        if (comma == NULL)
            return true;
        from = comma + 1;
    }
}

/* Reads "/master" at *path and moves it behind. Sentinel allows the same characters. */
static bool parse_master(const char **path, struct tl_redis_url *url, struct tl_error *err)
{
    const char *name = *path != NULL ? *path + 1 : "";
    size_t length = strcspn(name, "/");
    if (length == 0 || length >= sizeof(url->master))
        return bad(err, "the name of the master after the sentinels is missing or too long");
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && strchr(".-_", name[i]) == NULL)
            return bad(err, "the name of a master holds only A-Z a-z 0-9 . - _");
    memcpy(url->master, name, length);
    url->master[length] = '\0';
    *path = name[length] == '/' ? name + length : NULL;
    return true;
}

bool tl_redis_url_parse(const char *text, struct tl_redis_url *url, struct tl_error *err)
{
    static const struct {
        const char *prefix;
        bool tls, sentinels, cluster;
    } schemes[] = {
        {"redis://", false, false, false},         {"rediss://", true, false, false},
        {"redis+sentinel://", false, true, false}, {"rediss+sentinel://", true, true, false},
        {"redis+cluster://", false, false, true},  {"rediss+cluster://", true, false, true}};
    const size_t n = sizeof(schemes) / sizeof(schemes[0]);
    *url = (struct tl_redis_url){.port = 6379};
    if (strncmp(text, "unix://", 7) == 0)
        return parse_unix(text + 7, url, err);
    size_t i = 0;
    while (i < n && strncmp(text, schemes[i].prefix, strlen(schemes[i].prefix)) != 0)
        i++;
    if (i == n)
        return bad(err, "unknown scheme");
    const char *rest = text + strlen(schemes[i].prefix);
    url->tls = schemes[i].tls;
    const char *path = strchr(rest, '/');
    const char *end = path != NULL ? path : rest + strlen(rest);
    const char *at = memrchr(rest, '@', (size_t)(end - rest));
    if (at != NULL) {
        const char *colon = memchr(rest, ':', (size_t)(at - rest));
        if (!copy_decoded(rest, colon != NULL ? colon : at, url->user, sizeof(url->user)))
            return bad(err, "the user name is too long or badly encoded");
        if (colon != NULL && !copy_decoded(colon + 1, at, url->password, sizeof(url->password)))
            return bad(err, "the password is too long or badly encoded");
        rest = at + 1;
    }
    if (schemes[i].sentinels) {
        if (!parse_hosts(rest, end, 26379, url, err) || !parse_master(&path, url, err))
            return false;
    } else if (schemes[i].cluster) {
        url->cluster = true;
        if (!parse_hosts(rest, end, 6379, url, err))
            return false;
        if (path != NULL && path[1] != '\0')
            return bad(err, "a cluster has no databases to choose from");
    } else if (!parse_host(rest, end, url->host, &url->port, err)) {
        return false;
    }
    if (path != NULL && path[1] != '\0' &&
        !parse_number(path + 1, path + strlen(path), 1000000, &url->db))
        return bad(err, "the database after '/' must be a number");
    return true;
}
