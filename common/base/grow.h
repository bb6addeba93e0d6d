/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that grow by doubling. */
#ifndef TL_GROW_H
#define TL_GROW_H

#include <stddef.h>

/* Makes room for `wanted` elements (1 at least) of this size in a list that has room for *capacity
 * (0: the list is NULL). Returns the list, which may have moved, or NULL when out of memory: then
 * it is as it was. */
void *tl_grow(void *list, size_t *capacity, size_t wanted, size_t element);

#endif
