/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "worker/visit/recent.h"

enum { WAYS = 8, HASH_BYTES = 16, WINDOW_MS = 5000 };

/* ---- what was given and taken ---- */

struct tl_recent {
    size_t n;
    struct tl_recent_entry entries[]; /* in sets of WAYS */
};

struct tl_recent *tl_recent_new(size_t most)
{
    struct tl_recent *recent = calloc(1, sizeof(*recent) + most * sizeof(recent->entries[0]));
    if (recent != NULL)
        recent->n = most;
    return recent;
}

void tl_recent_clear(struct tl_recent *recent)
{
    for (size_t i = 0; i < recent->n; i++) {
        free(recent->entries[i].text);
        if (recent->entries[i].until != 0) /* else its page of memory may never have been used */
            recent->entries[i] = (struct tl_recent_entry){0};
    }
}

void tl_recent_free(struct tl_recent **recent)
{
    if (*recent == NULL)
        return;
    tl_recent_clear(*recent);
    free(*recent);
    *recent = NULL;
}

/* An id is a hash already, in base64url. */
static struct tl_recent_entry *set_of(struct tl_recent *recent, const char *id)
{
    size_t number = 0;
    for (; *id != '\0'; id++)
        number = number * 31 + (unsigned char)*id;
    return &recent->entries[number % (recent->n / WAYS) * WAYS];
}

struct tl_recent_entry *tl_recent_find(struct tl_recent *recent, const char *id)
{
    struct tl_recent_entry *set = set_of(recent, id);
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].until != 0 && strcmp(set[i].id, id) == 0)
            return &set[i];
    }
    return NULL;
}

void tl_recent_keep(struct tl_recent *recent, const char *id, const struct tl_recent_entry *value)
{
    struct tl_recent_entry *place = tl_recent_find(recent, id);
    if (place == NULL) {
        struct tl_recent_entry *set = place = set_of(recent, id);
        for (size_t i = 1; i < WAYS; i++)
            place = set[i].until < place->until ? &set[i] : place;
    }
    free(place->text);
    *place = *value;
    snprintf(place->id, sizeof(place->id), "%s", id);
    if (value->text != NULL && (place->text = strdup(value->text)) == NULL)
        place->until = 0;
}

void tl_recent_forget(struct tl_recent *recent, const char *id)
{
    struct tl_recent_entry *entry = tl_recent_find(recent, id);
    if (entry != NULL)
        entry->until = 0;
}

bool tl_recent_token(struct tl_recent *recent, const char *id, int64_t now_ms)
{
    const struct tl_recent_entry *known = tl_recent_find(recent, id);
    if (known != NULL && known->until > now_ms)
        return false;
    tl_recent_keep(recent, id,
                   &(struct tl_recent_entry){.until = now_ms + (int64_t)TL_TOKENS_LIFE_S * 1000});
    return true;
}

/* ---- tokens ---- */

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

/* ---- joins ---- */

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
