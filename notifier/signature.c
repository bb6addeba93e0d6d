/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/secret_file.h"
#include "notifier/signature.h"

enum { SECRET_MIN = 16, SECRET_MAX = 256 };

struct tl_signer {
    size_t n;
    char secrets[TL_SECRETS_MAX][SECRET_MAX + 1];
};

static bool read_lines(struct tl_signer *signer, const char *path, char *bytes,
                       struct tl_error *err)
{
    char *rest = bytes;
    char *line;
    while (tl_secret_line(&rest, &line, NULL)) {
        size_t length = strlen(line);
        if (length < SECRET_MIN || length > SECRET_MAX)
            return tl_error_set(err, TL_ERR_INVALID,
                                "%s: a secret has %d to %d characters; `openssl rand -hex 32` "
                                "makes one",
                                path, SECRET_MIN, SECRET_MAX);
        if (signer->n == TL_SECRETS_MAX)
            return tl_error_set(err, TL_ERR_INVALID, "%s: more than %d secrets", path,
                                TL_SECRETS_MAX);
        memcpy(signer->secrets[signer->n++], line, length + 1);
    }
    return signer->n > 0 || tl_error_set(err, TL_ERR_INVALID, "%s: there is no secret in it", path);
}

struct tl_signer *tl_signer_load(const char *path, struct tl_error *err)
{
    size_t length = 0;
    bool missing = false;
    char *bytes = tl_secret_read(path, &length, &missing, err);
    if (bytes == NULL && missing && tl_secret_create_key(path, "", "the secret of a hook", err))
        bytes = tl_secret_read(path, &length, NULL, err);
    if (bytes == NULL)
        return NULL;
    struct tl_signer *signer = calloc(1, sizeof(*signer));
    if (signer == NULL)
        tl_error_set(err, TL_ERR_NOMEM, "no memory for the secret of a hook");
    else if (!read_lines(signer, path, bytes, err))
        tl_signer_free(&signer);
    tl_secret_free(&bytes, length);
    return signer;
}

void tl_signer_free(struct tl_signer **signer)
{
    if (*signer != NULL)
        sodium_memzero(*signer, sizeof(**signer));
    free(*signer);
    *signer = NULL;
}

void tl_signer_sign(const struct tl_signer *signer, int64_t seconds, const char *body,
                    size_t length, char text[TL_SIGNATURE_TEXT_MAX])
{
    char head[32];
    int head_length = snprintf(head, sizeof(head), "%" PRId64 ".", seconds);
    int used = snprintf(text, TL_SIGNATURE_TEXT_MAX, "t=%" PRId64, seconds);
    for (size_t i = 0; i < signer->n; i++) {
        crypto_auth_hmacsha256_state state;
        unsigned char mac[crypto_auth_hmacsha256_BYTES];
        char hex[2 * sizeof(mac) + 1];
        const char *secret = signer->secrets[i];
        crypto_auth_hmacsha256_init(&state, (const unsigned char *)secret, strlen(secret));
        crypto_auth_hmacsha256_update(&state, (const unsigned char *)head,
                                      (unsigned long long)head_length);
        crypto_auth_hmacsha256_update(&state, (const unsigned char *)body, length);
        crypto_auth_hmacsha256_final(&state, mac);
        sodium_bin2hex(hex, sizeof(hex), mac, sizeof(mac));
        used += snprintf(text + used, TL_SIGNATURE_TEXT_MAX - (size_t)used, ",v1=%s", hex);
    }
}
