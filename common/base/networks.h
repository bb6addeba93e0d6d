/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of IP networks: "127.0.0.1 10.0.0.0/8 fd00::/8". */
#ifndef TL_NETWORKS_H
#define TL_NETWORKS_H

#include <stdbool.h>

#include "common/base/address.h"
#include "common/base/error.h"
#include "common/base/prefix.h"

struct tl_networks;

/* Words separated by spaces, each an address or a network in CIDR notation. "" is the empty set.
 * NULL with TL_ERR_INVALID or TL_ERR_NOMEM. */
struct tl_networks *tl_networks_parse(const char *text, struct tl_error *err);
void tl_networks_free(struct tl_networks **networks); /* NULL allowed */

/* Has one of the networks an address in common with the prefix? */
bool tl_networks_overlap(const struct tl_networks *networks, const struct tl_prefix *prefix);
bool tl_networks_contain(const struct tl_networks *networks, const struct tl_address *address);

#endif
