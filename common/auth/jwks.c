/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <sodium.h>

#include "common/auth/jwks.h"
#include "common/auth/jwt_key.h"
#include "common/auth/jwt_keys.h"

enum {
    COORDINATE_TEXT =
        sodium_base64_ENCODED_LEN(TL_EC_COORDINATE_BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING)
};

char *tl_jwks_write(const struct tl_jwt_keys *keys, struct tl_error *err)
{
    json_t *list = json_array();
    bool complete = list != NULL;
    for (size_t i = 0; complete && i < tl_jwt_keys_count(keys); i++) {
        const struct tl_jwt_key *key = tl_jwt_keys_at(keys, i);
        char x[COORDINATE_TEXT];
        char y[COORDINATE_TEXT];
        if (key->algorithm != TL_JWT_ES256)
            continue;
        /* RFC 7518, 6.2.1: coordinates at full length, leading zeros too. */
        sodium_bin2base64(x, sizeof(x), key->ec.x, sizeof(key->ec.x),
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING);
        sodium_bin2base64(y, sizeof(y), key->ec.y, sizeof(key->ec.y),
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING);
        json_t *key_json =
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "kty", "EC", "crv", "P-256", "x", x,
                      "y", y, "kid", key->id, "use", "sig", "alg", "ES256");
        complete = json_array_append_new(list, key_json) == 0;
    }
    json_t *set = complete ? json_pack("{s:O}", "keys", list) : NULL;
    char *text = set == NULL ? NULL : json_dumps(set, JSON_COMPACT);
    json_decref(set);
    json_decref(list);
    if (text == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the key set");
    return text;
}
