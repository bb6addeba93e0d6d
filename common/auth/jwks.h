/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing keys as a JSON Web Key Set (RFC 7517). */
#ifndef TL_JWKS_H
#define TL_JWKS_H

#include "common/auth/jwt_keys.h"
#include "common/base/error.h"

/* The text for /.well-known/jwks.json: the public halves of all ES256 keys, including those that do
 * not sign yet. Never a secret, so with HS256 alone the set is empty. The caller frees it. NULL
 * with TL_ERR_NOMEM. */
char *tl_jwks_write(const struct tl_jwt_keys *keys, struct tl_error *err);

#endif
