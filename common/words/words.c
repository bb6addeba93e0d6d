/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/words/words.h"

struct tl_words tl_words_number(double value, int decimals)
{
    struct tl_words words = {""};
    char plain[TL_WORDS_MAX];
    int length = snprintf(plain, sizeof(plain), "%.*f", decimals, value);
    if (length < 0 || (size_t)length >= sizeof(plain))
        return words;
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
    for (size_t i = 0; plain[i] != '\0' && used + 2 < sizeof(words.text); i++) {
        if (i > 0 && i < digits && (digits - i) % 3 == 0 && plain[i - 1] != '-')
            words.text[used++] = ',';
        words.text[used++] = plain[i];
    }
    return words;
}

struct tl_words tl_words_whole(uint64_t value)
{
    return tl_words_number((double)value, 0);
}

struct tl_words tl_words_rate(double value)
{
    return tl_words_number(value, value < 1 ? 6 : 2);
}

struct tl_words tl_words_time(int64_t ms)
{
    static const struct {
        int64_t seconds, below; /* length of the unit; used for times below this many seconds */
        int64_t rest_seconds;   /* of the smaller unit */
        const char *name, *rest;
    } units[] = {{60, 3600, 1, "min", "s"},
                 {3600, 86400, 60, "h", "min"},
                 {86400, INT64_MAX, 3600, "d", "h"}};
    struct tl_words words = {"-"};
    if (ms < 0)
        return words;
    if (ms < 119500) {
        const int64_t seconds = (ms + 500) / 1000;
        const struct tl_words number =
            ms < 10000 ? tl_words_number((double)ms / 1000, 1) : tl_words_whole((uint64_t)seconds);
        snprintf(words.text, sizeof(words.text), "%.44s s", number.text);
        return words;
    }
    size_t i = 0;
    int64_t rounded;
    /* Rounded to the smaller unit before it is split, so that no part overflows. */
    while (rounded = ((ms + 500) / 1000 + units[i].rest_seconds / 2) / units[i].rest_seconds *
                     units[i].rest_seconds,
           rounded >= units[i].below)
        i++;
    int64_t whole = rounded / units[i].seconds;
    int64_t rest = rounded % units[i].seconds / units[i].rest_seconds;
    if (rest == 0)
        snprintf(words.text, sizeof(words.text), "%" PRId64 " %s", whole, units[i].name);
    else
        snprintf(words.text, sizeof(words.text), "%" PRId64 " %s %" PRId64 " %s", whole,
                 units[i].name, rest, units[i].rest);
    return words;
}

struct tl_words tl_words_share(double share)
{
    struct tl_words words;
    double percent = share * 100;
    snprintf(words.text, sizeof(words.text), "%.44s %%",
             tl_words_number(percent, fabs(percent) < 9.95 ? 1 : 0).text);
    return words;
}

void tl_say(struct tl_sentences *sentences, const char *format, ...)
{
    if (sentences->n == sizeof(sentences->texts) / sizeof(sentences->texts[0]))
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(sentences->texts[sentences->n++], sizeof(sentences->texts[0]), format, args);
    va_end(args);
}

void tl_markup_append(struct tl_text *out, const char *text)
{
    while (*text != '\0') {
        unsigned code;
        size_t n = tl_utf8_decode(text, &code);
        if (n == 0 || code < ' ' || tl_utf8_invisible(code))
            tl_text_append(out, "?");
        else if (strchr("<>&\"", *text) != NULL)
            tl_text_append(out, "&#%d;", *text);
        else
            tl_text_append(out, "%.*s", (int)n, text);
        text += n > 0 ? n : 1;
    }
}
