/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IP addresses in one form, their first bits, and sets of networks. The first bits of an address
 * are one network, or one customer of a provider: a provider gives a customer one IPv4 address and,
 * usually, an IPv6 /56; a whole site has a /48.
 */
#ifndef TL_NET_H
#define TL_NET_H

#include <stdbool.h>
#include <string.h>

#include <sys/socket.h>

#include "common/base/error.h"

/* IPv6, with IPv4 mapped into it (RFC 4291, 2.5.5.2). */
struct tl_address {
    unsigned char bytes[16];
};

/* False unless the text is an IP address, as proxies write it: "1.2.3.4", "::1" or "[::1]", each
 * optionally with ":port" (but for a bare "::1"). */
bool tl_address_parse(const char *text, struct tl_address *address);
bool tl_address_from(const struct sockaddr *socket, struct tl_address *address);
bool tl_address_is_ipv4(const struct tl_address *address);
/* 127.0.0.0/8 or ::1. */
bool tl_address_is_loopback(const struct tl_address *address);

/* ---- prefixes ---- */

enum {
    TL_PREFIX_IPV4 = 32,      /* bits of one customer, IPv4 */
    TL_PREFIX_IPV6 = 56,      /* IPv6 */
    TL_PREFIX_IPV6_SITE = 48, /* the coarser level of IPv6 */
    TL_PREFIX_TEXT_MAX = 52,  /* bytes, with the terminating zero */
};

/* A value. It has no padding, and the bits after the prefix are zero: equal prefixes have equal
 * bytes, and the whole struct can be hashed. */
struct tl_prefix {
    struct tl_address address;
    unsigned char bits; /* 0 to 128, of the mapped form: an IPv4 /24 has 120 */
};

/* The prefix of an address: v4_bits (0 to 32) if it is IPv4, v6_bits (0 to 128) if it is IPv6. */
struct tl_prefix tl_prefix_of(const struct tl_address *address, unsigned v4_bits, unsigned v6_bits);
/* An address or a network in CIDR notation: "1.2.3.4", "1.2.3.0/24", "2001:db8::/56". Bits after
 * the prefix are dropped. TL_ERR_INVALID for any other text; err may be NULL. */
bool tl_prefix_parse(const char *text, struct tl_prefix *prefix, struct tl_error *err);
/* As tl_prefix_parse reads it: a whole address without "/bits". */
void tl_prefix_format(const struct tl_prefix *prefix, char text[TL_PREFIX_TEXT_MAX]);
bool tl_prefix_contains(const struct tl_prefix *prefix, const struct tl_address *address);

static inline bool tl_prefix_equal(const struct tl_prefix *a, const struct tl_prefix *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

/* ---- sets: "127.0.0.1 10.0.0.0/8 fd00::/8" ---- */

struct tl_networks;

/* Words separated by spaces, each an address or a network in CIDR notation. "" is the empty set.
 * NULL with TL_ERR_INVALID or TL_ERR_NOMEM. */
struct tl_networks *tl_networks_parse(const char *text, struct tl_error *err);
void tl_networks_free(struct tl_networks **networks); /* NULL allowed */

/* Has one of the networks an address in common with the prefix? */
bool tl_networks_overlap(const struct tl_networks *networks, const struct tl_prefix *prefix);
bool tl_networks_contain(const struct tl_networks *networks, const struct tl_address *address);

#endif
