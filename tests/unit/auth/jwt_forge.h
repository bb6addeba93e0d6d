/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens made by hand, as an attacker or another library makes them. Include after cmocka. */
#ifndef TL_TEST_JWT_FORGE_H
#define TL_TEST_JWT_FORGE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/auth/jwt_keys.h"

#define FORGE_SECRET_A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define FORGE_SECRET_B "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* A P-256 key, only ever used here. */
#define FORGE_EC_PRIVATE                                                                           \
    "-----BEGIN PRIVATE KEY-----\n"                                                                \
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/olT9ujEtXj9QOpR\n"                           \
    "gAsjo7s5Zx3eH4xBEMDxyVKoyNahRANCAASUyp7mB+LSRDk6FgeIpPguY6DYNI9S\n"                           \
    "zoWM1AGNFlRg9EfMsw0pP8wq9/6A/31geHRwj+8IooEveaOPsQb2vWMH\n"                                   \
    "-----END PRIVATE KEY-----\n"
#define FORGE_EC_PUBLIC                                                                            \
    "-----BEGIN PUBLIC KEY-----\n"                                                                 \
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAElMqe5gfi0kQ5OhYHiKT4LmOg2DSP\n"                           \
    "Us6FjNQBjRZUYPRHzLMNKT/MKvf+gP99YHh0cI/vCKKBL3mjj7EG9r1jBw==\n"                               \
    "-----END PUBLIC KEY-----\n"

enum { FORGE_TEXT = 8192, FORGE_SECRET_BYTES = 32 };

static inline void forge_secret(const char *digits, unsigned char secret[FORGE_SECRET_BYTES])
{
    if (sodium_hex2bin(secret, FORGE_SECRET_BYTES, digits, strlen(digits), NULL, NULL, NULL) != 0)
        abort();
}

/* "<base64url of header>.<base64url of claims>" */
static inline void forge_unsigned(const char *header, const char *claims, char text[FORGE_TEXT])
{
    sodium_bin2base64(text, FORGE_TEXT, (const unsigned char *)header, strlen(header),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    size_t used = strlen(text);
    text[used++] = '.';
    sodium_bin2base64(text + used, FORGE_TEXT - used, (const unsigned char *)claims, strlen(claims),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* HMAC-SHA256 with any bytes as the key. Valid if they are the real key. */
static inline void forge_signed(const char *header, const char *claims, const void *secret,
                                size_t secret_length, char text[FORGE_TEXT])
{
    unsigned char mac[crypto_auth_hmacsha256_BYTES];
    crypto_auth_hmacsha256_state state;
    forge_unsigned(header, claims, text);
    size_t used = strlen(text);
    crypto_auth_hmacsha256_init(&state, secret, secret_length);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)text, used);
    crypto_auth_hmacsha256_final(&state, mac);
    text[used++] = '.';
    sodium_bin2base64(text + used, FORGE_TEXT - used, mac, sizeof(mac),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* With FORGE_SECRET_A. */
static inline void forge(const char *header, const char *claims, char text[FORGE_TEXT])
{
    unsigned char secret[FORGE_SECRET_BYTES];
    forge_secret(FORGE_SECRET_A, secret);
    forge_signed(header, claims, secret, sizeof(secret), text);
}

/* Keys from text, which must be good. */
static inline struct tl_jwt_keys *forge_keys(const char *text, enum tl_jwt_use use)
{
    struct tl_error err = {0};
    char *copy = strdup(text);
    struct tl_jwt_keys *keys = copy == NULL ? NULL : tl_jwt_keys_parse("keys", copy, use, &err);
    if (keys == NULL)
        fprintf(stderr, "%s\n", err.text);
    free(copy);
    return keys;
}

#endif
