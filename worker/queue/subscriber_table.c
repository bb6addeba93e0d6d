/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/line/placemap.h"
#include "worker/queue/subscriber_table.h"

struct tl_subscriber_table {
    struct tl_placemap *by_place;   /* place -> struct tl_subscriber *, the first of its chain */
    struct tl_placemap *unnumbered; /* the hash of a visitor -> the same */
    struct tl_subscriber *turn;     /* the next to have its turn; NULL: the table is empty */
    size_t n;
    unsigned char key[crypto_shorthash_KEYBYTES];
};

struct tl_subscriber_table *tl_subscriber_table_new(void)
{
    struct tl_subscriber_table *table = calloc(1, sizeof(*table));
    if (table == NULL)
        return NULL;
    crypto_shorthash_keygen(table->key);
    table->by_place = tl_placemap_new();
    table->unnumbered = tl_placemap_new();
    if (table->by_place == NULL || table->unnumbered == NULL)
        tl_subscriber_table_free(&table);
    return table;
}

void tl_subscriber_table_free(struct tl_subscriber_table **table)
{
    if (*table == NULL)
        return;
    tl_placemap_free(&(*table)->by_place);
    tl_placemap_free(&(*table)->unnumbered);
    free(*table);
    *table = NULL;
}

size_t tl_subscriber_table_count(const struct tl_subscriber_table *table)
{
    return table->n;
}

/* ---- chains ---- */

/* The map and the key of the chain to which a visitor at this place belongs. */
static struct tl_placemap *chain_of(const struct tl_subscriber_table *table, const char *visitor,
                                    tl_place place, uint64_t *key)
{
    unsigned char hash[crypto_shorthash_BYTES];
    *key = place;
    if (tl_place_seq(place) != 0)
        return table->by_place;
    crypto_shorthash(hash, (const unsigned char *)visitor, strlen(visitor), table->key);
    memcpy(key, hash, sizeof(*key));
    *key |= 1; /* never 0 */
    return table->unnumbered;
}

static struct tl_subscriber *first_of(const struct tl_placemap *map, uint64_t key)
{
    uint64_t value;
    if (!tl_placemap_get(map, key, &value))
        return NULL;
    return (struct tl_subscriber *)(uintptr_t)value;
}

struct tl_subscriber *tl_subscriber_table_first(const struct tl_subscriber_table *table,
                                                const char *visitor, tl_place place)
{
    uint64_t key;
    const struct tl_placemap *map = chain_of(table, visitor, place, &key);
    return first_of(map, key);
}

struct tl_subscriber *tl_subscriber_table_at(const struct tl_subscriber_table *table,
                                             tl_place place)
{
    return tl_place_seq(place) != 0 ? first_of(table->by_place, place) : NULL;
}

/* Puts the subscriber into the chain of its place, in front. False when out of memory. */
static bool chain(struct tl_subscriber_table *table, struct tl_subscriber *subscriber)
{
    uint64_t key;
    struct tl_placemap *map = chain_of(table, subscriber->visitor, subscriber->place, &key);
    struct tl_subscriber *first = first_of(map, key);
    if (!tl_placemap_put(map, key, (uint64_t)(uintptr_t)subscriber))
        return false;
    subscriber->chain = first;
    subscriber->chain_back = NULL;
    if (first != NULL)
        first->chain_back = subscriber;
    return true;
}

/* Takes it out, in the same time however long the chain is. */
static void unchain(struct tl_subscriber_table *table, struct tl_subscriber *subscriber)
{
    struct tl_subscriber *next = subscriber->chain;
    if (next != NULL)
        next->chain_back = subscriber->chain_back;
    if (subscriber->chain_back != NULL) {
        subscriber->chain_back->chain = next;
        return;
    }
    uint64_t key;
    struct tl_placemap *map = chain_of(table, subscriber->visitor, subscriber->place, &key);
    if (next != NULL)
        (void)tl_placemap_put(map, key,
                              (uint64_t)(uintptr_t)next); /* overwriting needs no memory */
    else
        (void)tl_placemap_remove(map, key, NULL);
}

/* ---- subscribers ---- */

struct tl_subscriber *tl_subscriber_table_add(struct tl_subscriber_table *table,
                                              const struct tl_ticket *ticket)
{
    struct tl_subscriber *subscriber = calloc(1, sizeof(*subscriber));
    if (subscriber == NULL)
        return NULL;
    subscriber->place = ticket->place;
    subscriber->generation = ticket->generation;
    subscriber->invite = ticket->invite;
    subscriber->issued = ticket->issued;
    subscriber->serial = ticket->serial;
    snprintf(subscriber->visitor, sizeof(subscriber->visitor), "%s", ticket->visitor);
    if (!chain(table, subscriber)) {
        free(subscriber);
        return NULL;
    }
    if (table->turn == NULL) {
        subscriber->prev = subscriber->next = table->turn = subscriber;
    } else {
        subscriber->next = table->turn;
        subscriber->prev = table->turn->prev;
        subscriber->prev->next = subscriber->next->prev = subscriber;
    }
    table->n++;
    return subscriber;
}

void tl_subscriber_table_remove(struct tl_subscriber_table *table, struct tl_subscriber *subscriber)
{
    unchain(table, subscriber);
    subscriber->prev->next = subscriber->next;
    subscriber->next->prev = subscriber->prev;
    if (table->turn == subscriber)
        table->turn = subscriber->next != subscriber ? subscriber->next : NULL;
    table->n--;
    free(subscriber);
}

bool tl_subscriber_table_set_place(struct tl_subscriber_table *table,
                                   struct tl_subscriber *subscriber, uint64_t generation,
                                   tl_place place)
{
    tl_place old = subscriber->place;
    unchain(table, subscriber);
    subscriber->place = place;
    if (chain(table, subscriber)) {
        subscriber->generation = generation;
        return true;
    }
    subscriber->place = old;
    (void)chain(table, subscriber); /* the map had room for it, so this needs no memory */
    return false;
}

struct tl_subscriber *tl_subscriber_table_next(struct tl_subscriber_table *table)
{
    struct tl_subscriber *subscriber = table->turn;
    if (subscriber != NULL)
        table->turn = subscriber->next;
    return subscriber;
}
