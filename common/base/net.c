/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/net.h"
#include "common/base/units.h"

enum { TEXT_MAX = 80, ADDRESS_BITS = 128, IPV4_START = 96 };

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

/* An address without a port or brackets. */
static bool parse_bare(const char *text, struct tl_address *address)
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
    if (parse_bare(bare, address))
        return true;
    char *colon = strrchr(bare, ':');
    if (bare[0] == '[') {
        char *end = strchr(bare, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':'))
            return false;
        *end = '\0';
        return parse_bare(bare + 1, address);
    }
    if (colon == NULL || strchr(bare, '.') == NULL)
        return false;
    *colon = '\0';
    return parse_bare(bare, address);
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

/* ---- prefixes ---- */

_Static_assert(sizeof(struct tl_prefix) == sizeof(struct tl_address) + 1, "it has padding");

static struct tl_prefix cut(const struct tl_address *address, unsigned bits)
{
    struct tl_prefix prefix = {.address = *address, .bits = (unsigned char)bits};
    for (unsigned bit = bits; bit < ADDRESS_BITS; bit = (bit / 8 + 1) * 8) {
        unsigned kept = 0xff00U >> bit % 8; /* the first bit % 8 bits of the byte */
        prefix.address.bytes[bit / 8] &= (unsigned char)kept;
    }
    return prefix;
}

struct tl_prefix tl_prefix_of(const struct tl_address *address, unsigned v4_bits, unsigned v6_bits)
{
    return cut(address, tl_address_is_ipv4(address) ? IPV4_START + v4_bits : v6_bits);
}

bool tl_prefix_parse(const char *text, struct tl_prefix *prefix, struct tl_error *err)
{
    char bare[TL_PREFIX_TEXT_MAX];
    struct tl_address address;
    uint64_t bits = ADDRESS_BITS;
    size_t length = strcspn(text, "/");
    bool ok = length < sizeof(bare);
    if (ok) {
        memcpy(bare, text, length);
        bare[length] = '\0';
        ok = parse_bare(bare, &address);
    }
    if (ok && text[length] == '/') {
        unsigned start = strchr(bare, ':') == NULL ? IPV4_START : 0;
        ok = tl_number_parse(text + length + 1, &bits, NULL) && bits <= ADDRESS_BITS - start;
        bits += start;
    }
    if (!ok)
        return tl_error_set(err, TL_ERR_INVALID,
                            "\"%.60s\" is not an IP address or network such as 10.0.0.0/8", text);
    *prefix = cut(&address, (unsigned)bits);
    return true;
}

void tl_prefix_format(const struct tl_prefix *prefix, char text[TL_PREFIX_TEXT_MAX])
{
    const unsigned char *bytes = prefix->address.bytes;
    char address[INET6_ADDRSTRLEN] = "";
    bool v4 = prefix->bits >= IPV4_START && tl_address_is_ipv4(&prefix->address);
    (void)inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? bytes + IPV4_START / 8 : bytes, address,
                    sizeof(address));
    if (prefix->bits == ADDRESS_BITS)
        snprintf(text, TL_PREFIX_TEXT_MAX, "%s", address);
    else
        snprintf(text, TL_PREFIX_TEXT_MAX, "%s/%u", address,
                 prefix->bits - (v4 ? (unsigned)IPV4_START : 0));
}

bool tl_prefix_contains(const struct tl_prefix *prefix, const struct tl_address *address)
{
    size_t bytes = prefix->bits / 8;
    unsigned rest = prefix->bits % 8;
    const unsigned char *own = prefix->address.bytes;
    return memcmp(own, address->bytes, bytes) == 0 &&
           (rest == 0 || (own[bytes] ^ address->bytes[bytes]) >> (8 - rest) == 0);
}

/* ---- sets ---- */

struct tl_networks {
    size_t n;
    struct tl_prefix list[];
};

struct tl_networks *tl_networks_parse(const char *text, struct tl_error *err)
{
    char *copy = strdup(text);
    size_t most = strlen(text) / 2 + 1; /* a word and a space each */
    struct tl_networks *networks = calloc(1, sizeof(*networks) + most * sizeof(networks->list[0]));
    bool ok = copy != NULL && networks != NULL;
    if (!ok)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for a list of networks");
    char *rest = NULL;
    for (char *word = ok ? strtok_r(copy, " ", &rest) : NULL; ok && word != NULL;
         word = strtok_r(NULL, " ", &rest))
        ok = tl_prefix_parse(word, &networks->list[networks->n++], err);
    free(copy);
    if (!ok)
        tl_networks_free(&networks);
    return networks;
}

void tl_networks_free(struct tl_networks **networks)
{
    free(*networks);
    *networks = NULL;
}

bool tl_networks_overlap(const struct tl_networks *networks, const struct tl_prefix *prefix)
{
    for (size_t i = 0; i < networks->n; i++) {
        if (tl_prefix_contains(&networks->list[i], &prefix->address) ||
            tl_prefix_contains(prefix, &networks->list[i].address))
            return true;
    }
    return false;
}

bool tl_networks_contain(const struct tl_networks *networks, const struct tl_address *address)
{
    for (size_t i = 0; i < networks->n; i++) {
        if (tl_prefix_contains(&networks->list[i], address))
            return true;
    }
    return false;
}
