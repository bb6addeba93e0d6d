/* SPDX-License-Identifier: Apache-2.0 */
/* Origins of web addresses: scheme, host and port (RFC 6454). */
#ifndef TL_ORIGIN_H
#define TL_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

#define TL_ADDRESS_MAX 1024 /* bytes of a web address, with the terminating zero */

struct tl_origin {
    bool secure;      /* https, not http */
    const char *host; /* borrowed from the address; with the brackets of IPv6 */
    size_t host_length;
    unsigned port; /* the scheme's own when the address names none */
};

/* The origin of an absolute http or https address in printable ASCII. Forms that browsers and
 * servers are known to parse differently are refused: relative addresses, backslashes, user names,
 * control characters, escapes in the host. */
bool tl_origin_parse(const char *address, struct tl_origin *origin);
bool tl_origin_same(const struct tl_origin *a, const struct tl_origin *b);

/* Is this a list of origins ("https://shop.example http://localhost:3000") separated by spaces,
 * with nothing behind the port? */
bool tl_origins_valid(const char *list, struct tl_error *err);
/* Is the origin in a list that tl_origins_valid accepts? */
bool tl_origins_contain(const char *list, const struct tl_origin *origin);

#endif
