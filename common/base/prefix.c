/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/prefix.h"
#include "common/base/units.h"

enum { ADDRESS_BITS = 128, IPV4_START = 96 };

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
        ok = tl_address_parse_bare(bare, &address);
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
