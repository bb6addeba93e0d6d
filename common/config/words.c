/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"
#include "common/config/table.h"
#include "common/config/words.h"

#define WORD_MAX 48 /* longer than any name: a longer word is not a typing mistake */

static void choice_words(const struct tl_setting *row, char bounds[TL_SETTING_BOUNDS_MAX])
{
    size_t used = 0;
    bounds[0] = '\0';
    for (size_t i = 0; row->names[i] != NULL && used < TL_SETTING_BOUNDS_MAX; i++)
        used += (size_t)snprintf(bounds + used, TL_SETTING_BOUNDS_MAX - used, "%s%s",
                                 i == 0 ? "" : ", ", row->names[i]);
}

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
        choice_words(row, bounds);
        break;
    case TL_SETTING_NAMES:
        snprintf(bounds, size, "the names below");
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

const char *tl_setting_type_name(const struct tl_setting *row)
{
    static const char *const names[] = {
        [TL_SETTING_BOOL] = "boolean",   [TL_SETTING_NUMBER] = "number",
        [TL_SETTING_SHARE] = "share",    [TL_SETTING_DECIMAL] = "decimal",
        [TL_SETTING_SIZE] = "size",      [TL_SETTING_DURATION] = "duration",
        [TL_SETTING_TIME] = "time",      [TL_SETTING_STRING] = "text",
        [TL_SETTING_LISTEN] = "address", [TL_SETTING_CHOICE] = "choice",
        [TL_SETTING_NAMES] = "list",     [TL_SETTING_LANES] = "list",
        [TL_SETTING_LANE] = "lane",      [TL_SETTING_WEIGHTS] = "list",
    };
    return names[row->type];
}

void tl_setting_env_name(const struct tl_setting *row, char name[TL_SETTING_PATH_MAX])
{
    snprintf(name, TL_SETTING_PATH_MAX, "TELLERLINE_%s", row->path);
    for (char *at = name; *at != '\0'; at++)
        *at = *at == '.' || *at == '-' ? '_' : (char)toupper((unsigned char)*at);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The number of letters to insert, drop, replace or swap with their neighbour (optimal string
 * alignment distance, after F. Damerau, 1964). Both words are at most WORD_MAX long. */
static size_t distance(const char *a, size_t length_a, const char *b, size_t length_b)
{
    size_t rows[3][WORD_MAX + 1];
    for (size_t j = 0; j <= length_b; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= length_a; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= length_b; j++) {
            row[j] = least(least(row[j - 1], above[j]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], above2[j - 2] + 1);
        }
    }
    return rows[length_a % 3][length_b];
}

bool tl_spelling_closer(const char *word, const char *candidate, size_t *best)
{
    size_t length = strlen(word);
    size_t candidate_length = strlen(candidate);
    if (length > WORD_MAX || candidate_length > WORD_MAX)
        return false;
    size_t steps = distance(word, length, candidate, candidate_length);
    /* At most one wrong letter in three, and three in all: a more distant proposal would confuse.
     */
    if (steps > 3 || steps * 3 > candidate_length || steps >= *best)
        return false;
    *best = steps;
    return true;
}
