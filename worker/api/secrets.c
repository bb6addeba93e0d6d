#include "worker/api/secrets.h"
#include "common/auth/invite.h"
#include "common/auth/jwt_keys.h"
#include "common/auth/keyring.h"
#include "common/auth/pass.h"
#include "common/auth/pass_keys.h"

void tl_secrets_free(struct tl_secrets *secrets)
{
    tl_keyring_free(&secrets->keyring);
    tl_api_keys_free(&secrets->api_keys);
    tl_jwt_keys_free(&secrets->pass_keys);
    tl_jwt_keys_free(&secrets->invite_keys);
}

static bool read_all(struct tl_secrets *secrets, const struct tl_config *config,
                     struct tl_error *err)
{
    secrets->keyring = tl_keyring_load(config->secrets.ticket_keys, true, err);
    if (secrets->keyring == NULL)
        return false;
    secrets->api_keys = tl_api_keys_load(config->secrets.api_keys, err);
    if (secrets->api_keys == NULL)
        return false;
    secrets->pass_keys =
        tl_pass_keys_load(config->secrets.pass_keys, config->pass.algorithm, true, err);
    if (secrets->pass_keys == NULL)
        return false;
    secrets->invite_keys = tl_invite_keys_load(config->secrets.invite_keys, err);
    /* A key in both files would let a pass serve as an invite. */
    return secrets->invite_keys != NULL &&
           tl_jwt_keys_disjoint(secrets->pass_keys, secrets->invite_keys, err);
}

bool tl_secrets_load(struct tl_secrets *secrets, const struct tl_config *config,
                     struct tl_error *err)
{
    *secrets = (struct tl_secrets){0};
    if (read_all(secrets, config, err))
        return true;
    tl_secrets_free(secrets);
    return false;
}
