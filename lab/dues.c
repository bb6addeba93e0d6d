/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/base/grow.h"
#include "lab/dues.h"

bool tl_dues_push(struct tl_dues *dues, struct tl_due due)
{
    struct tl_due *list = tl_grow(dues->list, &dues->capacity, dues->n + 1, sizeof(*list));
    if (list == NULL)
        return false;
    dues->list = list;
    size_t at = dues->n++;
    for (; at > 0 && dues->list[(at - 1) / 2].at_ms > due.at_ms; at = (at - 1) / 2)
        dues->list[at] = dues->list[(at - 1) / 2];
    dues->list[at] = due;
    return true;
}

struct tl_due tl_dues_pop(struct tl_dues *dues)
{
    struct tl_due top = dues->list[0];
    struct tl_due moved = dues->list[--dues->n];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < dues->n; at = child) {
        if (child + 1 < dues->n && dues->list[child + 1].at_ms < dues->list[child].at_ms)
            child++;
        if (dues->list[child].at_ms >= moved.at_ms)
            break;
        dues->list[at] = dues->list[child];
    }
    if (dues->n > 0)
        dues->list[at] = moved;
    return top;
}

void tl_dues_free(struct tl_dues *dues)
{
    free(dues->list);
    *dues = (struct tl_dues){0};
}
