/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client behind proxies, and what each client holds of something scarce: connections, or
 * event streams and long polls.
 *
 * Those are counted here. A client is the prefix of an address: an IPv4 address, or an IPv6 /56. A
 * whole IPv6 /48 may hold four times as much. Only clients that hold something take memory. Not
 * thread-safe.
 */
#ifndef TL_CLIENTS_H
#define TL_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/net.h"

struct tl_clients;

/* The holder of one; kept by the holder until tl_clients_leave. All zero: not counted. */
struct tl_client {
    uint64_t customer, site;
};

/* most: per client; 0: no limit, nothing is counted. NULL when out of memory. */
struct tl_clients *tl_clients_new(uint64_t most);
void tl_clients_free(struct tl_clients **clients);

/* May the client hold one more? */
bool tl_clients_may(const struct tl_clients *clients, const struct tl_address *address);
/* Counts one more, also beyond the limit. When out of memory it is not counted. */
struct tl_client tl_clients_enter(struct tl_clients *clients, const struct tl_address *address);
/* Gives back what was counted. */
void tl_clients_leave(struct tl_clients *clients, struct tl_client client);

/* ---- X-Forwarded-For ---- */

/*
 * Walks X-Forwarded-For from its end, which the nearest proxy wrote, to the first address that is
 * not a trusted proxy: further to the left stands what that client wrote itself.
 * lines: the values of the header's lines in their order, which are one list. *address: at first
 * the other end of the connection, in the end the client; or the last trusted proxy, where the list
 * ends or has no address.
 */
void tl_forwarded_walk(const struct tl_networks *proxies, const char *const *lines, size_t n,
                       struct tl_address *address);

#endif
