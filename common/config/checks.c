/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/base/net.h"
#include "common/base/origin.h"
#include "common/config/checks.h"
#include "common/config/redis_url.h"
#include "common/wire/names.h"

static bool has_space(const char *value)
{
    return *value != '\0' && !tl_printable(value, strlen(value), SIZE_MAX);
}

/* An address a browser is sent to. Only these schemes: another (javascript:) would run in the
 * visitor's page. */
bool tl_check_url(const char *value, struct tl_error *err)
{
    const char *host = NULL;
    if (strncmp(value, "https://", 8) == 0)
        host = value + 8;
    else if (strncmp(value, "http://", 7) == 0)
        host = value + 7;
    if (*value != '\0' && (host == NULL || strchr("/?#", *host) != NULL || has_space(value)))
        return tl_error_set(err, TL_ERR_INVALID,
                            "not an address that starts with http:// or https:// and names a host, "
                            "in ASCII without spaces");
    return true;
}

/* Paths are appended to it. */
bool tl_check_public_url(const char *value, struct tl_error *err)
{
    if (!tl_check_url(value, err))
        return false;
    if (strpbrk(value, "?#") != NULL || value[strlen(value) - 1] == '/')
        return tl_error_set(err, TL_ERR_INVALID,
                            "paths are appended to this address: leave off the \"/\" at its end, "
                            "\"?\" and \"#\"");
    return true;
}

bool tl_check_admin_url(const char *value, struct tl_error *err)
{
    struct tl_origin origin;
    if (*value == '\0')
        return true;
    if (!tl_check_public_url(value, err))
        return false;
    return tl_origin_parse(value, &origin) ||
           tl_error_set(err, TL_ERR_INVALID, "not the address of a web site");
}

bool tl_check_postgres_url(const char *value, struct tl_error *err)
{
    return value[0] == '\0' || strncmp(value, "postgresql://", 13) == 0 ||
           strncmp(value, "postgres://", 11) == 0 ||
           tl_error_set(err, TL_ERR_INVALID, "must begin with postgresql://");
}

bool tl_check_redis_url(const char *value, struct tl_error *err)
{
    struct tl_redis_url url;
    if (*value == '\0')
        return true;
    return tl_redis_url_parse(value, &url, err);
}

bool tl_check_networks(const char *value, struct tl_error *err)
{
    struct tl_networks *networks = tl_networks_parse(value, err);
    bool ok = networks != NULL;
    tl_networks_free(&networks);
    return ok;
}

/* A brace would move the hash tag that keeps the keys of a queue together. */
bool tl_check_prefix(const char *value, struct tl_error *err)
{
    if (has_space(value) || strpbrk(value, "{}") != NULL)
        return tl_error_set(err, TL_ERR_INVALID, "must be ASCII without spaces and braces");
    return true;
}

static bool is_local(const struct tl_origin *origin)
{
    static const char *const names[] = {"127.0.0.1", "[::1]", "localhost"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strlen(names[i]) == origin->host_length &&
            strncasecmp(names[i], origin->host, origin->host_length) == 0)
            return true;
    return false;
}

bool tl_check_service_url(const char *value, struct tl_error *err)
{
    struct tl_origin origin;
    if (*value == '\0')
        return true;
    /* The script's origin becomes part of a policy, where these characters would end it. */
    if (!tl_origin_parse(value, &origin) || strpbrk(value, ";,'#") != NULL)
        return tl_error_set(err, TL_ERR_INVALID,
                            "not an address that starts with https:// and names a host, in ASCII "
                            "without spaces, quotes, \";\", \",\" and \"#\"");
    if (!origin.secure && !is_local(&origin))
        return tl_error_set(err, TL_ERR_INVALID,
                            "must be https://; http:// is for 127.0.0.1, [::1] and localhost only");
    return true;
}

bool tl_check_webhook_url(const char *value, struct tl_error *err)
{
    struct tl_origin origin;
    return *value == '\0' || (tl_origin_parse(value, &origin) && strpbrk(value, "#@") == NULL) ||
           tl_error_set(err, TL_ERR_INVALID,
                        "not an address that starts with https:// and names a host, in ASCII "
                        "without spaces, \"@\" and \"#\"");
}

bool tl_url_is_local(const char *url)
{
    struct tl_origin origin;
    return tl_origin_parse(url, &origin) && is_local(&origin);
}

bool tl_url_is_protected(const char *url, const char *http_hosts)
{
    struct tl_origin origin;
    if (!tl_origin_parse(url, &origin))
        return false;
    if (origin.secure || is_local(&origin))
        return true;
    for (const char *at = http_hosts + strspn(http_hosts, " "); *at != '\0';) {
        size_t length = strcspn(at, " ");
        if (length == origin.host_length && strncasecmp(at, origin.host, length) == 0)
            return true;
        at += length + strspn(at + length, " ");
    }
    return false;
}

/* The file need not be here: other programs than the worker do without it. */
bool tl_check_timezone(const char *value, struct tl_error *err)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/_-+";
    char path[sizeof(TL_ZONE_FOLDER) + 256];
    if (*value == '\0')
        return true;
    const size_t length = strlen(value);
    if (*value == '/' || value[length - 1] == '/' || strspn(value, allowed) != length)
        return tl_error_set(err, TL_ERR_INVALID,
                            "not the name of a time zone, such as Asia/Seoul or Europe/Berlin");
    snprintf(path, sizeof(path), "%s/%s", TL_ZONE_FOLDER, value);
    return access(path, R_OK) == 0 || access(TL_ZONE_FOLDER, R_OK) != 0 ||
           tl_error_set(err, TL_ERR_INVALID, "there is no such time zone in " TL_ZONE_FOLDER);
}
