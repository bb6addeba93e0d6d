/* Everything secret that a worker process works with, read from the files of the configuration. */
#ifndef TL_SECRETS_H
#define TL_SECRETS_H

#include <stdbool.h>

#include "common/auth/jwt_keys.h"
#include "common/auth/ticket.h"
#include "common/config/config.h"
#include "worker/api/api_keys.h"

struct tl_secrets {
    struct tl_keyring *keyring;   /* of tickets */
    struct tl_api_keys *api_keys; /* of trusted callers */
    struct tl_jwt_keys *pass_keys;
    struct tl_jwt_keys *invite_keys;
};

/* Reads all of them; files that may be made are made. On failure secrets is empty. */
bool tl_secrets_load(struct tl_secrets *secrets, const struct tl_config *config,
                     struct tl_error *err);
void tl_secrets_free(struct tl_secrets *secrets);

#endif
