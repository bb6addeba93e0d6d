/* SPDX-License-Identifier: Apache-2.0 */
/* Passes: what an admitted visitor shows the site, JSON Web Tokens that any library can check
 * (docs/integrators/passes.md). */
#ifndef TL_PASS_H
#define TL_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/jwt.h"
#include "common/base/error.h"
#include "common/wire/names.h"
#include "common/wire/place.h"

#define TL_PASS_MAX        TL_JWT_SIZE   /* bytes of a pass's text, with the terminating zero */
#define TL_PASS_ID_MAX     TL_JWT_ID_MAX /* bytes of a jti, without the terminating zero */
#define TL_PASS_ISSUER_MAX 255           /* bytes of an issuer, printable ASCII */

struct tl_pass {
    char visitor[TL_VISITOR_MAX + 1];
    char id[TL_PASS_ID_MAX + 1]; /* see tl_pass_id */
    int64_t issued;              /* Unix seconds */
    int64_t expires;             /* Unix seconds */
    uint64_t generation;         /* of the queue */
    tl_place place;              /* the visitor was called from it */
    uint64_t event;              /* of the queue: the session was active after it */
};

/* Reads the keys (common/auth/jwt_keys.h). The first key of the algorithm signs, every key
 * verifies, so a key can be listed before it signs and after. With create, a missing file is made
 * with one key of the algorithm, mode 0600, safely against other processes doing the same at once.
 */
struct tl_jwt_keys *tl_pass_keys_load(const char *path, enum tl_jwt_algorithm algorithm,
                                      bool create, struct tl_error *err);

/* The id of an admission: a queue, its generation and the place the visitor was called from. A site
 * that lets each id in once lets each admission in once, however often its pass is asked for. */
void tl_pass_id(const char *queue, uint64_t generation, tl_place place,
                char id[TL_PASS_ID_MAX + 1]);

/* Writes the pass, NUL-terminated. Fails with TL_ERR_INVALID when the pass could not be verified
 * again, and when memory runs out. */
bool tl_pass_sign(const struct tl_jwt_keys *keys, const char *issuer, const char *queue,
                  const struct tl_pass *pass, char text[TL_PASS_MAX], struct tl_error *err);

/* True for a genuine pass of this issuer and queue that has not expired, 30 s of clock difference
 * allowed; now in Unix seconds. Otherwise err says why, in words that may be shown. */
bool tl_pass_verify(const struct tl_jwt_keys *keys, const char *issuer, const char *queue,
                    const char *text, size_t length, int64_t now, struct tl_pass *pass,
                    struct tl_error *err);

#endif
