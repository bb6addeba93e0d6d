/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/text.h"
#include "common/base/units.h"

#define TIME_MIN_MS INT64_C(-62167219200000) /* 0000-01-01T00:00:00Z */
#define TIME_MAX_MS INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

_Static_assert(sizeof(time_t) >= sizeof(int64_t), "times beyond 2038");

struct unit {
    const char *name;
    uint64_t factor;
};

/* Those that are written come first, the largest ahead: the last of them, of 1, divides all. */
static const struct unit duration_units[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1},
};

static const struct unit size_units[] = {
    {"GiB", 1024 * 1024 * 1024}, {"MiB", 1024 * 1024}, {"KiB", 1024}, {"B", 1},
    {"GB", 1000000000},          {"MB", 1000000},      {"KB", 1000},
};

#define N_DURATION_UNITS (sizeof(duration_units) / sizeof(duration_units[0]))
#define N_SIZE_UNITS     (sizeof(size_units) / sizeof(size_units[0]))

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool refuse(struct tl_error *err, const char *text, const char *why)
{
    char quoted[64];
    tl_quote(text, quoted, sizeof(quoted));
    return tl_error_set(err, TL_ERR_INVALID, "%s %s", quoted, why);
}

/* Reads digits from *text and moves it past them. False when there is none, or with *overflow set.
 */
static bool read_digits(const char **text, uint64_t *number, bool *overflow)
{
    const char *at = *text;
    uint64_t value = 0;
    *overflow = false;
    for (; is_digit(*at); at++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value)) {
            *overflow = true;
            return false;
        }
    }
    if (at == *text)
        return false;
    *text = at;
    *number = value;
    return true;
}

bool tl_number_parse(const char *text, uint64_t *number, struct tl_error *err)
{
    const char *at = text;
    uint64_t value;
    bool overflow;
    bool digits = read_digits(&at, &value, &overflow);
    if (overflow)
        return refuse(err, text, "is too large a number");
    if (!digits || *at != '\0')
        return refuse(err, text, "is not a whole number");
    *number = value;
    return true;
}

bool tl_decimal_parse(const char *text, double *number, struct tl_error *err)
{
    static const char digits[] = "0123456789";
    size_t length = strspn(text, digits);
    size_t fraction = text[length] == '.' ? strspn(text + length + 1, digits) : 0;
    if (length > 0 && fraction > 0)
        length += 1 + fraction;
    bool percent = text[length] == '%';
    if (length == 0 || text[length + percent] != '\0')
        return refuse(err, text, "is not a number such as 0.9 or 90%");
    *number = strtod(text, NULL) / (percent ? 100 : 1);
    return true;
}

/* A number and one of the units; `bare` is the factor of a number without one, 0 where that is
 * refused. */
static bool parse_with_unit(const char *text, const struct unit *units, size_t n, uint64_t bare,
                            uint64_t *result, bool *overflow)
{
    const char *at = text;
    uint64_t number;
    if (!read_digits(&at, &number, overflow))
        return false;
    uint64_t factor = *at == '\0' ? bare : 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(at, units[i].name) == 0)
            factor = units[i].factor;
    if (factor == 0)
        return false;
    *overflow = __builtin_mul_overflow(number, factor, result);
    return !*overflow;
}

bool tl_duration_parse(const char *text, int64_t *ms, struct tl_error *err)
{
    uint64_t value;
    bool overflow;
    bool good = parse_with_unit(text, duration_units, N_DURATION_UNITS, 0, &value, &overflow);
    if (overflow || (good && value > INT64_MAX))
        return refuse(err, text, "is too long a duration");
    if (!good)
        return refuse(err, text, "is not a duration such as 250ms, 10s, 5m, 2h or 1d");
    *ms = (int64_t)value;
    return true;
}

/* In the first of the units that divides the value. */
static void format_with_unit(int64_t value, const struct unit *unit, char *text, size_t size)
{
    while (value % (int64_t)unit->factor != 0)
        unit++;
    snprintf(text, size, "%" PRId64 "%s", value / (int64_t)unit->factor, unit->name);
}

void tl_duration_format(int64_t ms, char *text, size_t size)
{
    if (ms == 0)
        snprintf(text, size, "0s");
    else
        format_with_unit(ms, duration_units, text, size);
}

