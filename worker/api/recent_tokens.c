/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "worker/api/recent_tokens.h"

/* 131,072 tokens; 4 MiB when all are used. */
enum { SETS = 16384, WAYS = 8, HASH_BYTES = 16 };

struct token {
    int64_t until_ms; /* 0: none */
    char id[TL_PUZZLE_ID_LENGTH + 1];
};

struct tl_recent_tokens {
    struct token sets[SETS][WAYS];
};

void tl_token_id(const char *token, char id[TL_PUZZLE_ID_LENGTH + 1])
{
    static const unsigned char purpose[crypto_generichash_blake2b_PERSONALBYTES] = "tl token";
    unsigned char hash[HASH_BYTES];
    /* Fails only for lengths out of bounds; these constants are within them. */
    (void)crypto_generichash_blake2b_salt_personal(hash, sizeof(hash), (const unsigned char *)token,
                                                   strlen(token), NULL, 0, NULL, purpose);
    id[0] = '~';
    sodium_bin2base64(id + 1, TL_PUZZLE_ID_LENGTH, hash, sizeof(hash),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

struct tl_recent_tokens *tl_recent_tokens_new(void)
{
    return calloc(1, sizeof(struct tl_recent_tokens));
}

void tl_recent_tokens_free(struct tl_recent_tokens **tokens)
{
    free(*tokens);
    *tokens = NULL;
}

/* The id is a hash already. */
static struct token *set_of(struct tl_recent_tokens *tokens, const char *id)
{
    size_t number = 0;
    for (; *id != '\0'; id++)
        number = number * 31 + (unsigned char)*id;
    return tokens->sets[number % SETS];
}

bool tl_recent_tokens_add(struct tl_recent_tokens *tokens, const char *id, int64_t now_ms)
{
    struct token *set = set_of(tokens, id);
    struct token *oldest = &set[0];
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].until_ms > now_ms && strcmp(set[i].id, id) == 0)
            return false;
        if (set[i].until_ms < oldest->until_ms)
            oldest = &set[i];
    }
    oldest->until_ms = now_ms + (int64_t)TL_TOKENS_LIFE_S * 1000;
    memcpy(oldest->id, id, TL_PUZZLE_ID_LENGTH + 1);
    return true;
}

void tl_recent_tokens_forget(struct tl_recent_tokens *tokens, const char *id)
{
    struct token *set = set_of(tokens, id);
    for (size_t i = 0; i < WAYS; i++)
        if (set[i].until_ms != 0 && strcmp(set[i].id, id) == 0)
            set[i].until_ms = 0;
}
