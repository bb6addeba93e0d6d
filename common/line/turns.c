/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/line/turns.h"

static void all_due(struct tl_turns *turns)
{
    uint64_t period = tl_weights_period(&turns->weights);
    for (size_t lane = 0; lane < TL_LANES_MAX; lane++) {
        turns->strides[lane] = lane < turns->weights.n ? period / turns->weights.of[lane] : period;
        turns->due[lane] = 0;
    }
}

void tl_turns_weigh(struct tl_turns *turns, const struct tl_weights *weights)
{
    if (tl_weights_same(&turns->weights, weights))
        return;
    turns->weights = *weights;
    all_due(turns);
}

void tl_turns_continue(struct tl_turns *turns, const char *field)
{
    const char *colon = strchr(field, ':');
    turns->weights = (struct tl_weights){0};
    if (colon != NULL)
        (void)tl_weights_parse(field, (size_t)(colon - field), &turns->weights);
    all_due(turns);
    const char *at = colon != NULL && turns->weights.n > 0 ? strchr(colon + 1, ':')
                                                           : NULL; /* after the period */
    for (size_t lane = 0; at != NULL && lane < TL_LANES_MAX; lane++) {
        char *end;
        uint64_t due = strtoull(at + 1, &end, 10);
        turns->due[lane] = due < turns->strides[lane] ? due : turns->strides[lane];
        at = *end == ',' ? end : NULL;
    }
}

void tl_turns_admitted(struct tl_turns *turns, const uint64_t admitted[TL_LANES_MAX])
{
    uint64_t now = 0; /* the turn of the last one admitted */
    for (size_t lane = 0; lane < TL_LANES_MAX && turns->weights.n > 0; lane++) {
        uint64_t last = turns->due[lane] + (admitted[lane] - 1) * turns->strides[lane];
        if (admitted[lane] > 0 && last > now)
            now = last;
    }
    for (size_t lane = 0; lane < TL_LANES_MAX && turns->weights.n > 0; lane++) {
        uint64_t due = turns->due[lane] + admitted[lane] * turns->strides[lane];
        turns->due[lane] = due > now ? due - now : 0;
    }
}

/* How many turns of this lane come before the turn of `lane` at that time. */
static uint64_t turns_before(const struct tl_turns *turns, unsigned other, unsigned lane,
                             uint64_t time)
{
    uint64_t until = other < lane ? time + 1 : time; /* at the same time the first lane */
    if (turns->due[other] >= until)
        return 0;
    return (until - 1 - turns->due[other]) / turns->strides[other] + 1;
}

uint64_t tl_turns_ahead(const struct tl_turns *turns, const uint64_t sizes[TL_LANES_MAX],
                        unsigned lane, uint64_t rank)
{
    uint64_t ahead = rank;
    uint64_t time = turns->due[lane] + rank * turns->strides[lane];
    for (unsigned other = 0; other < TL_LANES_MAX; other++) {
        if (other == lane || sizes[other] == 0)
            continue;
        uint64_t before = sizes[other];
        if (turns->weights.n == 0)
            before = other < lane ? before : 0;
        else if (turns_before(turns, other, lane, time) < before)
            before = turns_before(turns, other, lane, time);
        ahead += before;
    }
    return ahead;
}

/* The lane that is served next; -1: all are empty. */
static int find_next(const struct tl_turns *turns, const uint64_t sizes[TL_LANES_MAX])
{
    int next = -1;
    for (int lane = 0; lane < TL_LANES_MAX; lane++) {
        if (sizes[lane] > 0 &&
            (next < 0 || (turns->weights.n > 0 && turns->due[lane] < turns->due[next])))
            next = lane;
    }
    return next;
}

int tl_turns_take(struct tl_turns *turns, const uint64_t sizes[TL_LANES_MAX])
{
    uint64_t admitted[TL_LANES_MAX] = {0};
    int lane = find_next(turns, sizes);
    if (lane < 0)
        return lane;
    admitted[lane] = 1;
    tl_turns_admitted(turns, admitted);
    return lane;
}
