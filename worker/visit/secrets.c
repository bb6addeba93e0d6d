/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include <sodium.h>

#include "common/auth/invite.h"
#include "common/auth/jwt_keys.h"
#include "common/auth/keyring.h"
#include "common/auth/pass.h"
#include "common/auth/secret_file.h"
#include "worker/visit/secrets.h"

/* ---- trusted callers ---- */

enum { KEY_MIN = 32, KEY_MAX = 128 };

static void hash_key(const char *key, unsigned char hash[TL_CALLER_HASH_BYTES])
{
    (void)crypto_generichash(hash, TL_CALLER_HASH_BYTES, (const unsigned char *)key, strlen(key),
                             NULL, 0);
}

static bool add(struct tl_callers *callers, const char *line, struct tl_error *err)
{
    size_t name_length = strcspn(line, " \t");
    const char *key = line + name_length + strspn(line + name_length, " \t");
    size_t key_length = strlen(key);
    if (callers->n == TL_CALLERS_MAX)
        return tl_error_set(err, TL_ERR_INVALID, "more than %d keys", TL_CALLERS_MAX);
    if (name_length == 0 || name_length > TL_CALLER_NAME_MAX || key_length < KEY_MIN ||
        key_length > KEY_MAX || strpbrk(key, " \t") != NULL)
        return tl_error_set(err, TL_ERR_INVALID,
                            "expected a name of at most %d characters and a key of %d to %d; "
                            "make one with: openssl rand -hex 32",
                            TL_CALLER_NAME_MAX, KEY_MIN, KEY_MAX);
    struct tl_caller *caller = &callers->list[callers->n++];
    memcpy(caller->name, line, name_length);
    caller->name[name_length] = '\0';
    hash_key(key, caller->hash);
    return true;
}

/* Reads a file with a line each `<name> <key of 32 to 128 printable characters>`, '#' comments;
 * refuses one that others can read. A path of "" and a missing file mean that no caller is trusted.
 */
static bool load_callers(struct tl_callers *callers, const char *path, struct tl_error *err)
{
    size_t length = 0;
    bool missing = false;
    char *line;
    unsigned number = 0;
    callers->n = 0;
    char *text = path[0] != '\0' ? tl_secret_read(path, &length, &missing, err) : NULL;
    if (text == NULL)
        return path[0] == '\0' || missing;
    bool ok = true;
    char *rest = text;
    while (ok && tl_secret_line(&rest, &line, &number))
        ok = add(callers, line, err) || tl_error_prefix(err, "%s:%u", path, number);
    tl_secret_free(&text, length);
    return ok;
}

const char *tl_callers_find(const struct tl_callers *callers, const char *key)
{
    unsigned char hash[TL_CALLER_HASH_BYTES];
    const char *name = NULL;
    if (callers->n == 0)
        return NULL;
    hash_key(key, hash);
    for (size_t i = 0; i < callers->n; i++) {
        if (sodium_memcmp(hash, callers->list[i].hash, sizeof(hash)) == 0)
            name = callers->list[i].name;
    }
    return name;
}

/* ---- all of them ---- */

void tl_secrets_free(struct tl_secrets *secrets)
{
    tl_keyring_free(&secrets->keyring);
    secrets->callers.n = 0;
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
    if (secrets->keyring != NULL && load_callers(&secrets->callers, config->secrets.api_keys, err))
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
