/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "worker/visit/recent.h"

/* ---- joins ---- */

enum { WINDOW_MS = 5000 };

/* The same counts as seen at this time. */
static struct tl_effort at(const struct tl_effort *effort, int64_t now_ms)
{
    int64_t window = now_ms / WINDOW_MS;
    struct tl_effort result = {.window = window};
    if (window == effort->window)
        result = *effort;
    else if (window == effort->window + 1)
        result.before = effort->count;
    return result;
}

void tl_effort_count(struct tl_effort *effort, int64_t now_ms)
{
    *effort = at(effort, now_ms);
    effort->count++;
}

unsigned tl_effort_bits(const struct tl_effort *effort, int64_t now_ms)
{
    const struct tl_effort seen = at(effort, now_ms);
    uint64_t most = seen.count > seen.before ? seen.count : seen.before;
    uint64_t a_second = most * 1000 / WINDOW_MS;
    unsigned bits = TL_EFFORT_BITS_MIN;
    for (uint64_t step = TL_EFFORT_REST; a_second >= step && bits < TL_EFFORT_BITS_MAX; step *= 2)
        bits++;
    return bits;
}

/* A number of an id, which is a hash already, in base64url. */
static size_t number_of(const char *id)
{
    size_t number = 0;
    for (; *id != '\0'; id++)
        number = number * 31 + (unsigned char)*id;
    return number;
}

/* ---- passes ---- */

enum { SLOTS = 16384 }; /* a power of two; 600 bytes each when used */

struct kept {
    uint64_t generation;
    int64_t expires;
    char id[TL_PASS_ID_MAX + 1];
    char text[];
};

struct tl_kept_passes {
    struct kept *slots[SLOTS]; /* NULL: empty */
};

struct tl_kept_passes *tl_kept_passes_new(void)
{
    return calloc(1, sizeof(struct tl_kept_passes));
}

void tl_kept_passes_clear(struct tl_kept_passes *passes)
{
    for (size_t i = 0; i < SLOTS; i++) {
        free(passes->slots[i]);
        passes->slots[i] = NULL;
    }
}

void tl_kept_passes_free(struct tl_kept_passes **passes)
{
    if (*passes == NULL)
        return;
    tl_kept_passes_clear(*passes);
    free(*passes);
    *passes = NULL;
}

const char *tl_kept_passes_find(const struct tl_kept_passes *passes, const struct tl_pass *pass)
{
    const struct kept *kept = passes->slots[number_of(pass->id) % SLOTS];
    bool same = kept != NULL && kept->generation == pass->generation &&
                kept->expires == pass->expires && strcmp(kept->id, pass->id) == 0;
    return same ? kept->text : NULL;
}

void tl_kept_passes_keep(struct tl_kept_passes *passes, const struct tl_pass *pass,
                         const char *text)
{
    size_t length = strlen(text);
    struct kept **slot = &passes->slots[number_of(pass->id) % SLOTS];
    struct kept *kept = malloc(sizeof(*kept) + length + 1);
    if (kept == NULL)
        return;
    kept->generation = pass->generation;
    kept->expires = pass->expires;
    memcpy(kept->id, pass->id, sizeof(kept->id));
    memcpy(kept->text, text, length + 1);
    free(*slot);
    *slot = kept;
}

/* ---- tokens ---- */

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

bool tl_recent_tokens_add(struct tl_recent_tokens *tokens, const char *id, int64_t now_ms)
{
    struct token *set = tokens->sets[number_of(id) % SETS];
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
    struct token *set = tokens->sets[number_of(id) % SETS];
    for (size_t i = 0; i < WAYS; i++)
        if (set[i].until_ms != 0 && strcmp(set[i].id, id) == 0)
            set[i].until_ms = 0;
}
