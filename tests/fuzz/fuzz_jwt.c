/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokens and key files from outside. The first byte chooses:
 *   0  the rest is a token, read as a pass and as an invite
 *   1  the rest is a header, a line feed and claims, in JSON: signed with a known secret, so that
 *      they are read; an accepted invite must keep all guarantees of invites
 *   2  the rest is a file of signing keys, 3 of verifying keys: every key read can be published
 *   4  the rest is two bytes and a visitor: a pass for them must verify, and not once changed
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/invite.h"
#include "common/auth/jwt_keys.h"
#include "common/auth/pass.h"
#include "common/wire/names.h"

#define NOW    INT64_C(1795000000)
#define ISSUER "https://wait.example"

enum { TOKEN_ROOM = 4096 };

static const char known_keys[] =
    "a HS256 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
    "e ES256\n"
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/olT9ujEtXj9QOpR\n"
    "gAsjo7s5Zx3eH4xBEMDxyVKoyNahRANCAASUyp7mB+LSRDk6FgeIpPguY6DYNI9S\n"
    "zoWM1AGNFlRg9EfMsw0pP8wq9/6A/31geHRwj+8IooEveaOPsQb2vWMH\n"
    "-----END PRIVATE KEY-----\n";

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static struct tl_jwt_keys *parse(const void *bytes, size_t length, enum tl_jwt_use use)
{
    char *text = calloc(1, length + 1);
    require(text != NULL);
    memcpy(text, bytes, length);
    struct tl_jwt_keys *keys = tl_jwt_keys_parse("keys", text, use, NULL);
    free(text);
    return keys;
}

static void read_token(const struct tl_jwt_keys *keys, const char *text, size_t length)
{
    struct tl_pass pass;
    struct tl_invite invite;
    struct tl_error err = {0};
    if (tl_pass_verify(keys, ISSUER, "q", text, length, NOW, &pass, &err)) {
        require(tl_visitor_valid(pass.visitor, strlen(pass.visitor)));
        require(pass.issued > 0 && pass.issued <= NOW + 30 && pass.expires > NOW - 30);
    } else {
        require(err.kind == TL_ERR_INVALID && strncmp(err.text, "the pass ", 9) == 0);
    }
    if (tl_invite_verify(keys, "q", text, length, NOW, &invite, &err)) {
        require(tl_visitor_valid(invite.visitor, strlen(invite.visitor)));
        require(invite.id[0] != '\0');
        require(invite.expires > NOW - 30 && invite.expires <= NOW + TL_INVITE_LIFETIME_S + 30);
    } else {
        require(err.kind == TL_ERR_INVALID && err.text[0] != '\0');
    }
}

static void sign_and_read(const struct tl_jwt_keys *keys, const char *json, size_t length)
{
    char text[TOKEN_ROOM];
    unsigned char mac[crypto_auth_hmacsha256_BYTES];
    crypto_auth_hmacsha256_state state;
    const char *feed = memchr(json, '\n', length);
    if (feed == NULL || length > TOKEN_ROOM / 2)
        return;
    size_t header = (size_t)(feed - json);
    sodium_bin2base64(text, sizeof(text), (const unsigned char *)json, header,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    size_t used = strlen(text);
    text[used++] = '.';
    sodium_bin2base64(text + used, sizeof(text) - used, (const unsigned char *)feed + 1,
                      length - header - 1, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    used += strlen(text + used);
    const struct tl_jwt_key *key = tl_jwt_keys_find(keys, "a", 1);
    crypto_auth_hmacsha256_init(&state, key->secret, key->secret_length);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)text, used);
    crypto_auth_hmacsha256_final(&state, mac);
    text[used++] = '.';
    sodium_bin2base64(text + used, sizeof(text) - used, mac, sizeof(mac),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    read_token(keys, text, strlen(text));
}

/* Every key of an accepted file works. */
static void use_keys(struct tl_jwt_keys *keys)
{
    if (keys == NULL)
        return;
    char *jwks = tl_jwt_keys_publish(keys, NULL);
    require(jwks != NULL);
    free(jwks);
    require(tl_jwt_keys_choose_signer(keys, TL_JWT_HS256) ||
            tl_jwt_keys_choose_signer(keys, TL_JWT_ES256));
    tl_jwt_keys_free(&keys);
}

static void sign_and_change(struct tl_jwt_keys *keys, const uint8_t *bytes, size_t length)
{
    struct tl_pass pass = {
        .id = "i", .issued = NOW, .expires = NOW + 60, .generation = 1, .place = 2, .event = 3};
    struct tl_pass read;
    char text[TL_PASS_MAX];
    if (length < 3 || !tl_visitor_valid((const char *)bytes + 2, length - 2))
        return;
    memcpy(pass.visitor, bytes + 2, length - 2);
    require(tl_jwt_keys_choose_signer(keys, bytes[0] % 2 == 0 ? TL_JWT_HS256 : TL_JWT_ES256));
    require(tl_pass_sign(keys, ISSUER, "q", &pass, text, NULL));
    require(tl_pass_verify(keys, ISSUER, "q", text, strlen(text), NOW, &read, NULL));
    require(strcmp(read.visitor, pass.visitor) == 0);
    text[(bytes[0] * 256U + bytes[1]) % strlen(text)] ^= (char)(bytes[1] | 1);
    require(!tl_pass_verify(keys, ISSUER, "q", text, strlen(text), NOW, &read, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct tl_jwt_keys *keys;
    if (keys == NULL)
        keys = parse(known_keys, sizeof(known_keys) - 1, TL_JWT_SIGN);
    require(keys != NULL);
    if (length == 0)
        return 0;
    const char *rest = (const char *)bytes + 1;
    length--;
    if (bytes[0] == 0) {
        read_token(keys, rest, length);
    } else if (bytes[0] == 1) {
        sign_and_read(keys, rest, length);
    } else if (bytes[0] == 2) {
        use_keys(parse(rest, length, TL_JWT_SIGN));
    } else if (bytes[0] == 3) {
        use_keys(parse(rest, length, TL_JWT_VERIFY));
    } else if (bytes[0] == 4) {
        sign_and_change(keys, bytes + 1, length);
    }
    return 0;
}
