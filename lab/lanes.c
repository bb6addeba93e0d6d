/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"

#include "lab/lanes.h"
#include "lab/plan_options.h"

enum { PART_SIZE = TL_LANE_NAME_MAX + 32, STARVED_FACTOR = 10 };

static int find(const struct tl_plan_lanes *lanes, const char *name)
{
    for (size_t i = 0; i < lanes->n; i++) {
        if (strcmp(lanes->names[i], name) == 0)
            return (int)i;
    }
    return -1;
}

/* "vip=10%"; seen: bits of the lanes that were named before. */
static bool read_part(char *part, const struct tl_plan_lanes *lanes, unsigned *seen,
                      double shares[TL_LANES_MAX], struct tl_error *err)
{
    char quoted[80];
    char *equals = strchr(part, '=');
    tl_quote(part, quoted, sizeof(quoted));
    if (equals == NULL)
        return tl_error_set(err, TL_ERR_INVALID, "--lanes: %s is not LANE=SHARE, such as vip=10%%",
                            quoted);
    *equals = '\0';
    int lane = find(lanes, part);
    tl_quote(part, quoted, sizeof(quoted));
    if (lane < 0)
        return tl_error_set(err, TL_ERR_INVALID, "--lanes: the queue has no lane %s", quoted);
    if ((*seen & 1U << lane) != 0)
        return tl_error_set(err, TL_ERR_INVALID, "--lanes: %s is named twice", quoted);
    *seen |= 1U << lane;
    struct tl_error problem = {0};
    return tl_plan_ratio(equals + 1, 1, &shares[lane], &problem) ||
           tl_error_set(err, TL_ERR_INVALID, "--lanes: %s: %s", quoted, problem.text);
}

bool tl_plan_lanes_shares(const char *text, const struct tl_plan_lanes *lanes,
                          double shares[TL_LANES_MAX], struct tl_error *err)
{
    unsigned seen = 0;
    double sum = 0;
    memset(shares, 0, TL_LANES_MAX * sizeof(*shares));
    for (const char *at = text; at != NULL;) {
        char part[PART_SIZE];
        size_t length = strcspn(at, ",");
        if (length >= sizeof(part))
            return tl_error_set(err, TL_ERR_INVALID, "--lanes: a part is too long");
        memcpy(part, at, length);
        part[length] = '\0';
        if (!read_part(part, lanes, &seen, shares, err))
            return false;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    for (size_t i = 0; i < lanes->n; i++)
        sum += shares[i];
    if (sum > 1 + 1e-9)
        return tl_error_set(err, TL_ERR_INVALID, "--lanes: the shares are %g %%, more than 100",
                            100 * sum);
    if (sum < 1)
        shares[lanes->standard] += 1 - sum;
    return true;
}

static int compare_times(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a;
    int64_t other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

void tl_lane_waits_sum(struct tl_lane_waits *lane, int64_t *waits_ms, size_t n)
{
    lane->admitted = n;
    lane->median_ms = lane->most_ms = -1;
    if (n == 0)
        return;
    qsort(waits_ms, n, sizeof(*waits_ms), compare_times);
    lane->median_ms = waits_ms[(n - 1) / 2];
    lane->most_ms = waits_ms[(n * 9 + 9) / 10 - 1];
}

bool tl_lane_starved(const struct tl_plan_lanes *lanes, unsigned lane,
                     const struct tl_lane_waits *waits)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < lanes->n; i++)
        sum += lanes->weights.n > 0 ? lanes->weights.of[i] : 1;
    uint64_t own = lanes->weights.n > 0 ? lanes->weights.of[lane] : 1;
    return waits->passed * own > STARVED_FACTOR * sum;
}