bool tl_size_parse(const char *text, uint64_t *bytes, struct tl_error *err)
{
    uint64_t value;
    bool overflow;
    bool good = parse_with_unit(text, size_units, N_SIZE_UNITS, 1, &value, &overflow);
    if (overflow)
        return refuse(err, text, "is too large a size");
    if (!good)
        return refuse(err, text, "is not a size such as 512, 64KiB or 1MB");
    *bytes = value;
    return true;
}

void tl_size_format(uint64_t bytes, char *text, size_t size)
{
    if (bytes == 0)
        snprintf(text, size, "0B");
    else
        format_with_unit((int64_t)bytes, size_units, text, size);
}

/* Exactly `digits` digits with a value from `min` to `max`, then one of the characters in `after`
 * (which may be empty: nothing is consumed then). Moves *at past all of it. */
static bool take(const char **at, int digits, int64_t min, int64_t max, const char *after,
                 int64_t *value)
{
    int64_t number = 0;
    for (int i = 0; i < digits; i++, (*at)++) {
        if (!is_digit(**at))
            return false;
        number = number * 10 + (**at - '0');
    }
    if (number < min || number > max)
        return false;
    if (*after != '\0') {
        if (**at == '\0' || strchr(after, **at) == NULL)
            return false;
        (*at)++;
    }
    *value = number;
    return true;
}

/* ".250" to 250; nothing to 0. */
static bool take_fraction(const char **at, int64_t *ms)
{
    *ms = 0;
    if (**at != '.')
        return true;
    (*at)++;
    if (!is_digit(**at))
        return false;
    for (int64_t scale = 100; is_digit(**at); (*at)++, scale /= 10)
        *ms += (**at - '0') * scale;
    return true;
}

/* "Z", "+09:00" or "-03:30" to seconds east of UTC. */
static bool take_offset(const char **at, int64_t *seconds)
{
    int64_t sign = **at == '-' ? -1 : 1;
    int64_t hours;
    int64_t minutes;
    *seconds = 0;
    if (**at == 'Z' || **at == 'z') {
        (*at)++;
        return true;
    }
    if (**at != '+' && **at != '-')
        return false;
    (*at)++;
    if (!take(at, 2, 0, 23, ":", &hours) || !take(at, 2, 0, 59, "", &minutes))
        return false;
    *seconds = sign * (hours * 3600 + minutes * 60);
    return true;
}

bool tl_time_parse(const char *text, int64_t *unix_ms, struct tl_error *err)
{
    const char *at = text;
    int64_t year, month, day, hour, minute, second, ms, offset;
    if (take(&at, 4, 0, 9999, "-", &year) && take(&at, 2, 1, 12, "-", &month) &&
        take(&at, 2, 1, 31, "Tt ", &day) && take(&at, 2, 0, 23, ":", &hour) &&
        take(&at, 2, 0, 59, ":", &minute) && take(&at, 2, 0, 60, "", &second) &&
        take_fraction(&at, &ms) && take_offset(&at, &offset) && *at == '\0') {
        struct tm date = {
            .tm_year = (int)year - 1900, .tm_mon = (int)month - 1, .tm_mday = (int)day};
        int64_t unix_s = timegm(&date) + hour * 3600 + minute * 60 + second - offset;
        /* A day that its month lacks is one of the next month now. Leap seconds end a day in UTC.
         */
        if (date.tm_mday == day && (second < 60 || unix_s % 86400 == 0)) {
            *unix_ms = unix_s * 1000 + ms;
            return true;
        }
    }
    return refuse(err, text, "is not a time with an offset such as 2026-12-01T20:00:00+09:00");
}

void tl_time_format(int64_t unix_ms, char *text, size_t size)
{
    struct tm date;
    text[0] = '\0';
    if (unix_ms < TIME_MIN_MS || unix_ms > TIME_MAX_MS)
        return;
    int ms = (int)((unix_ms % 1000 + 1000) % 1000);
    time_t unix_s = (unix_ms - ms) / 1000;
    if (gmtime_r(&unix_s, &date) == NULL)
        return;
    int used = snprintf(text, size, "%04d-%02d-%02dT%02d:%02d:%02d", date.tm_year + 1900,
                        date.tm_mon + 1, date.tm_mday, date.tm_hour, date.tm_min, date.tm_sec);
    if (used < 0 || (size_t)used >= size)
        return;
    if (ms == 0)
        snprintf(text + used, size - (size_t)used, "Z");
    else
        snprintf(text + used, size - (size_t)used, ".%03dZ", ms);
}
