/* Where a visitor may be sent after the waiting page. */
#ifndef TL_RETURN_ADDRESS_H
#define TL_RETURN_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#define TL_RETURN_ADDRESS_MAX 1024 /* bytes, with the terminating zero */

/* Absolute http or https address made of the printable characters an address may have: what may
 * stand in a link at all. */
bool tl_address_sound(const char *address);

/* May the page send a visitor to `address`, which came from outside? Only to the origin (scheme,
 * host, port) of target_url or of one of the `allowed` addresses; target_url may be NULL or "".
 * Without this check `?return=` would be an open redirect (CWE-601). Whatever browsers and servers
 * are known to read differently is refused: relative addresses, backslashes, user names, control
 * characters, escapes in the host. */
bool tl_return_address_allowed(const char *address, const char *target_url,
                               const char *const *allowed, size_t n_allowed);

#endif
