/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "common/config/spelling.h"

#define WORD_MAX 48 /* longer than any name: a longer word is not a typing mistake */

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
