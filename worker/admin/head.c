/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/base/net.h"
#include "common/base/origin.h"
#include "worker/admin/head.h"
#include "worker/http/clients.h"

enum { FORWARDED_LINES_MAX = 16 };

struct lines {
    const char *values[FORWARDED_LINES_MAX];
    size_t n;
};

/* Keeps the last ones, which the nearest proxies wrote. */
static enum MHD_Result add_line(void *context, enum MHD_ValueKind kind, const char *name,
                                const char *value)
{
    struct lines *lines = context;
    (void)kind;
    if (strcasecmp(name, "X-Forwarded-For") != 0 || value == NULL)
        return MHD_YES;
    if (lines->n == FORWARDED_LINES_MAX)
        memmove(lines->values, lines->values + 1, --lines->n * sizeof(*lines->values));
    lines->values[lines->n++] = value;
    return MHD_YES;
}

struct cookies {
    const char *name;
    struct tl_admin_head *head;
};

static enum MHD_Result add_cookie(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    const struct cookies *cookies = context;
    struct tl_admin_head *head = cookies->head;
    (void)kind;
    if (value != NULL && strcmp(name, cookies->name) == 0)
        head->cookies[head->n_cookies++] = value;
    return head->n_cookies < TL_ADMIN_COOKIES_MAX ? MHD_YES : MHD_NO;
}

static void read_client(struct tl_admin_head *head, struct MHD_Connection *connection,
                        const struct tl_networks *proxies)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct lines lines = {.n = 0};
    if (info == NULL || info->client_addr == NULL ||
        !tl_address_from(info->client_addr, &head->address))
        return; /* all zero: such clients count as one */
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, add_line, &lines);
    if (proxies != NULL)
        tl_forwarded_walk(proxies, lines.values, lines.n, &head->address);
}

void tl_admin_head_read(struct tl_admin_head *head, struct MHD_Connection *connection,
                        const char *method, const char *target, bool secure,
                        const struct tl_networks *proxies)
{
    const struct {
        const char **field;
        const char *name;
    } headers[] = {
        {&head->authorization, "Authorization"},
        {&head->csrf, TL_ADMIN_CSRF_HEADER},
        {&head->host, "Host"},
        {&head->origin, "Origin"},
        {&head->site, "Sec-Fetch-Site"},
        {&head->content_type, "Content-Type"},
        {&head->if_match, "If-Match"},
        {&head->idempotency_key, "Idempotency-Key"},
    };
    *head = (struct tl_admin_head){.method = method, .target = target};
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        *headers[i].field =
            MHD_lookup_connection_value(connection, MHD_HEADER_KIND, headers[i].name);
    struct cookies cookies = {.name = secure ? TL_ADMIN_COOKIE_SECURE : TL_ADMIN_COOKIE,
                              .head = head};
    (void)MHD_get_connection_values(connection, MHD_COOKIE_KIND, add_cookie, &cookies);
    read_client(head, connection, proxies);
    const struct tl_prefix whole = tl_prefix_of(&head->address, 32, 128);
    char text[TL_PREFIX_TEXT_MAX];
    tl_prefix_format(&whole, text);
    memcpy(head->client, text, strlen(text) + 1);
}

size_t tl_admin_head_path(const struct tl_admin_head *head)
{
    return strcspn(head->target, "?");
}

/* ---- requests that other web sites make a browser send ---- */

/* The origin that a browser would name for this host; the scheme does not matter here. */
static bool origin_of_host(const char *host, char text[TL_ADDRESS_MAX], struct tl_origin *origin)
{
    int length = snprintf(text, TL_ADDRESS_MAX, "http://%s", host);
    return length > 0 && length < TL_ADDRESS_MAX && strcspn(host, "/?#") == strlen(host) &&
           tl_origin_parse(text, origin);
}

/* Is the host of the request this one? */
static bool is_host(const struct tl_origin *host, const char *url)
{
    struct tl_origin other;
    return tl_origin_parse(url, &other) && host->host_length == other.host_length &&
           strncasecmp(host->host, other.host, host->host_length) == 0;
}

bool tl_admin_host_allowed(const struct tl_admin_head *head, const char *public_url)
{
    char text[TL_ADDRESS_MAX];
    struct tl_origin host;
    struct tl_address address;
    return head->host != NULL && origin_of_host(head->host, text, &host) &&
           (tl_address_parse(head->host, &address) || is_host(&host, "http://localhost") ||
            is_host(&host, public_url));
}

bool tl_admin_host_loopback(const struct tl_admin_head *head)
{
    char text[TL_ADDRESS_MAX];
    struct tl_origin host;
    struct tl_address address;
    return head->host != NULL && origin_of_host(head->host, text, &host) &&
           ((tl_address_parse(head->host, &address) && tl_address_is_loopback(&address)) ||
            is_host(&host, "http://localhost"));
}

bool tl_admin_origin_own(const struct tl_admin_head *head, const char *public_url)
{
    char text[TL_ADDRESS_MAX];
    struct tl_origin origin, host;
    if (head->site != NULL && strcmp(head->site, "same-origin") != 0 &&
        strcmp(head->site, "none") != 0)
        return false;
    if (head->origin == NULL)
        return true;
    if (!tl_origin_parse(head->origin, &origin))
        return false; /* also "null" */
    if (public_url[0] != '\0' && tl_origin_parse(public_url, &host) &&
        tl_origin_same(&origin, &host))
        return true;
    if (head->host == NULL || !origin_of_host(head->host, text, &host))
        return false;
    /* Whether the browser came by https is known to the proxy alone. */
    host.port = strchr(head->host, ':') == NULL && origin.secure ? 443 : host.port;
    host.secure = origin.secure;
    return tl_origin_same(&origin, &host);
}
