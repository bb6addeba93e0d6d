/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Web Tokens (RFC 7519, RFC 8725) in the compact form. What is read is strict base64url
 * without duplicate names. The header chooses a key by `kid` and nothing else: the key fixes the
 * algorithm, and a header that names another is refused before any signature is computed.
 */
#ifndef TL_JWT_H
#define TL_JWT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "common/auth/jwt_keys.h"
#include "common/base/error.h"
#include "common/base/json_text.h"
#include "common/wire/names.h"

#define TL_JWT_TEXT_MAX 2048                  /* a longer token is refused unread */
#define TL_JWT_SIZE     (TL_JWT_TEXT_MAX + 1) /* bytes of a token, with the terminating zero */
#define TL_JWT_ID_MAX   64                    /* bytes of a jti, without the terminating zero */
#define TL_JWT_LEEWAY_S 30 /* seconds by which the clocks of signer and reader may differ */
#define TL_JWT_TIME_MAX INT64_C(253402300799) /* the end of the year 9999 */

/* What makes a token the one we expect. */
struct tl_jwt_expect {
    const char *what;     /* for messages: "pass", "invite" */
    const char *issuer;   /* exact `iss`; NULL: any or none */
    const char *audience; /* exact `aud` */
    int64_t now;          /* Unix time in seconds */
};

/* Unix seconds; 0 where absent. */
struct tl_jwt_times {
    int64_t issued, not_before;
    int64_t expires; /* never absent */
};

struct tl_jwt_token {
    char subject[TL_VISITOR_MAX + 1]; /* a valid visitor */
    char id[TL_JWT_ID_MAX + 1];       /* printable, not empty */
    struct tl_jwt_times times;
    json_t *claims; /* all of them; the caller's to json_decref */
};

/* Verifies the signature first, then the claims: `aud`, `sub`, `jti` and `exp` are required, `iss`
 * as expected, `nbf` and `iat` respected when present, others are ignored. On failure err holds a
 * sentence that repeats nothing of the token, and nothing is to be freed. */
bool tl_jwt_read(const struct tl_jwt_keys *keys, const struct tl_jwt_expect *expect,
                 const char *text, size_t length, struct tl_jwt_token *token, struct tl_error *err);

/* Is a token with these times valid at the time that is expected? Otherwise err says why not. */
bool tl_jwt_in_time(const struct tl_jwt_expect *expect, const struct tl_jwt_times *times,
                    struct tl_error *err);

/* Does reading this token take the verification of a signature with a public key, a hundred times
 * as long as the rest? Not if it was found genuine before, or is refused at once. */
bool tl_jwt_is_costly(const struct tl_jwt_keys *keys, const char *text, size_t length);

/* Writes the claims, signed with the key. claims: an object that is not ended yet; it is here.
 * what: for messages, "pass" or "invite". Fails when they do not fit. */
bool tl_jwt_write(const struct tl_jwt_key *key, const char *what, struct tl_json *claims,
                  char text[TL_JWT_SIZE], struct tl_error *err);

#endif
