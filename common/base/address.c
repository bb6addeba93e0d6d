/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "common/base/address.h"

enum { TEXT_MAX = 80 };

static const unsigned char ipv4_start[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static void set_ipv4(struct tl_address *address, const struct in_addr *v4)
{
    memcpy(address->bytes, ipv4_start, sizeof(ipv4_start));
    memcpy(address->bytes + sizeof(ipv4_start), v4, sizeof(*v4));
}

bool tl_address_is_ipv4(const struct tl_address *address)
{
    return memcmp(address->bytes, ipv4_start, sizeof(ipv4_start)) == 0;
}

bool tl_address_parse_bare(const char *text, struct tl_address *address)
{
    struct in_addr v4;
    if (inet_pton(AF_INET, text, &v4) == 1) {
        set_ipv4(address, &v4);
        return true;
    }
    return inet_pton(AF_INET6, text, address->bytes) == 1;
}

bool tl_address_parse(const char *text, struct tl_address *address)
{
    char bare[TEXT_MAX];
    size_t length = strlen(text);
    if (length >= sizeof(bare))
        return false;
    memcpy(bare, text, length + 1);
    if (tl_address_parse_bare(bare, address))
        return true;
    char *colon = strrchr(bare, ':');
    if (bare[0] == '[') {
        char *end = strchr(bare, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':'))
            return false;
        *end = '\0';
        return tl_address_parse_bare(bare + 1, address);
    }
    if (colon == NULL || strchr(bare, '.') == NULL)
        return false;
    *colon = '\0';
    return tl_address_parse_bare(bare, address);
}

bool tl_address_is_loopback(const struct tl_address *address)
{
    static const struct tl_address ipv6 = {.bytes = {[15] = 1}};
    return tl_address_is_ipv4(address) ? address->bytes[12] == 127
                                       : memcmp(address, &ipv6, sizeof(ipv6)) == 0;
}

bool tl_address_from(const struct sockaddr *socket, struct tl_address *address)
{
    if (socket->sa_family == AF_INET) {
        set_ipv4(address, &((const struct sockaddr_in *)(const void *)socket)->sin_addr);
        return true;
    }
    if (socket->sa_family != AF_INET6)
        return false;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)socket;
    memcpy(address->bytes, &v6->sin6_addr, sizeof(address->bytes));
    return true;
}
