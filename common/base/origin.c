/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "common/base/origin.h"

/* The length of the host at the start of text; 0 when there is none. */
static size_t host_length(const char *text)
{
    if (text[0] != '[')
        return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");
    size_t n = strspn(text + 1, "0123456789abcdefABCDEF:.") + 1;
    return n > 1 && text[n] == ']' ? n + 1 : 0;
}

/* Parses ":8080", or nothing for the default port of the scheme, and moves *text past it. */
static bool parse_port(const char **text, bool secure, unsigned *port)
{
    *port = secure ? 443 : 80;
    if (**text != ':')
        return true;
    const char *at = *text + 1;
    uint32_t number = 0;
    size_t digits = 0;
    for (; *at >= '0' && *at <= '9' && digits < 6; at++, digits++)
        number = number * 10 + (uint32_t)(*at - '0');
    if (digits == 0 || number == 0 || number > 65535)
        return false;
    *port = number;
    *text = at;
    return true;
}

/* Parses scheme, host and port, and returns what follows them; NULL: not valid. */
static const char *parse(const char *address, struct tl_origin *origin)
{
    if (strncasecmp(address, "https://", 8) == 0)
        origin->secure = true;
    else if (strncasecmp(address, "http://", 7) == 0)
        origin->secure = false;
    else
        return NULL;
    const char *at = address + (origin->secure ? 8 : 7);
    origin->host = at;
    origin->host_length = host_length(at);
    at += origin->host_length;
    return origin->host_length > 0 && parse_port(&at, origin->secure, &origin->port) ? at : NULL;
}

bool tl_origin_parse(const char *address, struct tl_origin *origin)
{
    if (strlen(address) >= TL_ADDRESS_MAX)
        return false;
    for (const char *at = address; *at != '\0'; at++) {
        if (*at <= ' ' || *at >= 127 || strchr("\\\"<>^`{|}", *at) != NULL)
            return false;
    }
    const char *rest = parse(address, origin);
    return rest != NULL && (*rest == '\0' || *rest == '/' || *rest == '?' || *rest == '#');
}

bool tl_origin_same(const struct tl_origin *a, const struct tl_origin *b)
{
    return a->secure == b->secure && a->port == b->port && a->host_length == b->host_length &&
           strncasecmp(a->host, b->host, a->host_length) == 0;
}

/* ---- lists ---- */

/* The next origin of the list, and moves *list past it. False at the end of the list, or at *list
 * where something is no origin. */
static bool next(const char **list, struct tl_origin *origin)
{
    const char *text = *list + strspn(*list, " ");
    const char *rest = *text != '\0' ? parse(text, origin) : NULL;
    *list = text;
    if (rest == NULL || (*rest != ' ' && *rest != '\0'))
        return false;
    *list = rest;
    return true;
}

bool tl_origins_valid(const char *list, struct tl_error *err)
{
    struct tl_origin origin;
    while (next(&list, &origin))
        ;
    return *list == '\0' ||
           tl_error_set(err, TL_ERR_INVALID,
                        "\"%.*s\" is not an origin: \"https://shop.example\" or "
                        "\"http://localhost:3000\", without a path, separated by spaces",
                        (int)strcspn(list, " "), list);
}

bool tl_origins_contain(const char *list, const struct tl_origin *origin)
{
    struct tl_origin listed;
    while (next(&list, &listed)) {
        if (tl_origin_same(&listed, origin))
            return true;
    }
    return false;
}
