/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "lab/memory.h"
#include "lab/times.h"

void tl_dues_push(struct tl_dues *dues, struct tl_due due)
{
    dues->list = tl_xgrow(dues->list, &dues->capacity, dues->n + 1, sizeof(*dues->list));
    size_t at = dues->n++;
    for (; at > 0 && dues->list[(at - 1) / 2].at_ms > due.at_ms; at = (at - 1) / 2)
        dues->list[at] = dues->list[(at - 1) / 2];
    dues->list[at] = due;
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

static int compare(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

void tl_times_sort(int64_t *times, size_t n)
{
    if (n > 0)
        qsort(times, n, sizeof(*times), compare);
}

int64_t tl_times_quantile(const int64_t *sorted, size_t n, size_t part, size_t of)
{
    return n > 0 ? sorted[(n * part + of - 1) / of - 1] : -1;
}
