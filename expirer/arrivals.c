/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/wire/place.h"
#include "expirer/arrivals.h"

enum { STEP_MS = 100 };

static void drop_every_second(struct tl_arrivals *arrivals)
{
    size_t kept = 0;
    for (size_t i = 0; i < arrivals->n; i += 2)
        arrivals->marks[kept++] = arrivals->marks[i];
    arrivals->n = kept;
    arrivals->step_ms *= 2;
}

void tl_arrivals_note(struct tl_arrivals *arrivals, uint64_t seq, int64_t now_ms)
{
    if (arrivals->step_ms == 0)
        arrivals->step_ms = STEP_MS;
    if (arrivals->n == 0)
        arrivals->began_ms = now_ms;
    if (arrivals->n > 0) {
        size_t last = arrivals->n - 1;
        if (seq == arrivals->marks[last].seq)
            arrivals->marks[last].ms = now_ms; /* it was to join next, and now has */
        if (seq <= arrivals->marks[last].seq ||
            now_ms < arrivals->marks[last].ms + arrivals->step_ms)
            return;
    }
    if (arrivals->n == TL_ARRIVALS_MARKS)
        drop_every_second(arrivals);
    arrivals->marks[arrivals->n].seq = seq;
    arrivals->marks[arrivals->n++].ms = now_ms;
}

/* How many marks are of this seq or an earlier one. */
static size_t marks_up_to(const struct tl_arrivals *arrivals, uint64_t seq)
{
    size_t low = 0, high = arrivals->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (arrivals->marks[middle].seq <= seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool tl_arrivals_find(const struct tl_arrivals *arrivals, uint64_t seq, int64_t now_ms, int64_t *ms)
{
    size_t n = marks_up_to(arrivals, seq);
    if (n > 0)
        *ms = arrivals->marks[n - 1].ms;
    else
        *ms = arrivals->n > 0 ? arrivals->began_ms : now_ms;
    return n > 0;
}

uint64_t tl_arrivals_after(const struct tl_arrivals *arrivals, int64_t ms)
{
    if (arrivals->n == 0 || ms < arrivals->began_ms)
        return 0;
    size_t i = 0;
    while (i < arrivals->n && arrivals->marks[i].ms <= ms)
        i++;
    return i < arrivals->n ? arrivals->marks[i].seq : TL_PLACE_SEQ_MAX;
}

void tl_arrivals_forget(struct tl_arrivals *arrivals, uint64_t seq)
{
    size_t n = marks_up_to(arrivals, seq);
    if (n < 2)
        return;
    arrivals->n -= n - 1;
    memmove(arrivals->marks, arrivals->marks + n - 1, arrivals->n * sizeof(arrivals->marks[0]));
    arrivals->began_ms = arrivals->marks[0].ms;
    if (arrivals->n == 1)
        arrivals->step_ms = STEP_MS;
}
