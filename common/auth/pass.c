#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <jwt.h>
#include <sodium.h>

#include "common/auth/jwt_key.h"
#include "common/auth/jwt_keys.h"
#include "common/auth/jwt_read.h"
#include "common/auth/pass.h"
#include "common/wire/names.h"

_Static_assert(TL_PASS_ID_MAX == TL_JWT_ID_MAX, "what is signed can be read");
_Static_assert(TL_PASS_MAX == TL_JWT_TEXT_MAX + 1, "what is signed can be read");

enum { ID_BYTES = 16 };

static void put(unsigned char *bytes, uint64_t value)
{
    for (int i = 7; i >= 0; i--, value >>= 8)
        bytes[i] = (unsigned char)value;
}

void tl_pass_id(const char *queue, uint64_t generation, tl_place place, char id[TL_PASS_ID_MAX + 1])
{
    unsigned char numbers[16];
    unsigned char hash[ID_BYTES];
    crypto_generichash_state state;
    put(numbers, generation);
    put(numbers + 8, place);
    (void)crypto_generichash_init(&state, NULL, 0, sizeof(hash));
    (void)crypto_generichash_update(&state, numbers, sizeof(numbers));
    (void)crypto_generichash_update(&state, (const unsigned char *)queue, strlen(queue));
    (void)crypto_generichash_final(&state, hash, sizeof(hash));
    sodium_bin2base64(id, TL_PASS_ID_MAX + 1, hash, sizeof(hash),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* Printable ASCII: nothing that JSON would write in more than two characters, so a pass fits. */
static bool signable(const char *issuer, const char *queue, const struct tl_pass *pass)
{
    size_t length = strlen(issuer);
    if (length == 0 || length > TL_PASS_ISSUER_MAX || pass->issued <= 0 ||
        pass->expires < pass->issued || pass->expires > TL_JWT_TIME_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (issuer[i] < ' ' || issuer[i] > '~')
            return false;
    }
    return tl_queue_name_valid(queue, strlen(queue)) &&
           tl_visitor_valid(pass->visitor, strlen(pass->visitor)) &&
           tl_visitor_valid(pass->id, strlen(pass->id));
}

bool tl_pass_sign(const struct tl_jwt_keys *keys, const char *issuer, const char *queue,
                  const struct tl_pass *pass, char text[TL_PASS_MAX], struct tl_error *err)
{
    if (!signable(issuer, queue, pass))
        return tl_error_set(err, TL_ERR_INVALID,
                            "this cannot be put into a pass: issuer, queue, visitor, id or times");
    jwt_t *jwt = NULL;
    if (jwt_new(&jwt) != 0)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for a pass");
    const struct tl_jwt_key *key = tl_jwt_keys_signer(keys);
    bool hs256 = key->algorithm == TL_JWT_HS256;
    const unsigned char *secret = hs256 ? key->secret : (const unsigned char *)key->ec.private_pem;
    size_t secret_length = hs256 ? key->secret_length : strlen(key->ec.private_pem);
    /* libjwt adds typ and alg. */
    bool filled =
        jwt_add_header(jwt, "kid", key->id) == 0 && jwt_add_grant(jwt, "iss", issuer) == 0 &&
        jwt_add_grant(jwt, "aud", queue) == 0 && jwt_add_grant(jwt, "sub", pass->visitor) == 0 &&
        jwt_add_grant(jwt, "jti", pass->id) == 0 &&
        jwt_add_grant_int(jwt, "iat", (long)pass->issued) == 0 &&
        jwt_add_grant_int(jwt, "exp", (long)pass->expires) == 0 &&
        jwt_set_alg(jwt, hs256 ? JWT_ALG_HS256 : JWT_ALG_ES256, secret, (int)secret_length) == 0;
    char *encoded = filled ? jwt_encode_str(jwt) : NULL;
    jwt_free(jwt);
    if (encoded == NULL)
        return tl_error_set(err, TL_ERR_SYSTEM, "a pass cannot be signed with key %s", key->id);
    size_t length = strlen(encoded);
    bool fits = length < TL_PASS_MAX;
    if (fits)
        memcpy(text, encoded, length + 1);
    free(encoded);
    return fits || tl_error_set(err, TL_ERR_INVALID, "the pass is longer than %d characters",
                                TL_PASS_MAX - 1);
}

bool tl_pass_verify(const struct tl_jwt_keys *keys, const char *issuer, const char *queue,
                    const char *text, size_t length, int64_t now, struct tl_pass *pass,
                    struct tl_error *err)
{
    const struct tl_jwt_expect expect = {
        .what = "pass", .issuer = issuer, .audience = queue, .now = now};
    struct tl_jwt_token token;
    if (!tl_jwt_read(keys, &expect, text, length, &token, err))
        return false;
    json_decref(token.claims);
    if (token.issued == 0)
        return tl_error_set(err, TL_ERR_INVALID, "the pass does not say when it was issued (iat)");
    memcpy(pass->visitor, token.subject, sizeof(pass->visitor));
    memcpy(pass->id, token.id, sizeof(pass->id));
    pass->issued = token.issued;
    pass->expires = token.expires;
    return true;
}
