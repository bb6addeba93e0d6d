/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/config/checks.h"
#include "worker/page/page_text.h"

const char *tl_page_message(const char *name, const struct tl_catalogue *language)
{
    int text = tl_catalogue_find(language, name, strlen(name));
    return text < 0 ? "" : tl_catalogue_text(language, text);
}

/* Writes as much of `more` at offset `at` as fits, without splitting a UTF-8 character. Returns the
 * new end of the text. */
static size_t append(char *text, size_t size, size_t at, const char *more, size_t length)
{
    size_t space = size - at - 1;
    if (length > space) {
        length = space;
        while (length > 0 && ((unsigned char)more[length] & 0xC0) == 0x80)
            length--;
    }
    memcpy(text + at, more, length);
    text[at + length] = '\0';
    return at + length;
}

/* The pattern with {0} and {1} replaced; second may be NULL. */
static void fill(const char *pattern, const char *first, const char *second, char *text,
                 size_t size)
{
    size_t at = append(text, size, 0, "", 0);
    while (*pattern != '\0') {
        bool is_first = strncmp(pattern, "{0}", 3) == 0;
        if (is_first || (second != NULL && strncmp(pattern, "{1}", 3) == 0)) {
            const char *value = is_first ? first : second;
            at = append(text, size, at, value, strlen(value));
            pattern += 3;
        } else {
            size_t plain = strcspn(pattern + 1, "{") + 1;
            at = append(text, size, at, pattern, plain);
            pattern += plain;
        }
    }
}

void tl_page_message_format(const char *name, const struct tl_catalogue *language,
                            const char *first, const char *second, char *text, size_t size)
{
    fill(tl_page_message(name, language), first, second, text, size);
}

void tl_page_message_count(const char *name, const struct tl_catalogue *language, uint64_t number,
                           char *text, size_t size)
{
    char written[TL_PAGE_NUMBER_MAX];
    int message = tl_catalogue_find(language, name, strlen(name));
    tl_write_number(number, language, written, sizeof(written));
    fill(message < 0 ? "" : tl_catalogue_form(language, message, number), written, NULL, text,
         size);
}

void tl_write_number(uint64_t number, const struct tl_catalogue *language, char *text, size_t size)
{
    char digits[24];
    const char *group = language->group;
    int n = snprintf(digits, sizeof(digits), "%" PRIu64, number);
    bool grouped = n >= language->group_from;
    size_t at = append(text, size, 0, "", 0);
    for (int i = 0; i < n; i++) {
        if (grouped && i > 0 && (n - i) % 3 == 0)
            at = append(text, size, at, group, strlen(group));
        at = append(text, size, at, digits + i, 1);
    }
}

/* ---- durations ---- */

struct unit {
    int64_t seconds;
    const char *name; /* of its text */
};

static const struct unit units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};

#define N_UNITS (sizeof(units) / sizeof(units[0]))

void tl_write_duration(int64_t seconds, const struct tl_catalogue *language, char *text,
                       size_t size)
{
    if (seconds < 0)
        seconds = 0;
    size_t i = 0;
    while (i + 1 < N_UNITS && seconds < units[i].seconds)
        i++;
    char part[TL_PAGE_TEXT_MAX] = "";
    tl_page_message_count(units[i].name, language, (uint64_t)(seconds / units[i].seconds), part,
                          sizeof(part));
    size_t at = append(text, size, 0, part, strlen(part));
    seconds %= units[i].seconds;
    if (i + 1 == N_UNITS || seconds < units[i + 1].seconds)
        return;
    tl_page_message_count(units[i + 1].name, language, (uint64_t)(seconds / units[i + 1].seconds),
                          part, sizeof(part));
    at = append(text, size, at, " ", 1);
    append(text, size, at, part, strlen(part));
}

static int64_t step_minutes(int64_t minutes)
{
    if (minutes <= 10)
        return 1;
    if (minutes <= 60)
        return 5;
    if (minutes <= 180)
        return 10;
    return minutes <= 720 ? 30 : 60;
}

#define SECONDS_MAX ((int64_t)1000 * 86400) /* longer estimates are cut to this */

void tl_write_range(int64_t low_s, int64_t high_s, const struct tl_catalogue *language, char *text,
                    size_t size)
{
    char from[TL_PAGE_TEXT_MAX] = "";
    char to[TL_PAGE_TEXT_MAX] = "";
    high_s = high_s < 0 ? 0 : high_s > SECONDS_MAX ? SECONDS_MAX : high_s;
    low_s = low_s < 0 ? 0 : low_s > high_s ? high_s : low_s;
    int64_t high = (high_s + 59) / 60;
    int64_t step = step_minutes(high);
    high = (high + step - 1) / step * step;
    int64_t low = low_s / 60 / step * step;
    if (high <= 1 && low == 0) {
        tl_page_message_format("range_soon", language, "", NULL, text, size);
        return;
    }
    tl_write_duration(high * 60, language, to, sizeof(to));
    if (low == 0) {
        tl_page_message_format("range_upto", language, to, NULL, text, size);
    } else if (low == high) {
        tl_page_message_format("range_about", language, to, NULL, text, size);
    } else {
        /* "4 to 7 minutes", not "4 minutes to 7 minutes", where one unit is enough for both. */
        int64_t unit = high < 60 ? 1 : low % 60 == 0 && high % 60 == 0 && high < 1440 ? 60 : 0;
        if (unit > 0)
            tl_write_number((uint64_t)(low / unit), language, from, sizeof(from));
        else
            tl_write_duration(low * 60, language, from, sizeof(from));
        tl_page_message_format("range_between", language, from, to, text, size);
    }
}

