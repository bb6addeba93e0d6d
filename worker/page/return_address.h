/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses a visitor may be sent to after the waiting page. */
#ifndef TL_RETURN_ADDRESS_H
#define TL_RETURN_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/origin.h"

/* Is this an absolute http or https address, in printable ASCII without characters that RFC 3986
 * forbids? Only such an address is put into a link. */
bool tl_address_valid(const char *address);

/* May the page send a visitor to `address`, which came with the request? Only to the origin
 * (scheme, host, port) of target_url or of one of the `allowed` addresses; target_url may be NULL
 * or "". Without this check `?return=` would be an open redirect (CWE-601). Addresses that
 * tl_origin_parse refuses are refused. */
bool tl_return_address_allowed(const char *address, const char *target_url,
                               const char *const *allowed, size_t n_allowed);

/* Appends text to an address as browsers would: spaces, quotes, letters beyond ASCII and the like
 * are percent-encoded. part: it is a name or a value of a query, in which "&", "=" and so on are
 * encoded, too. False: the address is too long, or the text has a control character or a backslash,
 * which programs take for different things. */
bool tl_address_append(char address[TL_ADDRESS_MAX], const char *text, bool part);

#endif
