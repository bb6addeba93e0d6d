/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signature of what hooks are sent: HMAC-SHA-256 by a secret that both sides know, over the
 * time and the body, so that neither can be changed, nor an old delivery be sent again later.
 */
#ifndef TL_SIGNATURE_H
#define TL_SIGNATURE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

enum {
    TL_SECRETS_MAX = 2, /* of a hook: while it is changed, both sign */
    TL_SIGNATURE_TEXT_MAX = 192,
};

struct tl_signer;

/* Reads the secrets, one a line, of 16 to 256 characters; a missing file is made with a random one.
 * NULL with err. */
struct tl_signer *tl_signer_load(const char *path, struct tl_error *err);
void tl_signer_free(struct tl_signer **signer); /* wipes them */

/* Writes the header's value "t=SECONDS,v1=HEX", with another v1 for a second secret. What is signed
 * is "SECONDS.BODY". */
void tl_signer_sign(const struct tl_signer *signer, int64_t seconds, const char *body,
                    size_t length, char text[TL_SIGNATURE_TEXT_MAX]);

#endif