/* ---- times ---- */

enum { PATH_MAX_LENGTH = 128, ZONE_LABEL_MAX = 16 };

/* TZ would name UTC for any file but a compiled zone. path: ":" and the file's. */
static bool find_zone(const char *name, char path[PATH_MAX_LENGTH], struct tl_error *err)
{
    char magic[4];
    if (!tl_check_timezone(name, err))
        return tl_error_prefix(err, "timezone");
    const int length = snprintf(path, PATH_MAX_LENGTH, ":%s/%s", TL_ZONE_FOLDER, name);
    const bool fits = name[0] != '\0' && length < PATH_MAX_LENGTH;
    const int file = fits ? open(path + 1, O_RDONLY | O_CLOEXEC) : -1;
    const ssize_t n = file >= 0 ? read(file, magic, sizeof(magic)) : -1;
    if (file >= 0)
        close(file);
    return (n == (ssize_t)sizeof(magic) && memcmp(magic, "TZif", sizeof(magic)) == 0) ||
           tl_error_set(err, TL_ERR_INVALID,
                        "timezone: %s is not in %s: is the package tzdata installed?", name,
                        TL_ZONE_FOLDER);
}

bool tl_zone_check(const char *name, struct tl_error *err)
{
    char path[PATH_MAX_LENGTH];
    return find_zone(name, path, err);
}

bool tl_zone_set(const char *name, struct tl_error *err)
{
    char path[PATH_MAX_LENGTH];
    if (name[0] == '\0')
        return true;
    if (!find_zone(name, path, err))
        return false;
    if (setenv("TZ", path, 1) != 0)
        return tl_error_set(err, TL_ERR_NOMEM, "timezone: out of memory");
    tzset();
    return true;
}

/* The time as it is in the zone of the process, or in UTC; and the zone's name then, as clocks have
 * it: "KST", "CEST", "UTC+03". False: there is no such time. */
static bool zone_time(bool in_zone, int64_t unix_s, struct tm *tm, char label[ZONE_LABEL_MAX])
{
    const time_t time = (time_t)unix_s;
    if ((in_zone ? localtime_r(&time, tm) : gmtime_r(&time, tm)) == NULL)
        return false;
    const char *name = in_zone ? tm->tm_zone : "UTC";
    /* Zones without letters of their own are called by their offset: "+03". */
    bool plain = name[0] == '+' || name[0] == '-';
    snprintf(label, ZONE_LABEL_MAX, "%s%s", plain ? "UTC" : "", name);
    return true;
}

static const char date_zone[] = "UTC"; /* in the pattern of a date */

/* A part of a date: "{month}" and so on, or the zone. Returns its length in the pattern, 0: it is
 * none. */
static size_t write_part(const char *pattern, const struct tm *tm, const char *zone,
                         const struct tl_catalogue *language, char *part, size_t size)
{
    const char *month = language->months[tm->tm_mon];
    if (strncmp(pattern, "{day}", 5) == 0) {
        snprintf(part, size, "%d", tm->tm_mday);
        return 5;
    }
    if (strncmp(pattern, "{year}", 6) == 0) {
        snprintf(part, size, "%d", tm->tm_year + 1900 + (int)language->year_add);
        return 6;
    }
    if (strncmp(pattern, "{time}", 6) == 0) {
        snprintf(part, size, "%02d:%02d", tm->tm_hour, tm->tm_min);
        return 6;
    }
    if (strncmp(pattern, date_zone, strlen(date_zone)) == 0) {
        snprintf(part, size, "%s", zone);
        return strlen(date_zone);
    }
    if (strncmp(pattern, "{month}", 7) != 0)
        return 0;
    if (month[0] != '\0')
        snprintf(part, size, "%s", month);
    else
        snprintf(part, size, "%d", tm->tm_mon + 1);
    return 7;
}

void tl_write_time(int64_t unix_ms, const struct tl_catalogue *language, bool in_zone, char *text,
                   size_t size)
{
    struct tm tm;
    char zone[ZONE_LABEL_MAX];
    size_t at = append(text, size, 0, "", 0);
    const char *pattern = language->date;
    in_zone = in_zone && strstr(pattern, date_zone) != NULL;
    if (unix_ms < 0 || !zone_time(in_zone, unix_ms / 1000, &tm, zone))
        return;
    while (*pattern != '\0') {
        char part[TL_PAGE_NUMBER_MAX];
        size_t length = write_part(pattern, &tm, zone, language, part, sizeof(part));
        if (length > 0) {
            at = append(text, size, at, part, strlen(part));
        } else {
            const char *next = strstr(pattern + 1, date_zone);
            length = strcspn(pattern + 1, "{") + 1;
            if (next != NULL && (size_t)(next - pattern) < length)
                length = (size_t)(next - pattern);
            at = append(text, size, at, pattern, length);
        }
        pattern += length;
    }
}

void tl_write_clock(int64_t unix_ms, bool in_zone, char *text, size_t size)
{
    struct tm tm;
    char zone[ZONE_LABEL_MAX];
    if (!zone_time(in_zone, unix_ms / 1000, &tm, zone))
        (void)zone_time(false, 0, &tm, zone);
    snprintf(text, size, "%02d:%02d:%02d %s", tm.tm_hour, tm.tm_min, tm.tm_sec, zone);
}
