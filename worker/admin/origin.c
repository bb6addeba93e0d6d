/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/base/net.h"
#include "common/base/origin.h"
#include "worker/admin/origin.h"

/* The origin that a browser would name for this host; the scheme does not matter here. */
static bool origin_of_host(const char *host, char text[TL_ADDRESS_MAX], struct tl_origin *origin)
{
    int length = snprintf(text, TL_ADDRESS_MAX, "http://%s", host);
    return length > 0 && length < TL_ADDRESS_MAX && strcspn(host, "/?#") == strlen(host) &&
           tl_origin_parse(text, origin);
}

static bool same_name(const struct tl_origin *a, const struct tl_origin *b)
{
    return a->host_length == b->host_length && strncasecmp(a->host, b->host, a->host_length) == 0;
}

bool tl_admin_host_allowed(const struct tl_admin_head *head, const char *public_url)
{
    char text[TL_ADDRESS_MAX];
    struct tl_origin host, allowed;
    struct tl_address address;
    if (head->host == NULL || !origin_of_host(head->host, text, &host))
        return false;
    return tl_address_parse(head->host, &address) ||
           (tl_origin_parse("http://localhost", &allowed) && same_name(&host, &allowed)) ||
           (public_url[0] != '\0' && tl_origin_parse(public_url, &allowed) &&
            same_name(&host, &allowed));
}

bool tl_admin_host_loopback(const struct tl_admin_head *head)
{
    char text[TL_ADDRESS_MAX];
    struct tl_origin host, local;
    struct tl_address address;
    if (head->host == NULL || !origin_of_host(head->host, text, &host))
        return false;
    return (tl_address_parse(head->host, &address) && tl_address_is_loopback(&address)) ||
           (tl_origin_parse("http://localhost", &local) && same_name(&host, &local));
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
