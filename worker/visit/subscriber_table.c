/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "worker/visit/subscriber_table.h"

void tl_subscriber_table_init(struct tl_subscriber_table *table)
{
    *table = (struct tl_subscriber_table){0};
    crypto_shorthash_keygen(table->key);
}

void tl_subscriber_table_clear(struct tl_subscriber_table *table)
{
    tl_placemap_clear(&table->first);
}

/* ---- chains ---- */

/* What a chain has in common. */
struct common {
    const struct tl_queue *queue;
    tl_place place; /* 0: not numbered yet, and of this visitor */
    char visitor[TL_VISITOR_MAX + 1];
};

/* The key of the chain to which a visitor at this place belongs. It has so many bits that others
 * are not in it. */
static uint64_t chain_of(const struct tl_subscriber_table *table, const struct tl_queue *queue,
                         const char *visitor, tl_place place)
{
    struct common common = {.queue = queue, .place = tl_place_seq(place) != 0 ? place : 0};
    size_t length = offsetof(struct common, visitor);
    uint64_t key;
    if (common.place == 0) {
        size_t n = strlen(visitor);
        memcpy(common.visitor, visitor, n);
        length += n;
    }
    crypto_shorthash((unsigned char *)&key, (const unsigned char *)&common, length, table->key);
    return key | 1; /* never 0 */
}

static struct tl_subscriber *first_of(const struct tl_subscriber_table *table, uint64_t key)
{
    uint64_t value;
    if (!tl_placemap_get(&table->first, key, &value))
        return NULL;
    return (struct tl_subscriber *)(uintptr_t)value;
}

struct tl_subscriber *tl_subscriber_table_first(const struct tl_subscriber_table *table,
                                                const struct tl_queue *queue, const char *visitor,
                                                tl_place place)
{
    return first_of(table, chain_of(table, queue, visitor, place));
}

/* Puts the subscriber into the chain of its place, in front. False when out of memory. */
static bool chain(struct tl_subscriber_table *table, struct tl_subscriber *subscriber)
{
    uint64_t key =
        chain_of(table, subscriber->queue, subscriber->ticket.visitor, subscriber->ticket.place);
    struct tl_subscriber *first = first_of(table, key);
    if (!tl_placemap_put(&table->first, key, (uint64_t)(uintptr_t)subscriber))
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
    uint64_t key =
        chain_of(table, subscriber->queue, subscriber->ticket.visitor, subscriber->ticket.place);
    if (next != NULL) /* overwriting needs no memory */
        (void)tl_placemap_put(&table->first, key, (uint64_t)(uintptr_t)next);
    else
        (void)tl_placemap_remove(&table->first, key, NULL);
}

/* ---- subscribers ---- */

struct tl_subscriber *tl_subscriber_table_add(struct tl_subscriber_table *table,
                                              struct tl_queue *queue,
                                              const struct tl_ticket *ticket)
{
    struct tl_subscriber *subscriber = calloc(1, sizeof(*subscriber));
    if (subscriber == NULL)
        return NULL;
    subscriber->queue = queue;
    subscriber->ticket = *ticket;
    subscriber->ticket.front = 0;
    subscriber->ticket.outdated = false;
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
    tl_place old = subscriber->ticket.place;
    unchain(table, subscriber);
    subscriber->ticket.place = place;
    if (chain(table, subscriber)) {
        subscriber->ticket.generation = generation;
        return true;
    }
    subscriber->ticket.place = old;
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
