/* SPDX-License-Identifier: Apache-2.0 */
/* The client behind proxies: X-Forwarded-For. */
#ifndef TL_FORWARDED_H
#define TL_FORWARDED_H

#include <stddef.h>

#include "common/base/net.h"

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
