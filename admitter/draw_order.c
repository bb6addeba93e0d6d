/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "admitter/draw_order.h"
#include "common/base/grow.h"

struct entry {
    unsigned char key[TL_DRAW_KEY_BYTES];
    unsigned char id[TL_DRAW_ID_BYTES];
    size_t at; /* of the visitor in texts */
    size_t length;
};

struct portion {
    size_t next, past; /* of its entries */
};

struct tl_draw_order {
    struct tl_draw_opening opening;
    struct entry *entries;
    size_t n, capacity;
    char *texts;
    size_t n_texts, texts_capacity;
    struct portion *portions; /* once merged: a heap by their next keys */
    size_t n_portions, portions_capacity;
    size_t cut; /* the entries before belong to a portion */
    bool merging;
};

struct tl_draw_order *tl_draw_order_new(const struct tl_draw_opening *opening)
{
    struct tl_draw_order *order = calloc(1, sizeof(*order));
    if (order != NULL)
        order->opening = *opening;
    return order;
}

void tl_draw_order_free(struct tl_draw_order **order)
{
    if (*order == NULL)
        return;
    free((*order)->entries);
    free((*order)->texts);
    free((*order)->portions);
    free(*order);
    *order = NULL;
}

bool tl_draw_order_add(struct tl_draw_order *order, const char *visitor, size_t length)
{
    struct entry *entries =
        tl_grow(order->entries, &order->capacity, order->n + 1, sizeof(*entries));
    if (entries == NULL)
        return false;
    order->entries = entries;
    char *texts = tl_grow(order->texts, &order->texts_capacity, order->n_texts + length, 1);
    if (texts == NULL)
        return false;
    order->texts = texts;
    struct entry *entry = &entries[order->n++];
    memcpy(texts + order->n_texts, visitor, length);
    entry->at = order->n_texts;
    entry->length = length;
    order->n_texts += length;
    tl_draw_id(order->opening.salt, visitor, length, entry->id);
    tl_draw_key(order->opening.seed, entry->id, entry->key);
    return true;
}

static int compare(const void *a, const void *b)
{
    return memcmp(((const struct entry *)a)->key, ((const struct entry *)b)->key,
                  TL_DRAW_KEY_BYTES);
}

bool tl_draw_order_cut(struct tl_draw_order *order)
{
    if (order->cut == order->n)
        return true;
    struct portion *portions = tl_grow(order->portions, &order->portions_capacity,
                                       order->n_portions + 1, sizeof(*portions));
    if (portions == NULL)
        return false;
    qsort(order->entries + order->cut, order->n - order->cut, sizeof(struct entry), compare);
    portions[order->n_portions++] = (struct portion){.next = order->cut, .past = order->n};
    order->portions = portions;
    order->cut = order->n;
    return true;
}

/* ---- the heap of portions ---- */

static bool before(const struct tl_draw_order *order, size_t a, size_t b)
{
    return compare(&order->entries[order->portions[a].next],
                   &order->entries[order->portions[b].next]) < 0;
}

static void sink(struct tl_draw_order *order, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < order->n_portions; child++)
            least = before(order, child, least) ? child : least;
        if (least == at)
            return;
        struct portion moved = order->portions[at];
        order->portions[at] = order->portions[least];
        order->portions[least] = moved;
        at = least;
    }
}

bool tl_draw_order_next(struct tl_draw_order *order, struct tl_drawn *drawn)
{
    if (!order->merging) {
        for (size_t i = order->n_portions; i > 0; i--)
            sink(order, i - 1);
        order->merging = true;
    }
    if (order->n_portions == 0)
        return false;
    struct portion *first = &order->portions[0];
    const struct entry *entry = &order->entries[first->next++];
    drawn->visitor = order->texts + entry->at;
    drawn->length = entry->length;
    memcpy(drawn->id, entry->id, sizeof(drawn->id));
    if (first->next == first->past)
        *first = order->portions[--order->n_portions];
    sink(order, 0);
    return true;
}
