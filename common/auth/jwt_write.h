/* SPDX-License-Identifier: Apache-2.0 */
/* Signing a JSON Web Token (RFC 7519) in the compact form that common/auth/jwt_read.h reads. */
#ifndef TL_JWT_WRITE_H
#define TL_JWT_WRITE_H

#include <stdbool.h>

#include <jansson.h>

#include "common/auth/jwt_key.h"
#include "common/auth/jwt_read.h"
#include "common/base/error.h"

#define TL_JWT_SIZE (TL_JWT_TEXT_MAX + 1) /* bytes of a token, with the terminating zero */

/* Writes the claims, signed with the key; claims are borrowed, and NULL counts as out of memory.
 * what: for messages, "pass" or "invite". */
bool tl_jwt_write(const struct tl_jwt_key *key, const char *what, const json_t *claims,
                  char text[TL_JWT_SIZE], struct tl_error *err);

#endif
