/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <sodium.h>

#include "common/auth/jwt_keys.h"
#include "common/auth/secret_file.h"

_Static_assert(TL_JWT_SIGNATURE_MAX >= TL_EC_HASH_BYTES, "an HMAC fits");
_Static_assert(TL_JWT_SIGNATURE_MAX == TL_EC_SIGNATURE_BYTES, "an ES256 signature fits");
_Static_assert(TL_EC_HASH_BYTES == crypto_hash_sha256_BYTES, "what is signed");

enum {
    PEM_BYTES_MAX = 4096,
    BASE64 = sodium_base64_VARIANT_URLSAFE_NO_PADDING,
    COORDINATE_TEXT = sodium_base64_ENCODED_LEN(TL_EC_COORDINATE_BYTES, BASE64),
};

const char *tl_jwt_algorithm_name(enum tl_jwt_algorithm algorithm)
{
    return algorithm == TL_JWT_HS256 ? "HS256" : "ES256";
}

/* ---- one key ---- */

/* HMAC-SHA256 by OpenSSL, which uses the processor's instructions for it: a fifth of libsodium's
 * time. NULL on failure. */
static EVP_MAC_CTX *new_mac(const unsigned char *secret, size_t length)
{
    char digest[] = OSSL_DIGEST_NAME_SHA2_256;
    const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                 OSSL_PARAM_construct_end()};
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL);
    EVP_MAC_CTX *mac = hmac != NULL ? EVP_MAC_CTX_new(hmac) : NULL;
    EVP_MAC_free(hmac);
    if (mac != NULL && EVP_MAC_init(mac, secret, length, params) == 1)
        return mac;
    EVP_MAC_CTX_free(mac);
    return NULL;
}

static bool make_mac(const struct tl_jwt_key *key, const char *text, size_t length,
                     unsigned char mac[TL_EC_HASH_BYTES])
{
    size_t made = 0;
    return EVP_MAC_init(key->mac, NULL, 0, NULL) == 1 &&
           EVP_MAC_update(key->mac, (const unsigned char *)text, length) == 1 &&
           EVP_MAC_final(key->mac, mac, &made, TL_EC_HASH_BYTES) == 1 && made == TL_EC_HASH_BYTES;
}

size_t tl_jwt_key_sign(const struct tl_jwt_key *key, const char *text, size_t length,
                       unsigned char signature[TL_JWT_SIGNATURE_MAX])
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    if (key->algorithm == TL_JWT_HS256)
        return make_mac(key, text, length, signature) ? TL_EC_HASH_BYTES : 0;
    crypto_hash_sha256(hash, (const unsigned char *)text, length);
    return tl_ec_key_sign(&key->ec, hash, signature) ? TL_EC_SIGNATURE_BYTES : 0;
}

bool tl_jwt_key_verify(const struct tl_jwt_key *key, const char *text, size_t length,
                       const unsigned char *signature, size_t signature_length)
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    if (key->algorithm == TL_JWT_HS256)
        return signature_length == sizeof(hash) && make_mac(key, text, length, hash) &&
               sodium_memcmp(hash, signature, sizeof(hash)) == 0;
    crypto_hash_sha256(hash, (const unsigned char *)text, length);
    return signature_length == TL_EC_SIGNATURE_BYTES && tl_ec_key_verify(&key->ec, hash, signature);
}

/* ---- sets ---- */

/* A key file being read. */
struct reader {
    const char *name;
    enum tl_jwt_use use;
    struct tl_error *err;
    char *rest;
    unsigned number; /* of the line taken last */
};

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Gathers the lines of one PEM block, which must come next. */
static bool read_pem(struct reader *reader, char pem[PEM_BYTES_MAX])
{
    size_t used = 0;
    char *line = NULL;
    bool begun = false;
    while (tl_secret_line(&reader->rest, &line, &reader->number)) {
        size_t length = strlen(line);
        if (!begun && !starts_with(line, "-----BEGIN "))
            break;
        begun = true;
        if (used + length + 2 > PEM_BYTES_MAX)
            return tl_error_set(reader->err, TL_ERR_INVALID, "%s:%u: too long for a P-256 key",
                                reader->name, reader->number);
        memcpy(pem + used, line, length);
        used += length;
        pem[used++] = '\n';
        pem[used] = '\0';
        if (starts_with(line, "-----END "))
            return true;
    }
    return tl_error_set(reader->err, TL_ERR_INVALID, "%s:%u: %s", reader->name, reader->number,
                        begun ? "the key breaks off: no line -----END ...-----"
                              : "expected a key in PEM below a line with ES256");
}

