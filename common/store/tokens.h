/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of operators in the store: tl:tokens (docs/contributors/wire-format.md). A change is
 * recorded in tl:changes. */
#ifndef TL_TOKENS_H
#define TL_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/auth/token.h"
#include "common/base/error.h"
#include "common/store/actor.h"
#include "common/store/redis.h"

#include "generated/protocol.h"

struct tl_token_record {
    char name[TL_TOKEN_NAME_MAX + 1];
    enum tl_token_role role;
    struct tl_token_hash hash;
    int64_t made_at_ms;
    char made_by[TL_ACTOR_NAME_MAX + 1];
    int64_t last_used_ms; /* about; 0: never */
};

/* Adds a token. TL_ERR_INVALID when there is one of this name already, or TL_TOKENS_MAX of them. */
bool tl_tokens_add(struct tl_redis *redis, const char *key_prefix, const char *name,
                   enum tl_token_role role, const struct tl_token_hash *hash,
                   const struct tl_actor *actor, struct tl_error *err);
/* *found is false when there is no token of this name: nothing was changed. */
bool tl_tokens_revoke(struct tl_redis *redis, const char *key_prefix, const char *name,
                      const struct tl_actor *actor, bool *found, struct tl_error *err);
/* *found is false when there is no token of this name, or its record is damaged. */
bool tl_tokens_find(struct tl_redis *redis, const char *key_prefix, const char *name,
                    struct tl_token_record *token, bool *found, struct tl_error *err);
/* All tokens, sorted by name. *list is one allocation, freed with free(). */
bool tl_tokens_list(struct tl_redis *redis, const char *key_prefix, struct tl_token_record **list,
                    size_t *n, struct tl_error *err);
/* Notes that the token was used now, at most once a minute. It is no change, and writes no record.
 */
bool tl_tokens_used(struct tl_redis *redis, const char *key_prefix, const char *name,
                    struct tl_error *err);

/* Who is the bearer of this text? Finds the token by its name and compares the hashes in constant
 * time. *role is TL_TOKEN_NOTHING for a text that is no token, or not a genuine one; token (may be
 * NULL) gets its record. False when the store cannot be asked. The admin token is no token of the
 * store: ask tl_admin_token_equal first. */
bool tl_tokens_check(struct tl_redis *redis, const char *key_prefix, const struct tl_token_key *key,
                     const char *text, size_t length, enum tl_token_role *role,
                     struct tl_token_record *token, struct tl_error *err);

#endif
