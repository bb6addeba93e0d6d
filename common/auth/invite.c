/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <openssl/sha.h>

#include "common/auth/invite.h"
#include "common/base/big_endian.h"
#include "common/wire/names.h"

struct tl_jwt_keys *tl_invite_keys_load(const char *path, struct tl_error *err)
{
    return path[0] == '\0' ? tl_jwt_keys_none(err) : tl_jwt_keys_load(path, TL_JWT_VERIFY, err);
}

bool tl_invite_verify(const struct tl_jwt_keys *keys, const char *queue, const char *text,
                      size_t length, int64_t now, struct tl_invite *invite, struct tl_error *err)
{
    const struct tl_jwt_expect expect = {.what = "invite", .audience = queue, .now = now};
    struct tl_jwt_token token;
    if (!tl_jwt_read(keys, &expect, text, length, &token, err))
        return false;
    memset(invite, 0, sizeof(*invite));
    const json_t *lane = json_object_get(token.claims, "lane");
    size_t lane_length = json_string_length(lane);
    bool lane_valid = lane == NULL || (json_is_string(lane) && lane_length <= TL_LANE_NAME_MAX &&
                                       tl_visitor_valid(json_string_value(lane), lane_length));
    if (lane != NULL && lane_valid)
        memcpy(invite->lane, json_string_value(lane), lane_length + 1);
    invite->bypass = json_is_true(json_object_get(token.claims, "bypass"));
    json_decref(token.claims);
    if (token.times.expires > now + TL_INVITE_LIFETIME_S + TL_JWT_LEEWAY_S)
        return tl_error_set(err, TL_ERR_INVALID,
                            "the invite lasts too long: exp is at most %d s ahead",
                            TL_INVITE_LIFETIME_S);
    if (!lane_valid)
        return tl_error_set(err, TL_ERR_INVALID,
                            "the invite names no lane: lane must be 1 to %d printable ASCII "
                            "characters, no space",
                            TL_LANE_NAME_MAX);
    memcpy(invite->visitor, token.subject, sizeof(invite->visitor));
    memcpy(invite->id, token.id, sizeof(invite->id));
    invite->expires = token.times.expires;
    invite->kept_until = token.times.expires + 2 * TL_JWT_LEEWAY_S;
    return true;
}

bool tl_invite_sign(const struct tl_jwt_key *key, const char *queue, const struct tl_invite *invite,
                    char text[TL_JWT_SIZE], struct tl_error *err)
{
    char bytes[TL_JWT_SIZE];
    struct tl_json claims;
    tl_json_begin(&claims, bytes, sizeof(bytes));
    tl_json_string(&claims, "aud", queue);
    tl_json_string(&claims, "sub", invite->visitor);
    tl_json_string(&claims, "jti", invite->id);
    tl_json_uint(&claims, "exp", (uint64_t)invite->expires);
    if (invite->lane[0] != '\0')
        tl_json_string(&claims, "lane", invite->lane);
    return tl_jwt_write(key, "invite", &claims, text, err);
}

uint64_t tl_invite_digest(const char *id)
{
    unsigned char hash[SHA_DIGEST_LENGTH];
    (void)SHA1((const unsigned char *)id, strlen(id), hash);
    return tl_get_be(hash, sizeof(uint64_t));
}