static bool read_ec(struct reader *reader, struct tl_ec_key *key)
{
    char pem[PEM_BYTES_MAX];
    unsigned first = reader->number;
    bool private = reader->use == TL_JWT_SIGN;
    bool ok = read_pem(reader, pem);
    if (ok && !private && strstr(pem, "PRIVATE KEY") != NULL)
        ok = tl_error_set(reader->err, TL_ERR_INVALID,
                          "%s:%u: a private key; only the signer may have it. Give its public "
                          "half: openssl pkey -in private.pem -pubout",
                          reader->name, first);
    else if (ok)
        ok = tl_ec_key_read(pem, private, key, reader->err) ||
             tl_error_prefix(reader->err, "%s:%u", reader->name, first);
    sodium_memzero(pem, sizeof(pem));
    return ok;
}

/* One key, whose first line is already taken. */
static bool read_key(struct reader *reader, char *line, struct tl_jwt_key *key)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    static const char blanks[] = " \t";
    char *save = NULL;
    const char *id = strtok_r(line, blanks, &save);
    const char *algorithm = strtok_r(NULL, blanks, &save);
    const char *secret = strtok_r(NULL, blanks, &save);
    const char *surplus = strtok_r(NULL, blanks, &save);
    bool hs256 = algorithm != NULL && strcmp(algorithm, "HS256") == 0;
    bool es256 = algorithm != NULL && strcmp(algorithm, "ES256") == 0 && secret == NULL;
    size_t length = id == NULL ? 0 : strlen(id);
    if (length == 0 || length > TL_JWT_KEY_ID_MAX || strspn(id, allowed) != length ||
        !(hs256 || es256) || surplus != NULL)
        return tl_error_set(reader->err, TL_ERR_INVALID,
                            "%s:%u: expected a key id of at most %d letters, digits, '.', '_' and "
                            "'-', then HS256 and hex digits, or ES256 and a key in PEM below",
                            reader->name, reader->number, TL_JWT_KEY_ID_MAX);
    memcpy(key->id, id, length + 1);
    key->algorithm = hs256 ? TL_JWT_HS256 : TL_JWT_ES256;
    if (es256)
        return read_ec(reader, &key->ec);
    size_t n = secret == NULL ? 0 : strlen(secret);
    if (n == 0 || n % 2 != 0 ||
        sodium_hex2bin(key->secret, sizeof(key->secret), secret, n, NULL, &key->secret_length,
                       NULL) != 0 ||
        key->secret_length < TL_JWT_SECRET_MIN)
        return tl_error_set(reader->err, TL_ERR_INVALID,
                            "%s:%u: expected a key of %d to %d hex digits after HS256; make one "
                            "with: openssl rand -hex 32",
                            reader->name, reader->number, 2 * TL_JWT_SECRET_MIN,
                            2 * TL_JWT_SECRET_MAX);
    key->mac = new_mac(key->secret, key->secret_length);
    return key->mac != NULL ||
           tl_error_set(reader->err, TL_ERR_SYSTEM, "OpenSSL cannot make an HMAC with SHA-256");
}

static bool read_keys(struct reader *reader, struct tl_jwt_keys *keys)
{
    struct tl_error *err = reader->err;
    char *line = NULL;
    while (tl_secret_line(&reader->rest, &line, &reader->number)) {
        unsigned first = reader->number;
        if (keys->n == TL_JWT_KEYS_MAX)
            return tl_error_set(err, TL_ERR_INVALID, "%s:%u: more than %d keys", reader->name,
                                first, TL_JWT_KEYS_MAX);
        struct tl_jwt_key *key = &keys->keys[keys->n];
        if (!read_key(reader, line, key))
            return false;
        if (tl_jwt_keys_find(keys, key->id, strlen(key->id)) != NULL)
            return tl_error_set(err, TL_ERR_INVALID, "%s:%u: key id %s is given twice",
                                reader->name, first, key->id);
        keys->n++;
    }
    return keys->n > 0 || tl_error_set(err, TL_ERR_INVALID, "%s: holds no key", reader->name);
}

struct tl_jwt_keys *tl_jwt_keys_none(struct tl_error *err)
{
    struct tl_jwt_keys *keys = NULL;
    if (sodium_init() < 0)
        tl_error_set(err, TL_ERR_SYSTEM, "libsodium cannot be initialised");
    else if ((keys = calloc(1, sizeof(*keys))) == NULL ||
             (keys->genuine = tl_genuine_new()) == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "no memory for keys");
        tl_jwt_keys_free(&keys);
    }
    return keys;
}

