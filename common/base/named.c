/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/grow.h"
#include "common/base/named.h"

void tl_named_free(struct tl_named *list)
{
    free(list->all);
    *list = (struct tl_named){0};
}

/* Is there such a name? *at: where it is, or where it belongs. */
static bool search(const struct tl_named *list, const char *name, size_t *at)
{
    size_t low = 0;
    size_t high = list->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(list->all[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *at = low;
    return low < list->n && strcmp(list->all[low].name, name) == 0;
}

void *tl_named_find(const struct tl_named *list, const char *name)
{
    size_t at;
    return search(list, name, &at) ? list->all[at].thing : NULL;
}

bool tl_named_add(struct tl_named *list, const char *name, void *thing)
{
    struct tl_named_thing *all = tl_grow(list->all, &list->capacity, list->n + 1, sizeof(*all));
    if (all == NULL)
        return false;
    list->all = all;
    size_t at;
    (void)search(list, name, &at);
    memmove(&list->all[at + 1], &list->all[at], (list->n - at) * sizeof(*list->all));
    list->all[at] = (struct tl_named_thing){.name = name, .thing = thing};
    list->n++;
    return true;
}

void *tl_named_remove(struct tl_named *list, const char *name)
{
    size_t at;
    if (!search(list, name, &at))
        return NULL;
    void *thing = list->all[at].thing;
    list->n--;
    memmove(&list->all[at], &list->all[at + 1], (list->n - at) * sizeof(*list->all));
    return thing;
}
