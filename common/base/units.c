/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/units.h"

#define TIME_MIN_MS INT64_C(-62167219200000) /* 0000-01-01T00:00:00Z */
#define TIME_MAX_MS INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */

struct unit {
    const char *name;
    uint64_t factor;
};

/* Largest first: the format functions take the first that divides. */
static const struct unit duration_units[] = {
    {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1},
};

static const struct unit size_units[] = {
    {"GiB", 1024 * 1024 * 1024},
    {"MiB", 1024 * 1024},
    {"KiB", 1024},
    {"GB", 1000000000},
    {"MB", 1000000},
    {"KB", 1000},
    {"B", 1},
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

void tl_duration_format(int64_t ms, char *text, size_t size)
{
    if (ms == 0) {
        snprintf(text, size, "0s");
        return;
    }
    for (size_t i = 0; i < N_DURATION_UNITS; i++) {
        int64_t factor = (int64_t)duration_units[i].factor;
        if (ms % factor == 0) {
            snprintf(text, size, "%" PRId64 "%s", ms / factor, duration_units[i].name);
            return;
        }
    }
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
    const char *unit = "B";
    for (size_t i = 0; bytes > 0 && i < 3; i++) {
        if (bytes % size_units[i].factor == 0) {
            bytes /= size_units[i].factor;
            unit = size_units[i].name;
            break;
        }
    }
    snprintf(text, size, "%" PRIu64 "%s", bytes, unit);
}

struct date {
    int64_t year, month, day;
};

/* Days from 1970-01-01 to a date of the Gregorian calendar, and back (H. Hinnant,
 * "chrono-compatible low-level date algorithms", 2013): the year starts in March, so that the leap
 * day is its last. */
static int64_t days_from_date(struct date date)
{
    int64_t year = date.year - (date.month <= 2);
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static struct date date_from_days(int64_t days)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * day_of_year + 2) / 153;
    int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
    return (struct date){.year = year_of_era + era * 400 + (month <= 2),
                         .month = month,
                         .day = day_of_year - (153 * shifted + 2) / 5 + 1};
}

/* How many days the month of this date has. */
static int64_t days_in_month(struct date date)
{
    static const int8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (date.year % 4 == 0 && date.year % 100 != 0) || date.year % 400 == 0;
    return days[date.month - 1] + (date.month == 2 && leap);
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
    struct date date = {0};
    int64_t hour;
    int64_t minute;
    int64_t second;
    int64_t ms;
    int64_t offset;
    if (take(&at, 4, 0, 9999, "-", &date.year) && take(&at, 2, 1, 12, "-", &date.month) &&
        take(&at, 2, 1, days_in_month(date), "Tt ", &date.day) && take(&at, 2, 0, 23, ":", &hour) &&
        take(&at, 2, 0, 59, ":", &minute) && take(&at, 2, 0, 60, "", &second) &&
        take_fraction(&at, &ms) && take_offset(&at, &offset) && *at == '\0') {
        int64_t unix_s = days_from_date(date) * 86400 + hour * 3600 + minute * 60 + second - offset;
        if (second < 60 || unix_s % 86400 == 0) { /* leap seconds end a day in UTC */
            *unix_ms = unix_s * 1000 + ms;
            return true;
        }
    }
    return refuse(err, text, "is not a time with an offset such as 2026-12-01T20:00:00+09:00");
}

void tl_time_format(int64_t unix_ms, char *text, size_t size)
{
    text[0] = '\0';
    if (unix_ms < TIME_MIN_MS || unix_ms > TIME_MAX_MS)
        return;
    int64_t days = unix_ms / 86400000 - (unix_ms % 86400000 < 0);
    int64_t rest = unix_ms - days * 86400000;
    struct date date = date_from_days(days);
    int used = snprintf(text, size, "%04d-%02d-%02dT%02d:%02d:%02d", (int)date.year,
                        (int)date.month, (int)date.day, (int)(rest / 3600000),
                        (int)(rest / 60000 % 60), (int)(rest / 1000 % 60));
    if (used < 0 || (size_t)used >= size)
        return;
    if (rest % 1000 == 0)
        snprintf(text + used, size - (size_t)used, "Z");
    else
        snprintf(text + used, size - (size_t)used, ".%03dZ", (int)(rest % 1000));
}
