/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/base/grow.h"

enum { FIRST_BYTES = 512 };

void *tl_grow(void *list, size_t *capacity, size_t wanted, size_t element)
{
    size_t grown = *capacity > 0 ? *capacity : FIRST_BYTES / element + 1;
    if (wanted <= *capacity)
        return list;
    while (grown < wanted)
        grown *= 2;
    void *moved = reallocarray(list, grown, element);
    if (moved != NULL)
        *capacity = grown;
    return moved;
}
