/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>

#include "common/auth/jwt_key.h"
#include "common/auth/jwt_write.h"

/* Appends the bytes as base64url. False when they do not fit. */
static bool append(const unsigned char *bytes, size_t length, char text[TL_JWT_SIZE], size_t *used)
{
    size_t size = sodium_base64_encoded_len(length, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    if (size > TL_JWT_SIZE - *used)
        return false;
    sodium_bin2base64(text + *used, TL_JWT_SIZE - *used, bytes, length,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    *used += size - 1;
    return true;
}

static bool append_json(const json_t *object, char text[TL_JWT_SIZE], size_t *used)
{
    char bytes[TL_JWT_SIZE];
    size_t length = json_dumpb(object, bytes, sizeof(bytes), JSON_COMPACT);
    return length > 0 && length <= sizeof(bytes) &&
           append((const unsigned char *)bytes, length, text, used);
}

static bool append_dot(char text[TL_JWT_SIZE], size_t *used)
{
    if (*used + 1 >= TL_JWT_SIZE)
        return false;
    text[(*used)++] = '.';
    return true;
}

bool tl_jwt_write(const struct tl_jwt_key *key, const char *what, const json_t *claims,
                  char text[TL_JWT_SIZE], struct tl_error *err)
{
    json_t *header = json_pack("{s:s, s:s, s:s}", "typ", "JWT", "alg",
                               tl_jwt_algorithm_name(key->algorithm), "kid", key->id);
    unsigned char signature[TL_JWT_SIGNATURE_MAX];
    size_t used = 0;
    size_t length = 0;
    bool made = header != NULL && claims != NULL;
    bool fits = made && append_json(header, text, &used) && append_dot(text, &used) &&
                append_json(claims, text, &used);
    json_decref(header);
    if (!made)
        return tl_error_set(err, TL_ERR_NOMEM, "no memory for the %s", what);
    if (fits && (length = tl_jwt_key_sign(key, text, used, signature)) == 0)
        return tl_error_set(err, TL_ERR_SYSTEM, "the %s cannot be signed with key %s", what,
                            key->id);
    return (fits && append_dot(text, &used) && append(signature, length, text, &used)) ||
           tl_error_set(err, TL_ERR_INVALID, "the %s is longer than %d characters", what,
                        TL_JWT_SIZE - 1);
}
