/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <sodium.h>

#include "common/auth/invite.h"
#include "common/auth/jwt_keys.h"
#include "common/auth/keyring.h"
#include "common/auth/pass.h"
#include "common/auth/secret_file.h"
#include "worker/visit/secrets.h"

void tl_secrets_free(struct tl_secrets *secrets)
{
    tl_keyring_free(&secrets->keyring);
    tl_worker_keys_free(&secrets->api_keys);
    tl_jwt_keys_free(&secrets->pass_keys);
    tl_jwt_keys_free(&secrets->invite_keys);
    sodium_memzero(secrets->challenge_secret, sizeof(secrets->challenge_secret));
}

/* The file has the secret in its only line, beside comments. */
static bool load_challenge_secret(struct tl_secrets *secrets, const char *path,
                                  struct tl_error *err)
{
    size_t length;
    char *bytes = tl_secret_read(path, &length, NULL, err);
    if (bytes == NULL)
        return false;
    const char *line = strlen(bytes) == length ? tl_secret_only_line(bytes) : NULL;
    bool ok = line != NULL && tl_printable(line, strlen(line), TL_CHALLENGE_SECRET_MAX);
    if (ok)
        memcpy(secrets->challenge_secret, line, strlen(line) + 1);
    tl_secret_free(&bytes, length);
    return ok ||
           tl_error_set(err, TL_ERR_INVALID,
                        "%s: expected one line with the secret of the challenge service, of 1 to "
                        "%d printable ASCII characters",
                        path, TL_CHALLENGE_SECRET_MAX);
}

bool tl_secrets_load(struct tl_secrets *secrets, const struct tl_config *config, bool make,
                     struct tl_error *err)
{
    *secrets = (struct tl_secrets){0};
    secrets->keyring = tl_keyring_load(config->secrets.ticket_keys, make, err);
    if (secrets->keyring != NULL)
        secrets->api_keys = tl_worker_keys_load(config->secrets.api_keys, err);
    if (secrets->api_keys != NULL)
        secrets->pass_keys =
            tl_pass_keys_load(config->secrets.pass_keys, config->pass.algorithm, make, err);
    if (secrets->pass_keys != NULL)
        secrets->invite_keys = tl_invite_keys_load(config->secrets.invite_keys, err);
    /* A key in both files would let a pass serve as an invite. */
    const char *challenge_secret = config->secrets.challenge_secret;
    if (secrets->invite_keys != NULL &&
        tl_jwt_keys_disjoint(secrets->pass_keys, secrets->invite_keys, err) &&
        (challenge_secret[0] == '\0' || load_challenge_secret(secrets, challenge_secret, err)))
        return true;
    tl_secrets_free(secrets);
    return false;
}

bool tl_secrets_ticket(const struct tl_secrets *secrets, const char *queue, const char *text,
                       int64_t now_ms, struct tl_ticket *ticket)
{
    return tl_ticket_verify(secrets->keyring, queue, text, strlen(text), ticket) &&
           (tl_place_seq(ticket->place) != 0 ||
            tl_ticket_age_s(ticket, now_ms / 1000) <= TL_TICKET_PENDING_S);
}
