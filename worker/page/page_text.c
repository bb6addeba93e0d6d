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

/* What stands for a word of a pattern. */
struct value {
    const char *word, *text; /* text NULL: the word stays */
};

/* Appends the pattern with these n words replaced. */
static void fill(const char *pattern, const struct value *values, size_t n, struct tl_text *out)
{
    while (*pattern != '\0') {
        size_t i = 0;
        while (i < n && (values[i].text == NULL ||
                         strncmp(pattern, values[i].word, strlen(values[i].word)) != 0))
            i++;
        const size_t plain = strcspn(pattern + 1, "{U") + 1; /* the words begin with these */
        if (i < n)
            tl_text_append(out, "%s", values[i].text);
        else
            tl_text_append(out, "%.*s", (int)plain, pattern);
        pattern += i < n ? strlen(values[i].word) : plain;
    }
}

void tl_page_message_format(const char *name, const struct tl_catalogue *language,
                            const char *first, const char *second, struct tl_text *out)
{
    const struct value values[] = {{"{0}", first != NULL ? first : ""}, {"{1}", second}};
    fill(tl_page_message(name, language), values, 2, out);
}

void tl_page_message_count(const char *name, const struct tl_catalogue *language, uint64_t number,
                           struct tl_text *out)
{
    struct tl_text written = {0};
    int message = tl_catalogue_find(language, name, strlen(name));
    tl_write_number(number, language, &written);
    const struct value value = {"{0}", written.data};
    if (written.failed)
        out->failed = true;
    else if (message >= 0)
        fill(tl_catalogue_form(language, message, number), &value, 1, out);
    tl_text_free(&written);
}

void tl_write_number(uint64_t number, const struct tl_catalogue *language, struct tl_text *out)
{
    char digits[24];
    int n = snprintf(digits, sizeof(digits), "%" PRIu64, number);
    bool grouped = n >= language->group_from;
    for (int i = 0; i < n; i++)
        tl_text_append(out, "%s%c", grouped && i > 0 && (n - i) % 3 == 0 ? language->group : "",
                       digits[i]);
}

/* ---- durations ---- */

struct unit {
    int64_t seconds;
    const char *name; /* of its text */
};

static const struct unit units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}};

#define N_UNITS (sizeof(units) / sizeof(units[0]))

void tl_write_duration(int64_t seconds, const struct tl_catalogue *language, struct tl_text *out)
{
    if (seconds < 0)
        seconds = 0;
    size_t i = 0;
    while (i + 1 < N_UNITS && seconds < units[i].seconds)
        i++;
    tl_page_message_count(units[i].name, language, (uint64_t)(seconds / units[i].seconds), out);
    seconds %= units[i].seconds;
    if (i + 1 == N_UNITS || seconds < units[i + 1].seconds)
        return;
    tl_text_append(out, " ");
    tl_page_message_count(units[i + 1].name, language, (uint64_t)(seconds / units[i + 1].seconds),
                          out);
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

void tl_write_range(int64_t low_s, int64_t high_s, const struct tl_catalogue *language,
                    struct tl_text *out)
{
    struct tl_text from = {0};
    struct tl_text to = {0};
    high_s = high_s < 0 ? 0 : high_s > SECONDS_MAX ? SECONDS_MAX : high_s;
    low_s = low_s < 0 ? 0 : low_s > high_s ? high_s : low_s;
    int64_t high = (high_s + 59) / 60;
    int64_t step = step_minutes(high);
    high = (high + step - 1) / step * step;
    int64_t low = low_s / 60 / step * step;
    if (high <= 1 && low == 0) {
        tl_page_message_format("range_soon", language, "", NULL, out);
        return;
    }
    /* "4 to 7 minutes", not "4 minutes to 7 minutes", where one unit is enough for both. */
    int64_t unit = high < 60 ? 1 : low % 60 == 0 && high % 60 == 0 && high < 1440 ? 60 : 0;
    if (unit > 0)
        tl_write_number((uint64_t)(low / unit), language, &from);
    else
        tl_write_duration(low * 60, language, &from);
    tl_write_duration(high * 60, language, &to);
    if (from.failed || to.failed)
        out->failed = true;
    else if (low == 0)
        tl_page_message_format("range_upto", language, to.data, NULL, out);
    else if (low == high)
        tl_page_message_format("range_about", language, to.data, NULL, out);
    else
        tl_page_message_format("range_between", language, from.data, to.data, out);
    tl_text_free(&from);
    tl_text_free(&to);
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

void tl_write_time(int64_t unix_ms, const struct tl_catalogue *language, bool in_zone,
                   struct tl_text *out)
{
    struct tm tm;
    char zone[ZONE_LABEL_MAX], day[16], month[16], year[16], time[16];
    if (unix_ms < 0 ||
        !zone_time(in_zone && strstr(language->date, "UTC") != NULL, unix_ms / 1000, &tm, zone))
        return;
    snprintf(day, sizeof(day), "%d", tm.tm_mday);
    snprintf(month, sizeof(month), "%d", tm.tm_mon + 1);
    snprintf(year, sizeof(year), "%d", tm.tm_year + 1900 + (int)language->year_add);
    snprintf(time, sizeof(time), "%02d:%02d", tm.tm_hour, tm.tm_min);
    const char *name = language->months[tm.tm_mon];
    const struct value values[] = {{"{day}", day},
                                   {"{month}", name[0] != '\0' ? name : month},
                                   {"{year}", year},
                                   {"{time}", time},
                                   {"UTC", zone}};
    fill(language->date, values, sizeof(values) / sizeof(values[0]), out);
}

void tl_write_clock(int64_t unix_ms, bool in_zone, struct tl_text *out)
{
    struct tm tm;
    char zone[ZONE_LABEL_MAX];
    if (!zone_time(in_zone, unix_ms / 1000, &tm, zone))
        (void)zone_time(false, 0, &tm, zone);
    tl_text_append(out, "%02d:%02d:%02d %s", tm.tm_hour, tm.tm_min, tm.tm_sec, zone);
}
