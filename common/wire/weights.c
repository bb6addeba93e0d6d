/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/wire/weights.h"

static uint64_t least_common_multiple(uint64_t a, uint64_t b)
{
    uint64_t x = a, y = b;
    while (y != 0) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x > 0 ? a / x * b : 0;
}

/* Reads digits without leading zeros. Returns their end; NULL when they are no weight. */
static const char *read_weight(const char *at, const char *end, uint32_t *weight)
{
    uint32_t number = 0;
    const char *first = at;
    for (; at < end && *at >= '0' && *at <= '9' && number <= TL_WEIGHT_MAX; at++)
        number = number * 10 + (uint32_t)(*at - '0');
    if (at == first || *first == '0' || number > TL_WEIGHT_MAX)
        return NULL;
    *weight = number;
    return at;
}

enum tl_weights_problem tl_weights_parse(const char *text, size_t length,
                                         struct tl_weights *weights)
{
    struct tl_weights found = {0};
    const char *end = text + length;
    uint64_t period = 1;
    for (const char *at = text; length > 0; at++) { /* over the comma */
        uint32_t weight;
        if (found.n == TL_LANES_MAX)
            return TL_WEIGHTS_MANY;
        at = read_weight(at, end, &weight);
        if (at == NULL || (at < end && *at != ','))
            return TL_WEIGHTS_NUMBER;
        found.of[found.n++] = weight;
        period = least_common_multiple(period, weight);
        if (period > TL_PERIOD_MAX)
            return TL_WEIGHTS_PERIOD;
        if (at == end)
            break;
    }
    *weights = found;
    return TL_WEIGHTS_GOOD;
}

void tl_weights_format(const struct tl_weights *weights, char text[TL_WEIGHTS_TEXT_MAX])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < weights->n && used < TL_WEIGHTS_TEXT_MAX; i++)
        used += (size_t)snprintf(text + used, TL_WEIGHTS_TEXT_MAX - used, "%s%u", i == 0 ? "" : ",",
                                 weights->of[i]);
}

bool tl_weights_same(const struct tl_weights *a, const struct tl_weights *b)
{
    return a->n == b->n && memcmp(a->of, b->of, a->n * sizeof(a->of[0])) == 0;
}

uint64_t tl_weights_period(const struct tl_weights *weights)
{
    uint64_t period = 1;
    for (size_t i = 0; i < weights->n; i++)
        period = least_common_multiple(period, weights->of[i]);
    return period;
}
