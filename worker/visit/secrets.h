/* SPDX-License-Identifier: Apache-2.0 */
/* Everything secret that a worker process works with, read from the files of the configuration. */
#ifndef TL_SECRETS_H
#define TL_SECRETS_H

#include <stdbool.h>

#include "common/auth/jwt_keys.h"
#include "common/auth/ticket.h"
#include "common/config/config.h"
#include "worker/visit/api_keys.h"

#define TL_CHALLENGE_SECRET_MAX 256 /* characters */

struct tl_secrets {
    struct tl_keyring *keyring;      /* of tickets */
    struct tl_worker_keys *api_keys; /* of trusted callers */
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

#endif
