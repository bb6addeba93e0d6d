/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS to the store, on a connected socket: the certificate must come from a trusted authority and
 * be of the host that the address names. hiredis 0.14 of Debian 12 has no TLS, and later ones do
 * not verify the name, so this is OpenSSL itself. Blocking: the socket's own time limits hold.
 */
#ifndef TL_TLS_H
#define TL_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

struct tl_tls_trust; /* the authorities trusted */
struct tl_tls;       /* one connection */

/* ca_file: certificates (PEM); "": those of the system. NULL with err. */
struct tl_tls_trust *tl_tls_trust_new(const char *ca_file, struct tl_error *err);
void tl_tls_trust_free(struct tl_tls_trust **trust);

/* Shakes hands with the host, a name or an IP address. NULL with err. The caller keeps the
 * descriptor, and closes it after the connection. */
struct tl_tls *tl_tls_open(const struct tl_tls_trust *trust, int fd, const char *host,
                           struct tl_error *err);
void tl_tls_close(struct tl_tls **tls);
/* Sends all bytes. */
bool tl_tls_write(struct tl_tls *tls, const char *bytes, size_t n, struct tl_error *err);
/* Waits for bytes, and returns how many came; 0 with err: none. */
size_t tl_tls_read(struct tl_tls *tls, char *bytes, size_t size, struct tl_error *err);

#endif
