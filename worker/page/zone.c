/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/config/checks.h"
#include "worker/page/zone.h"

enum {
    DAY_S = 86400,
    PERIODS_MAX = 192, /* two a year, and some zones change their rules */
    PATH_MAX_LENGTH = 128,
};

static const int64_t first_s = INT64_C(1577836800); /* 1 Jan 2020 */
static const int64_t last_s = INT64_C(2840140800);  /* 1 Jan 2060 */

struct period {
    int64_t from_s;
    int64_t offset_s; /* east of UTC */
    char label[TL_ZONE_LABEL_MAX];
};

struct tl_zone {
    size_t n;
    int64_t end_s; /* of the last period */
    struct period periods[PERIODS_MAX];
};

/* ---- in the child, whose zone this is ---- */

static void add(struct tl_zone *zone, int64_t from_s, const struct tm *tm)
{
    struct period *period = &zone->periods[zone->n++];
    period->from_s = from_s;
    period->offset_s = tm->tm_gmtoff;
    /* Zones without letters of their own are called by their offset: "+03". */
    bool plain = tm->tm_zone[0] == '+' || tm->tm_zone[0] == '-';
    snprintf(period->label, sizeof(period->label), "%s%s", plain ? "UTC" : "", tm->tm_zone);
}

static bool look(int64_t unix_s, struct tm *tm)
{
    const time_t time = (time_t)unix_s;
    return localtime_r(&time, tm) != NULL;
}

static bool is_same(const struct tm *a, const struct tm *b)
{
    return a->tm_gmtoff == b->tm_gmtoff && strcmp(a->tm_zone, b->tm_zone) == 0;
}

/* Adds the periods that begin after `low` and up to `high`. *at is the one of `low`, and then of
 * `high`. */
static bool add_between(struct tl_zone *zone, int64_t low, int64_t high, struct tm *at)
{
    struct tm end, middle;
    if (!look(high, &end))
        return false;
    while (!is_same(at, &end)) {
        int64_t before = low, from = high;
        while (from - before > 1) {
            const int64_t half = before + (from - before) / 2;
            if (!look(half, &middle))
                return false;
            *(is_same(at, &middle) ? &before : &from) = half;
        }
        if (zone->n == PERIODS_MAX || !look(from, at))
            return false;
        add(zone, from, at);
        low = from;
    }
    return true;
}

static void compute(struct tl_zone *zone)
{
    int64_t day = first_s;
    struct tm at;
    if (!look(day, &at))
        return;
    add(zone, day, &at);
    while (day < last_s && add_between(zone, day, day + DAY_S, &at))
        day += DAY_S;
    zone->end_s = day;
}

/* ---- in this process ---- */

/* Opens nothing but a compiled zone: TZ would name UTC for any other file. */
static bool is_zone(const char *path)
{
    char magic[4];
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    const ssize_t n = read(file, magic, sizeof(magic));
    close(file);
    return n == (ssize_t)sizeof(magic) && memcmp(magic, "TZif", sizeof(magic)) == 0;
}

static _Noreturn void run_child(int out, const char *path, struct tl_zone *zone)
{
    const char *bytes = (const char *)zone;
    size_t sent = 0;
    if (setenv("TZ", path, 1) == 0) {
        tzset();
        compute(zone);
    }
    while (sent < sizeof(*zone)) {
        const ssize_t n = write(out, bytes + sent, sizeof(*zone) - sent);
        if (n < 0 && errno != EINTR)
            break;
        sent += n > 0 ? (size_t)n : 0;
    }
    _exit(0);
}

/* Reads what the child computed. */
static bool receive(int in, struct tl_zone *zone)
{
    char *bytes = (char *)zone;
    size_t got = 0;
    while (got < sizeof(*zone)) {
        const ssize_t n = read(in, bytes + got, sizeof(*zone) - got);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        got += n > 0 ? (size_t)n : 0;
    }
    return zone->n > 0;
}

static bool ask_child(const char *path, struct tl_zone *zone)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    const pid_t child = fork();
    if (child == 0)
        run_child(ends[1], path, zone);
    close(ends[1]);
    const bool good = child > 0 && receive(ends[0], zone);
    close(ends[0]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    return good;
}

struct tl_zone *tl_zone_load(const char *name, struct tl_error *err)
{
    char path[PATH_MAX_LENGTH];
    const int length = snprintf(path, sizeof(path), ":%s/%s", TL_ZONE_FOLDER, name);
    if (!tl_check_timezone(name, err)) {
        tl_error_prefix(err, "timezone");
        return NULL;
    }
    if (name[0] == '\0' || length >= (int)sizeof(path) || !is_zone(path + 1)) {
        tl_error_set(err, TL_ERR_INVALID,
                     "timezone: %s is not in %s: is the package tzdata installed?", name,
                     TL_ZONE_FOLDER);
        return NULL;
    }
    struct tl_zone *zone = calloc(1, sizeof(*zone));
    if (zone == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "timezone: out of memory");
    } else if (!ask_child(path, zone)) {
        tl_error_set(err, TL_ERR_SYSTEM, "timezone: %s cannot be read", name);
        tl_zone_free(&zone);
    }
    return zone;
}

void tl_zone_free(struct tl_zone **zone)
{
    free(*zone);
    *zone = NULL;
}

const char *tl_zone_time(const struct tl_zone *zone, int64_t unix_s, struct tm *tm)
{
    const struct period *period = NULL;
    for (size_t i = 0; zone != NULL && unix_s < zone->end_s && i < zone->n; i++)
        if (zone->periods[i].from_s <= unix_s)
            period = &zone->periods[i];
    const time_t shifted = (time_t)(unix_s + (period != NULL ? period->offset_s : 0));
    if (gmtime_r(&shifted, tm) == NULL)
        return NULL;
    return period != NULL ? period->label : "UTC";
}
