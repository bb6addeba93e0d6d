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

struct ssl_ctx_st; /* the authorities trusted */
struct ssl_st;     /* one connection */

/* ca_file: certificates (PEM); "": those of the system. NULL with err. */
struct ssl_ctx_st *tl_tls_trust_new(const char *ca_file, struct tl_error *err);
void tl_tls_trust_free(struct ssl_ctx_st *trust);

/* Shakes hands with the host, a name or an IP address. NULL with err. The caller keeps the
 * descriptor, and closes it after the connection. */
struct ssl_st *tl_tls_open(struct ssl_ctx_st *trust, int fd, const char *host,
                           struct tl_error *err);
void tl_tls_close(struct ssl_st **tls);
/* Sends all bytes. */
bool tl_tls_write(struct ssl_st *tls, const char *bytes, size_t n, struct tl_error *err);
/* Waits for bytes, and returns how many came; 0 with err: none. */
size_t tl_tls_read(struct ssl_st *tls, char *bytes, size_t size, struct tl_error *err);

#endif
