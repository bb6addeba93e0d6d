/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The secrets in files by which operators are known: the admin token and the key of the tokens in
 * the store. A file that was made or changed counts from the next request on. Thread-safe.
 */
#ifndef TL_ADMIN_SECRETS_H
#define TL_ADMIN_SECRETS_H

#include <stdbool.h>

#include "common/auth/token.h"
#include "common/config/settings.h"

struct tl_admin_secrets;

/* Makes the files if they are missing, and reads them; what cannot be read is logged and counts as
 * missing. config is borrowed. */
struct tl_admin_secrets *tl_admin_secrets_new(const struct tl_config *config, struct tl_error *err);
void tl_admin_secrets_free(struct tl_admin_secrets **secrets);

/* Copies of what the files hold now. The caller wipes them. */
struct tl_admin_secrets_now {
    struct tl_admin_token admin;
    bool has_key;
    struct tl_token_key key; /* of the tokens in the store */
};
void tl_admin_secrets_look(struct tl_admin_secrets *secrets, struct tl_admin_secrets_now *now);

#endif
