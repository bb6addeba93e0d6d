/* Sets of IP networks: "127.0.0.1 10.0.0.0/8 fd00::/8". */
#ifndef TL_NETWORKS_H
#define TL_NETWORKS_H

#include <stdbool.h>

#include <sys/socket.h>

#include "common/base/error.h"

struct tl_networks;

/* Words separated by spaces, each an address or a network in CIDR notation. "" is the empty set.
 * NULL with TL_ERR_INVALID or TL_ERR_NOMEM. */
struct tl_networks *tl_networks_parse(const char *text, struct tl_error *err);
void tl_networks_free(struct tl_networks **networks); /* NULL allowed */

/* An address in one form: IPv6, with IPv4 mapped into it (RFC 4291, 2.5.5.2). */
struct tl_address {
    unsigned char bytes[16];
};
/* False unless the text is an IP address ("1.2.3.4", "::1", "[::1]", each optionally with ":port").
 */
bool tl_address_parse(const char *text, struct tl_address *address);
bool tl_address_from(const struct sockaddr *socket, struct tl_address *address);

bool tl_networks_contain(const struct tl_networks *networks, const struct tl_address *address);

/* The part of an address that identifies one customer: all of an IPv4 address, the /64 of an IPv6
 * address. */
struct tl_address tl_address_site(const struct tl_address *address);

#endif
