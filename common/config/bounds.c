/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of settings in words. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/config/value.h"

static void range_words(const struct tl_setting *row, char bounds[TL_SETTING_BOUNDS_MAX])
{
    char low[TL_UNITS_TEXT_MAX];
    char high[TL_UNITS_TEXT_MAX];
    if (row->type == TL_SETTING_DURATION) {
        tl_duration_format(row->min, low, sizeof(low));
        tl_duration_format(row->max, high, sizeof(high));
    } else if (row->type == TL_SETTING_SIZE) {
        tl_size_format((uint64_t)row->min, low, sizeof(low));
        tl_size_format((uint64_t)row->max, high, sizeof(high));
    } else {
        const char *unit = row->type == TL_SETTING_SHARE ? "%" : "";
        snprintf(low, sizeof(low), "%" PRId64 "%s", row->min, unit);
        snprintf(high, sizeof(high), "%" PRId64 "%s", row->max, unit);
    }
    snprintf(bounds, TL_SETTING_BOUNDS_MAX, "%s to %s", low, high);
}

void tl_setting_bounds(const struct tl_setting *row, char bounds[TL_SETTING_BOUNDS_MAX])
{
    const size_t size = TL_SETTING_BOUNDS_MAX;
    switch (row->type) {
    case TL_SETTING_BOOL:
        snprintf(bounds, size, "true or false");
        break;
    case TL_SETTING_NUMBER:
    case TL_SETTING_SHARE:
    case TL_SETTING_DECIMAL:
    case TL_SETTING_SIZE:
    case TL_SETTING_DURATION:
        range_words(row, bounds);
        break;
    case TL_SETTING_TIME:
        snprintf(bounds, size, "RFC 3339 with an offset, from 1970 on; or empty");
        break;
    case TL_SETTING_STRING:
        snprintf(bounds, size, row->min > 0 ? "1 to %zu bytes" : "at most %zu bytes",
                 row->size - 1);
        break;
    case TL_SETTING_LISTEN:
        snprintf(bounds, size, "host:port or [IPv6 address]:port, port 0 to 65535%s",
                 row->min > 0 ? "" : "; or empty");
        break;
    case TL_SETTING_CHOICE:
        bounds[0] = '\0';
        for (size_t i = 0; row->names[i] != NULL; i++)
            tl_words_append(bounds, size, ", ", row->names[i], strlen(row->names[i]));
        break;
    case TL_SETTING_NAMES:
        snprintf(bounds, size, "the names below");
        break;
    case TL_SETTING_LIST:
        snprintf(bounds, size, "%s, at most %zu bytes",
                 row->min > 0 ? "at least one" : "any number", row->size - 1);
        break;
    case TL_SETTING_TEXTS:
        snprintf(bounds, size, "at most %" PRId64 " bytes in a language, %zu in all", row->max,
                 row->size - 1);
        break;
    case TL_SETTING_LANES:
        snprintf(bounds, size, "1 to %d names of a-z, 0-9, '-' and '_', each at most 31 bytes",
                 TL_LANES_MAX);
        break;
    case TL_SETTING_LANE:
        snprintf(bounds, size, "one of the lanes");
        break;
    case TL_SETTING_WEIGHTS:
        snprintf(bounds, size, "a whole number from 1 to %d for each lane; or empty",
                 TL_WEIGHT_MAX);
        break;
    }
}
