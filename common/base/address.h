/* SPDX-License-Identifier: Apache-2.0 */
/* IP addresses in one form. */
#ifndef TL_ADDRESS_H
#define TL_ADDRESS_H

#include <stdbool.h>

#include <sys/socket.h>

/* IPv6, with IPv4 mapped into it (RFC 4291, 2.5.5.2). */
struct tl_address {
    unsigned char bytes[16];
};

/* False unless the text is an IP address: "1.2.3.4" or "::1". */
bool tl_address_parse_bare(const char *text, struct tl_address *address);
/* As proxies write it: also "[::1]", and each optionally with ":port". */
bool tl_address_parse(const char *text, struct tl_address *address);
bool tl_address_from(const struct sockaddr *socket, struct tl_address *address);
bool tl_address_is_ipv4(const struct tl_address *address);
/* 127.0.0.0/8 or ::1. */
bool tl_address_is_loopback(const struct tl_address *address);

#endif