struct tl_jwt_keys *tl_jwt_keys_parse(const char *name, char *text, enum tl_jwt_use use,
                                      struct tl_error *err)
{
    struct reader reader = {.name = name, .use = use, .err = err, .rest = text};
    struct tl_jwt_keys *keys = tl_jwt_keys_none(err);
    if (keys != NULL && !read_keys(&reader, keys))
        tl_jwt_keys_free(&keys);
    return keys;
}

struct tl_jwt_keys *tl_jwt_keys_load(const char *path, enum tl_jwt_use use, struct tl_error *err)
{
    size_t length = 0;
    char *text = tl_secret_read(path, &length, NULL, err);
    if (text == NULL)
        return NULL;
    struct tl_jwt_keys *keys = tl_jwt_keys_parse(path, text, use, err);
    tl_secret_free(&text, length);
    return keys;
}

void tl_jwt_keys_free(struct tl_jwt_keys **keys)
{
    if (*keys == NULL)
        return;
    for (size_t i = 0; i < TL_JWT_KEYS_MAX; i++) { /* also of a set that was refused half-way */
        EVP_MAC_CTX_free((*keys)->keys[i].mac);
        tl_ec_key_free(&(*keys)->keys[i].ec);
    }
    tl_genuine_free(&(*keys)->genuine);
    free((*keys)->passes);
    sodium_memzero(*keys, sizeof(**keys));
    free(*keys);
    *keys = NULL;
}

const struct tl_jwt_key *tl_jwt_keys_find(const struct tl_jwt_keys *keys, const char *id,
                                          size_t length)
{
    for (size_t i = 0; i < keys->n; i++) {
        const struct tl_jwt_key *key = &keys->keys[i];
        if (strlen(key->id) == length && memcmp(key->id, id, length) == 0)
            return key;
    }
    return NULL;
}

bool tl_jwt_keys_choose_signer(struct tl_jwt_keys *keys, enum tl_jwt_algorithm algorithm)
{
    for (size_t i = 0; i < keys->n; i++) {
        if (keys->keys[i].algorithm == algorithm) {
            keys->signer = &keys->keys[i];
            return true;
        }
    }
    return false;
}

static bool same_key(const struct tl_jwt_key *a, const struct tl_jwt_key *b)
{
    if (a->algorithm != b->algorithm)
        return false;
    if (a->algorithm == TL_JWT_HS256) /* unused bytes are zero in both, as HMAC pads */
        return sodium_memcmp(a->secret, b->secret, sizeof(a->secret)) == 0;
    return memcmp(a->ec.x, b->ec.x, sizeof(a->ec.x)) == 0 &&
           memcmp(a->ec.y, b->ec.y, sizeof(a->ec.y)) == 0;
}

bool tl_jwt_keys_disjoint(const struct tl_jwt_keys *a, const struct tl_jwt_keys *b,
                          struct tl_error *err)
{
    for (size_t i = 0; i < a->n; i++) {
        for (size_t k = 0; k < b->n; k++) {
            if (same_key(&a->keys[i], &b->keys[k]))
                return tl_error_set(err, TL_ERR_INVALID,
                                    "key %s and key %s are the same: keys for different purposes "
                                    "must differ",
                                    a->keys[i].id, b->keys[k].id);
        }
    }
    return true;
}

static json_t *public_half(const struct tl_jwt_key *key)
{
    char x[COORDINATE_TEXT];
    char y[COORDINATE_TEXT];
    /* RFC 7518, 6.2.1: coordinates at full length, leading zeros too. */
    sodium_bin2base64(x, sizeof(x), key->ec.x, sizeof(key->ec.x), BASE64);
    sodium_bin2base64(y, sizeof(y), key->ec.y, sizeof(key->ec.y), BASE64);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "kty", "EC", "crv", "P-256", "x", x,
                     "y", y, "kid", key->id, "use", "sig", "alg", "ES256");
}

char *tl_jwt_keys_publish(const struct tl_jwt_keys *keys, struct tl_error *err)
{
    json_t *list = json_array();
    bool complete = list != NULL;
    for (size_t i = 0; complete && i < keys->n; i++)
        complete = keys->keys[i].algorithm != TL_JWT_ES256 ||
                   json_array_append_new(list, public_half(&keys->keys[i])) == 0;
    json_t *set = complete ? json_pack("{s:O}", "keys", list) : NULL;
    char *text = set == NULL ? NULL : json_dumps(set, JSON_COMPACT);
    json_decref(set);
    json_decref(list);
    if (text == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the key set");
    return text;
}
