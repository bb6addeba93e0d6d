/* SPDX-License-Identifier: Apache-2.0 */
/* Things by their names, sorted. A search halves the list; to add or remove one moves those behind
 * it, which is cheap up to some ten thousand. */
#ifndef TL_NAMED_H
#define TL_NAMED_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed before the first use. The things are the caller's, and so are their names, which stay as
 * they are while a thing is in the list. */
struct tl_named {
    struct tl_named_thing {
        const char *name;
        void *thing;
    } * all;
    size_t n, capacity;
};

/* Frees the list, not the things. */
void tl_named_free(struct tl_named *list);

/* NULL: none has this name. */
void *tl_named_find(const struct tl_named *list, const char *name);
/* None has this name yet. False when out of memory. */
bool tl_named_add(struct tl_named *list, const char *name, void *thing);
/* Returns what it was, or NULL. */
void *tl_named_remove(struct tl_named *list, const char *name);

#endif
