/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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

enum { ID_BYTES = 16, KNOWN_PASSES = 8192, DIGEST_BYTES = 32 };

/* A pass that was read before. A gateway sends the same one with every request of a visitor, and to
 * read its claims takes as long as all else that answers. A table of fixed size, in which a later
 * one takes the place of an earlier one. */
struct tl_known_pass {
    unsigned char digest[DIGEST_BYTES]; /* of its text, and whom it was read for; all zero: empty */
    struct tl_jwt_times times;
    struct tl_pass pass;
};

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
    if (keys != NULL) /* without memory each is read whenever it comes */
        keys->passes = calloc(KNOWN_PASSES, sizeof(*keys->passes));
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
    char bytes[TL_JWT_SIZE];
    struct tl_json claims;
    tl_json_begin(&claims, bytes, sizeof(bytes));
    tl_json_string(&claims, "iss", issuer);
    tl_json_string(&claims, "aud", queue);
    tl_json_string(&claims, "sub", pass->visitor);
    tl_json_string(&claims, "jti", pass->id);
    tl_json_uint(&claims, "iat", (uint64_t)pass->issued);
    tl_json_uint(&claims, "exp", (uint64_t)pass->expires);
    tl_json_uint(&claims, "gen", pass->generation);
    tl_json_uint(&claims, "place", pass->place);
    tl_json_uint(&claims, "evt", pass->event);
    return tl_jwt_write(keys->signer, "pass", &claims, text, err);
}

/* Where a pass that was read for this issuer and queue is remembered, and its digest. Needs a
 * table. */
static struct tl_known_pass *place_of(const struct tl_jwt_keys *keys,
                                      const struct tl_jwt_expect *expect, const char *text,
                                      size_t length, unsigned char digest[DIGEST_BYTES])
{
    crypto_generichash_state state;
    (void)crypto_generichash_init(&state, NULL, 0, DIGEST_BYTES);
    /* With the zero behind each, which no issuer nor queue has in it. */
    (void)crypto_generichash_update(&state, (const unsigned char *)expect->issuer,
                                    strlen(expect->issuer) + 1);
    (void)crypto_generichash_update(&state, (const unsigned char *)expect->audience,
                                    strlen(expect->audience) + 1);
    (void)crypto_generichash_update(&state, (const unsigned char *)text, length);
    (void)crypto_generichash_final(&state, digest, DIGEST_BYTES);
    return &keys->passes[tl_get_be(digest, sizeof(uint64_t)) % KNOWN_PASSES];
}

static bool read_pass(const struct tl_jwt_keys *keys, const struct tl_jwt_expect *expect,
                      const char *text, size_t length, struct tl_known_pass *read,
                      struct tl_error *err)
{
    struct tl_pass *pass = &read->pass;
    struct tl_jwt_token token;
    if (!tl_jwt_read(keys, expect, text, length, &token, err))
        return false;
    bool whole = take_number(token.claims, "gen", &pass->generation) &&
                 take_number(token.claims, "place", &pass->place) &&
                 take_number(token.claims, "evt", &pass->event);
    json_decref(token.claims);
    if (token.times.issued == 0)
        return tl_error_set(err, TL_ERR_INVALID, "the pass does not say when it was issued (iat)");
    if (!whole)
        return tl_error_set(err, TL_ERR_INVALID,
                            "the pass does not say what place it is for (gen, place, evt)");
    memcpy(pass->visitor, token.subject, sizeof(pass->visitor));
    memcpy(pass->id, token.id, sizeof(pass->id));
    pass->issued = token.times.issued;
    pass->expires = token.times.expires;
    read->times = token.times;
    return true;
}

bool tl_pass_verify(const struct tl_jwt_keys *keys, const char *issuer, const char *queue,
                    const char *text, size_t length, int64_t now, struct tl_pass *pass,
                    struct tl_error *err)
{
    const struct tl_jwt_expect expect = {
        .what = "pass", .issuer = issuer, .audience = queue, .now = now};
    struct tl_known_pass read = {0}, *place = NULL;
    if (keys->passes != NULL)
        place = place_of(keys, &expect, text, length, read.digest);
    if (place != NULL && memcmp(place->digest, read.digest, DIGEST_BYTES) == 0) {
        *pass = place->pass;
        return tl_jwt_in_time(&expect, &place->times, err);
    }
    if (!read_pass(keys, &expect, text, length, &read, err))
        return false;
    *pass = read.pass;
    if (place != NULL)
        *place = read;
    return true;
}
