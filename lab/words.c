/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lab/words.h"

void tl_words_number(double value, int decimals, char *text, size_t size)
{
    char plain[TL_WORDS_MAX];
    int length = snprintf(plain, sizeof(plain), "%.*f", decimals, value);
    text[0] = '\0';
    if (length < 0 || (size_t)length >= sizeof(plain))
        return;
    char *point = strchr(plain, '.');
    if (point != NULL) {
        for (char *last = plain + length - 1; *last == '0' || *last == '.'; last--) {
            bool whole = *last == '.';
            *last = '\0';
            if (whole)
                break;
        }
    }
    size_t digits = strcspn(plain, ".");
    size_t used = 0;
    for (size_t i = 0; plain[i] != '\0' && used + 2 < size; i++) {
        if (i > 0 && i < digits && (digits - i) % 3 == 0 && plain[i - 1] != '-')
            text[used++] = ',';
        text[used++] = plain[i];
    }
    text[used] = '\0';
}

void tl_words_time(int64_t ms, char *text, size_t size)
{
    static const struct {
        int64_t seconds, below; /* length of the unit; used for times below this many seconds */
        const char *name, *rest;
    } units[] = {{60, 3600, "min", "s"}, {3600, 86400, "h", "min"}, {86400, INT64_MAX, "d", "h"}};
    static const int64_t rest_seconds[] = {1, 60, 3600};
    if (ms < 10000) {
        char number[TL_WORDS_MAX];
        tl_words_number((double)ms / 1000, 1, number, sizeof(number));
        snprintf(text, size, "%s s", number);
        return;
    }
    if (ms < 119500) {
        snprintf(text, size, "%" PRId64 " s", (ms + 500) / 1000);
        return;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        /* Rounded to the smaller unit before it is split, so that no part overflows. */
        int64_t small = rest_seconds[i];
        int64_t rounded = ((ms + 500) / 1000 + small / 2) / small * small;
        if (rounded >= units[i].below)
            continue;
        int64_t rest = rounded % units[i].seconds / small;
        if (rest == 0)
            snprintf(text, size, "%" PRId64 " %s", rounded / units[i].seconds, units[i].name);
        else
            snprintf(text, size, "%" PRId64 " %s %" PRId64 " %s", rounded / units[i].seconds,
                     units[i].name, rest, units[i].rest);
        return;
    }
}

void tl_words_share(double share, char *text, size_t size)
{
    char number[TL_WORDS_MAX];
    double percent = share * 100;
    tl_words_number(percent, fabs(percent) < 9.95 ? 1 : 0, number, sizeof(number));
    snprintf(text, size, "%s %%", number);
}
