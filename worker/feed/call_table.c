#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "worker/feed/call_table.h"

enum { BUCKETS_MIN = 64 };

struct tl_call_table {
    struct tl_call **buckets;
    size_t n_buckets; /* a power of two */
    size_t count;
    unsigned char key[crypto_shorthash_KEYBYTES];
};

struct tl_call_table *tl_call_table_new(void)
{
    struct tl_call_table *table = calloc(1, sizeof(*table));
    if (table == NULL)
        return NULL;
    table->n_buckets = BUCKETS_MIN;
    table->buckets = calloc(table->n_buckets, sizeof(struct tl_call *));
    if (table->buckets == NULL)
        tl_call_table_free(&table);
    else
        randombytes_buf(table->key, sizeof(table->key));
    return table;
}

void tl_call_table_free(struct tl_call_table **table)
{
    if (*table == NULL)
        return;
    free((*table)->buckets);
    free(*table);
    *table = NULL;
}

static struct tl_call **bucket_of(const struct tl_call_table *table, const char *visitor)
{
    unsigned char hash[crypto_shorthash_BYTES];
    uint64_t number;
    crypto_shorthash(hash, (const unsigned char *)visitor, strlen(visitor), table->key);
    memcpy(&number, hash, sizeof(number));
    return &table->buckets[number & (table->n_buckets - 1)];
}

struct tl_call *tl_call_table_find(const struct tl_call_table *table, const char *visitor)
{
    struct tl_call *call = *bucket_of(table, visitor);
    while (call != NULL && strcmp(call->visitor, visitor) != 0)
        call = call->chain;
    return call;
}

/* Without memory for more buckets the chains grow longer instead. */
static void grow(struct tl_call_table *table)
{
    struct tl_call **old = table->buckets;
    size_t n_old = table->n_buckets;
    struct tl_call **buckets = calloc(2 * n_old, sizeof(struct tl_call *));
    if (buckets == NULL)
        return;
    table->buckets = buckets;
    table->n_buckets = 2 * n_old;
    for (size_t i = 0; i < n_old; i++) {
        struct tl_call *call = old[i];
        while (call != NULL) {
            struct tl_call *next = call->chain;
            struct tl_call **bucket = bucket_of(table, call->visitor);
            call->chain = *bucket;
            *bucket = call;
            call = next;
        }
    }
    free(old);
}

void tl_call_table_add(struct tl_call_table *table, struct tl_call *call)
{
    if (table->count >= table->n_buckets)
        grow(table);
    struct tl_call **bucket = bucket_of(table, call->visitor);
    call->chain = *bucket;
    *bucket = call;
    table->count++;
}

void tl_call_table_remove(struct tl_call_table *table, struct tl_call *call)
{
    for (struct tl_call **link = bucket_of(table, call->visitor); *link != NULL;
         link = &(*link)->chain) {
        if (*link == call) {
            *link = call->chain;
            table->count--;
            return;
        }
    }
}
