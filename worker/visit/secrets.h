/* SPDX-License-Identifier: Apache-2.0 */
/* Everything secret that a worker process works with, read from the files of the configuration. */
#ifndef TL_SECRETS_H
#define TL_SECRETS_H

#include <stdbool.h>

#include "common/auth/jwt_keys.h"
#include "common/auth/ticket.h"
#include "common/config/config.h"

#define TL_CHALLENGE_SECRET_MAX 256 /* characters */

enum { TL_CALLERS_MAX = 64, TL_CALLER_NAME_MAX = 32, TL_CALLER_HASH_BYTES = 32 };

/* The API keys of trusted callers (a site's back end): they may say who joins, and in which lane.
 */
struct tl_callers {
    size_t n;
    struct tl_caller {
        char name[TL_CALLER_NAME_MAX + 1];
        /* Comparing hashes in constant time tells nothing about a key, not even its length. */
        unsigned char hash[TL_CALLER_HASH_BYTES];
    } list[TL_CALLERS_MAX];
};

struct tl_secrets {
    struct tl_keyring *keyring; /* of tickets */
    struct tl_callers callers;
    struct tl_jwt_keys *pass_keys;
    struct tl_jwt_keys *invite_keys;
    char challenge_secret[TL_CHALLENGE_SECRET_MAX + 1]; /* of the challenge service; "": none */
};

/* Reads all of them. With `make`, missing files with keys that sign are made; without, they are an
 * error. On failure secrets is empty. */
bool tl_secrets_load(struct tl_secrets *secrets, const struct tl_config *config, bool make,
                     struct tl_error *err);
/* A genuine ticket of this queue; a pending one no older than TL_TICKET_PENDING_S at now_ms, Unix
 * time by the store's clock. */
bool tl_secrets_ticket(const struct tl_secrets *secrets, const char *queue, const char *text,
                       int64_t now_ms, struct tl_ticket *ticket);
void tl_secrets_free(struct tl_secrets *secrets);

/* The name of the caller with this key, or NULL. Takes the same time whatever the key. */
const char *tl_callers_find(const struct tl_callers *callers, const char *key);

#endif
