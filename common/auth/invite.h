/* SPDX-License-Identifier: Apache-2.0 */
/* Invites: a site's back end says who may join, in a JSON Web Token that travels through the
 * visitor's browser (docs/integrators/passes.md). */
#ifndef TL_INVITE_H
#define TL_INVITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/jwt.h"
#include "common/base/error.h"
#include "common/wire/names.h"

#define TL_INVITE_LIFETIME_S 86400 /* exp is at most this far ahead; a jti is kept that long */

struct tl_invite {
    char visitor[TL_VISITOR_MAX + 1];
    char lane[TL_LANE_NAME_MAX + 1]; /* "": none named; not checked against the queue's lanes */
    char id[TL_JWT_ID_MAX + 1];
    bool bypass;        /* lets its bearer past the line, without a place; it is not spent */
    int64_t expires;    /* Unix seconds */
    int64_t kept_until; /* Unix seconds: until then the id must be remembered as spent, since a
                           process with a slower clock may still take the invite for valid */
};

/* Reads the keys (common/auth/jwt_keys.h): HS256 secrets shared with the back end, ES256 public
 * keys. With a path of "" there are no invites. */
struct tl_jwt_keys *tl_invite_keys_load(const char *path, struct tl_error *err);

/* True for a genuine invite to this queue that has not expired, 30 s of clock difference allowed;
 * now in Unix seconds. Otherwise err says why, in words that may be shown. Whether the invite has
 * been spent already is for the store to say. */
bool tl_invite_verify(const struct tl_jwt_keys *keys, const char *queue, const char *text,
                      size_t length, int64_t now, struct tl_invite *invite, struct tl_error *err);

/* Signs an invite with a key that both sides have (HS256), as a site's back end does. Uses visitor,
 * lane, id and expires of it; a pass past the line is not made. */
bool tl_invite_sign(const struct tl_jwt_key *key, const char *queue, const struct tl_invite *invite,
                    char text[TL_JWT_SIZE], struct tl_error *err);

/* A number for the id of an invite: the first 64 bits of its SHA-1, which the function apply
 * computes, too. */
uint64_t tl_invite_digest(const char *id);

#endif
