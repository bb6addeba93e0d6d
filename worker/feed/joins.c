/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "worker/feed/joins.h"

enum { BUCKETS_MIN = 64 };

struct tl_joins {
    struct tl_pending_command **buckets; /* each a chain */
    size_t n_buckets;                    /* a power of two */
    size_t count;
    unsigned char key[crypto_shorthash_KEYBYTES];
};

struct tl_joins *tl_joins_new(void)
{
    struct tl_joins *joins = calloc(1, sizeof(*joins));
    if (joins == NULL)
        return NULL;
    crypto_shorthash_keygen(joins->key);
    joins->n_buckets = BUCKETS_MIN;
    joins->buckets = calloc(joins->n_buckets, sizeof(struct tl_pending_command *));
    if (joins->buckets == NULL)
        tl_joins_free(&joins);
    return joins;
}

void tl_joins_free(struct tl_joins **joins)
{
    struct tl_joins *old = *joins;
    *joins = NULL;
    if (old == NULL)
        return;
    free(old->buckets);
    free(old);
}

static struct tl_pending_command **bucket_of(const struct tl_joins *joins, const char *visitor)
{
    unsigned char hash[crypto_shorthash_BYTES];
    uint64_t number;
    crypto_shorthash(hash, (const unsigned char *)visitor, strlen(visitor), joins->key);
    memcpy(&number, hash, sizeof(number));
    return &joins->buckets[number & (joins->n_buckets - 1)];
}

struct tl_pending_command *tl_joins_find(const struct tl_joins *joins, const char *visitor)
{
    struct tl_pending_command *pending = *bucket_of(joins, visitor);
    while (pending != NULL && strcmp(pending->visitor, visitor) != 0)
        pending = pending->chain;
    return pending;
}

/* Without memory for more buckets the chains grow longer instead. */
static void grow(struct tl_joins *joins)
{
    struct tl_pending_command **old = joins->buckets;
    size_t n_old = joins->n_buckets;
    struct tl_pending_command **buckets = calloc(2 * n_old, sizeof(struct tl_pending_command *));
    if (buckets == NULL)
        return;
    joins->buckets = buckets;
    joins->n_buckets = 2 * n_old;
    for (size_t i = 0; i < n_old; i++) {
        struct tl_pending_command *pending = old[i];
        while (pending != NULL) {
            struct tl_pending_command *next = pending->chain;
            struct tl_pending_command **bucket = bucket_of(joins, pending->visitor);
            pending->chain = *bucket;
            *bucket = pending;
            pending = next;
        }
    }
    free(old);
}

void tl_joins_add(struct tl_joins *joins, struct tl_pending_command *pending)
{
    if (joins->count >= joins->n_buckets)
        grow(joins);
    struct tl_pending_command **bucket = bucket_of(joins, pending->visitor);
    pending->chain = *bucket;
    *bucket = pending;
    joins->count++;
}

void tl_joins_remove(struct tl_joins *joins, const struct tl_pending_command *pending)
{
    struct tl_pending_command **link = bucket_of(joins, pending->visitor);
    while (*link != pending)
        link = &(*link)->chain;
    *link = pending->chain;
    joins->count--;
}
