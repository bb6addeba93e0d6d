#include <stdio.h>
#include <stdlib.h>

#include "common/line/placemap.h"
#include "worker/queue/subscriber_table.h"

struct tl_subscriber_table {
    struct tl_placemap *by_place; /* place -> struct tl_subscriber *, the first of its chain */
    struct tl_subscriber *unnumbered;
    struct tl_subscriber *turn; /* the next to have its turn; NULL: the table is empty */
    size_t n;
};

struct tl_subscriber_table *tl_subscriber_table_new(void)
{
    struct tl_subscriber_table *table = calloc(1, sizeof(*table));
    if (table == NULL)
        return NULL;
    table->by_place = tl_placemap_new();
    if (table->by_place == NULL)
        tl_subscriber_table_free(&table);
    return table;
}

void tl_subscriber_table_free(struct tl_subscriber_table **table)
{
    if (*table == NULL)
        return;
    tl_placemap_free(&(*table)->by_place);
    free(*table);
    *table = NULL;
}

size_t tl_subscriber_table_count(const struct tl_subscriber_table *table)
{
    return table->n;
}

struct tl_subscriber *tl_subscriber_table_at(const struct tl_subscriber_table *table,
                                             tl_place place)
{
    uint64_t value;
    if (!tl_placemap_get(table->by_place, place, &value))
        return NULL;
    return (struct tl_subscriber *)(uintptr_t)value;
}

struct tl_subscriber *tl_subscriber_table_unnumbered(const struct tl_subscriber_table *table)
{
    return table->unnumbered;
}

/* Puts the subscriber into the chain of its place. */
static bool chain(struct tl_subscriber_table *table, struct tl_subscriber *subscriber)
{
    if (tl_place_seq(subscriber->place) == 0) {
        subscriber->chain = table->unnumbered;
        table->unnumbered = subscriber;
        return true;
    }
    subscriber->chain = tl_subscriber_table_at(table, subscriber->place);
    return tl_placemap_put(table->by_place, subscriber->place, (uint64_t)(uintptr_t)subscriber);
}

static void unchain(struct tl_subscriber_table *table, struct tl_subscriber *subscriber)
{
    bool numbered = tl_place_seq(subscriber->place) != 0;
    struct tl_subscriber *first =
        numbered ? tl_subscriber_table_at(table, subscriber->place) : table->unnumbered;
    if (first != subscriber) {
        while (first->chain != subscriber)
            first = first->chain;
        first->chain = subscriber->chain;
    } else if (!numbered) {
        table->unnumbered = subscriber->chain;
    } else if (subscriber->chain == NULL) {
        (void)tl_placemap_remove(table->by_place, subscriber->place, NULL);
    } else { /* overwriting needs no memory */
        (void)tl_placemap_put(table->by_place, subscriber->place,
                              (uint64_t)(uintptr_t)subscriber->chain);
    }
}

struct tl_subscriber *tl_subscriber_table_add(struct tl_subscriber_table *table,
                                              const struct tl_ticket *ticket)
{
    struct tl_subscriber *subscriber = calloc(1, sizeof(*subscriber));
    if (subscriber == NULL)
        return NULL;
    subscriber->place = ticket->place;
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
                                   struct tl_subscriber *subscriber, tl_place place)
{
    tl_place old = subscriber->place;
    unchain(table, subscriber);
    subscriber->place = place;
    if (chain(table, subscriber))
        return true;
    subscriber->place = old;
    (void)chain(table, subscriber); /* back into the unnumbered list, which needs no memory */
    return false;
}

struct tl_subscriber *tl_subscriber_table_next(struct tl_subscriber_table *table)
{
    struct tl_subscriber *subscriber = table->turn;
    if (subscriber != NULL)
        table->turn = subscriber->next;
    return subscriber;
}
