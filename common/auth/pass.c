/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>
#include <sodium.h>

#include "common/auth/base64.h"
#include "common/auth/pass.h"
#include "common/auth/secret_file.h"
#include "common/base/big_endian.h"
#include "common/wire/names.h"

_Static_assert((int)TL_JWT_SECRET_MIN <= (int)TL_SECRET_KEY_BYTES,
               "a key that is made can be read");

enum { ID_BYTES = 16 };

/* ---- keys ---- */

static const char heading[] =
    "# Keys that sign passes: the first of the configured algorithm signs, all verify. To rotate,\n"
    "# add the new key at the end, send SIGHUP, wait until every checker of passes knows it,\n"
    "# move it to the front, send SIGHUP; remove the old key when its passes have expired.\n";

static bool create_file(const char *path, enum tl_jwt_algorithm algorithm, struct tl_error *err)
{
    static const char what[] = "a new key that signs passes";
    char text[sizeof(heading) + TL_EC_PEM_MAX + 64];
    size_t used =
        (size_t)snprintf(text, sizeof(text), "%s%08" PRIx32 " %s%c", heading, randombytes_random(),
                         tl_jwt_algorithm_name(algorithm), algorithm == TL_JWT_ES256 ? '\n' : ' ');
    if (algorithm == TL_JWT_HS256)
        return tl_secret_create_key(path, text, what, err);
    bool made = tl_ec_key_generate(text + used, err) &&
                tl_secret_create(path, text, strlen(text), what, err);
    sodium_memzero(text, sizeof(text));
    return made;
}

struct tl_jwt_keys *tl_pass_keys_load(const char *path, enum tl_jwt_algorithm algorithm,
                                      bool create, struct tl_error *err)
{
    if (create && !create_file(path, algorithm, err))
        return NULL;
    struct tl_jwt_keys *keys = tl_jwt_keys_load(path, TL_JWT_SIGN, err);
    if (keys != NULL && !tl_jwt_keys_choose_signer(keys, algorithm)) {
        tl_error_set(err, TL_ERR_INVALID,
                     "%s: holds no %s key to sign passes with; add one, or choose the algorithm of "
                     "a key it holds",
                     path, tl_jwt_algorithm_name(algorithm));
        tl_jwt_keys_free(&keys);
    }
    return keys;
}

/* ---- passes ---- */

void tl_pass_id(const char *queue, uint64_t generation, tl_place place, char id[TL_PASS_ID_MAX + 1])
{
    unsigned char numbers[16];
    unsigned char hash[ID_BYTES];
    crypto_generichash_state state;
    tl_put_be(numbers, generation, 8);
    tl_put_be(numbers + 8, place, 8);
    (void)crypto_generichash_init(&state, NULL, 0, sizeof(hash));
    (void)crypto_generichash_update(&state, numbers, sizeof(numbers));
    (void)crypto_generichash_update(&state, (const unsigned char *)queue, strlen(queue));
    (void)crypto_generichash_final(&state, hash, sizeof(hash));
    tl_base64_encode(hash, sizeof(hash), id);
}

/* Printable ASCII: nothing that JSON would write in more than two characters, so a pass fits. */
static bool signable(const char *issuer, const char *queue, const struct tl_pass *pass)
{
    return pass->issued > 0 && pass->expires >= pass->issued && pass->expires <= TL_JWT_TIME_MAX &&
           pass->generation != 0 && pass->place != 0 && pass->event != 0 &&
           tl_printable(issuer, strlen(issuer), TL_PASS_ISSUER_MAX) &&
           tl_queue_name_valid(queue, strlen(queue)) &&
           tl_visitor_valid(pass->visitor, strlen(pass->visitor)) &&
           tl_visitor_valid(pass->id, strlen(pass->id));
}

/* False for a claim that is missing or no positive whole number. */
static bool take_number(const json_t *claims, const char *name, uint64_t *number)
{
    json_int_t value = json_integer_value(json_object_get(claims, name));
    *number = (uint64_t)value;
    return value > 0;
}

bool tl_pass_sign(const struct tl_jwt_keys *keys, const char *issuer, const char *queue,
                  const struct tl_pass *pass, char text[TL_PASS_MAX], struct tl_error *err)
{
    if (!signable(issuer, queue, pass))
        return tl_error_set(err, TL_ERR_INVALID,
                            "this cannot be put into a pass: issuer, queue, visitor, id, times or "
                            "place");
    json_t *claims =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "iss", issuer, "aud", queue,
                  "sub", pass->visitor, "jti", pass->id, "iat", (json_int_t)pass->issued, "exp",
                  (json_int_t)pass->expires, "gen", (json_int_t)pass->generation, "place",
                  (json_int_t)pass->place, "evt", (json_int_t)pass->event);
    bool ok = tl_jwt_write(keys->signer, "pass", claims, text, err);
    json_decref(claims);
    return ok;
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
    bool whole = take_number(token.claims, "gen", &pass->generation) &&
                 take_number(token.claims, "place", &pass->place) &&
                 take_number(token.claims, "evt", &pass->event);
    json_decref(token.claims);
    if (token.issued == 0)
        return tl_error_set(err, TL_ERR_INVALID, "the pass does not say when it was issued (iat)");
    if (!whole)
        return tl_error_set(err, TL_ERR_INVALID,
                            "the pass does not say what place it is for (gen, place, evt)");
    memcpy(pass->visitor, token.subject, sizeof(pass->visitor));
    memcpy(pass->id, token.id, sizeof(pass->id));
    pass->issued = token.issued;
    pass->expires = token.expires;
    return true;
}
