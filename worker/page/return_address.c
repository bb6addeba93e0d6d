#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "worker/page/return_address.h"

/* Scheme, host and port: what the web calls an origin (RFC 6454). */
struct origin {
    bool secure;
    const char *host; /* borrowed; with the brackets of an IPv6 address */
    size_t host_length;
    unsigned port;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

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
    for (; is_digit(*at) && digits < 6; at++, digits++)
        number = number * 10 + (uint32_t)(*at - '0');
    if (digits == 0 || number == 0 || number > 65535)
        return false;
    *port = number;
    *text = at;
    return true;
}

static bool parse_origin(const char *address, struct origin *origin)
{
    if (strlen(address) >= TL_RETURN_ADDRESS_MAX)
        return false;
    for (const char *at = address; *at != '\0'; at++) {
        if (*at <= ' ' || *at >= 127 || strchr("\\\"<>^`{|}", *at) != NULL)
            return false;
    }
    if (strncasecmp(address, "https://", 8) == 0)
        origin->secure = true;
    else if (strncasecmp(address, "http://", 7) == 0)
        origin->secure = false;
    else
        return false;
    const char *at = address + (origin->secure ? 8 : 7);
    origin->host = at;
    origin->host_length = host_length(at);
    at += origin->host_length;
    if (origin->host_length == 0 || !parse_port(&at, origin->secure, &origin->port))
        return false;
    return *at == '\0' || *at == '/' || *at == '?' || *at == '#';
}

static bool same_origin(const struct origin *a, const struct origin *b)
{
    return a->secure == b->secure && a->port == b->port && a->host_length == b->host_length &&
           strncasecmp(a->host, b->host, a->host_length) == 0;
}

bool tl_address_valid(const char *address)
{
    struct origin origin;
    return parse_origin(address, &origin);
}

bool tl_return_address_allowed(const char *address, const char *target_url,
                               const char *const *allowed, size_t n_allowed)
{
    struct origin wanted;
    struct origin known;
    if (address == NULL || !parse_origin(address, &wanted))
        return false;
    if (target_url != NULL && parse_origin(target_url, &known) && same_origin(&wanted, &known))
        return true;
    for (size_t i = 0; i < n_allowed; i++) {
        if (parse_origin(allowed[i], &known) && same_origin(&wanted, &known))
            return true;
    }
    return false;
}
