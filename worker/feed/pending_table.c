#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "worker/feed/pending_table.h"

enum { BUCKETS_MIN = 64 };

struct tl_pending_table {
    struct tl_pending_command **buckets;
    size_t n_buckets; /* a power of two */
    size_t count;
    unsigned char key[crypto_shorthash_KEYBYTES];
};

struct tl_pending_table *tl_pending_table_new(void)
{
    struct tl_pending_table *table = calloc(1, sizeof(*table));
    if (table == NULL)
        return NULL;
    table->n_buckets = BUCKETS_MIN;
    table->buckets = calloc(table->n_buckets, sizeof(struct tl_pending_command *));
    if (table->buckets == NULL)
        tl_pending_table_free(&table);
    else
        randombytes_buf(table->key, sizeof(table->key));
    return table;
}

void tl_pending_table_free(struct tl_pending_table **table)
{
    if (*table == NULL)
        return;
    free((*table)->buckets);
    free(*table);
    *table = NULL;
}

static struct tl_pending_command **bucket_of(const struct tl_pending_table *table,
                                             const char *visitor)
{
    unsigned char hash[crypto_shorthash_BYTES];
    uint64_t number;
    crypto_shorthash(hash, (const unsigned char *)visitor, strlen(visitor), table->key);
    memcpy(&number, hash, sizeof(number));
    return &table->buckets[number & (table->n_buckets - 1)];
}

struct tl_pending_command *tl_pending_table_find(const struct tl_pending_table *table,
                                                 const char *visitor)
{
    struct tl_pending_command *pending = *bucket_of(table, visitor);
    while (pending != NULL && strcmp(pending->visitor, visitor) != 0)
        pending = pending->chain;
    return pending;
}

/* Without memory for more buckets the chains grow longer instead. */
static void grow(struct tl_pending_table *table)
{
    struct tl_pending_command **old = table->buckets;
    size_t n_old = table->n_buckets;
    struct tl_pending_command **buckets = calloc(2 * n_old, sizeof(struct tl_pending_command *));
    if (buckets == NULL)
        return;
    table->buckets = buckets;
    table->n_buckets = 2 * n_old;
    for (size_t i = 0; i < n_old; i++) {
        struct tl_pending_command *pending = old[i];
        while (pending != NULL) {
            struct tl_pending_command *next = pending->chain;
            struct tl_pending_command **bucket = bucket_of(table, pending->visitor);
            pending->chain = *bucket;
            *bucket = pending;
            pending = next;
        }
    }
    free(old);
}

void tl_pending_table_add(struct tl_pending_table *table, struct tl_pending_command *pending)
{
    if (table->count >= table->n_buckets)
        grow(table);
    struct tl_pending_command **bucket = bucket_of(table, pending->visitor);
    pending->chain = *bucket;
    *bucket = pending;
    table->count++;
}

void tl_pending_table_remove(struct tl_pending_table *table, struct tl_pending_command *pending)
{
    for (struct tl_pending_command **link = bucket_of(table, pending->visitor); *link != NULL;
         link = &(*link)->chain) {
        if (*link == pending) {
            *link = pending->chain;
            table->count--;
            return;
        }
    }
}
