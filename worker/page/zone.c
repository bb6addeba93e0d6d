/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/config/checks.h"
#include "worker/page/zone.h"

enum { PATH_MAX_LENGTH = 128 };

/* TZ would name UTC for any file but a compiled zone. path: ":" and the file's. */
static bool find(const char *name, char path[PATH_MAX_LENGTH], struct tl_error *err)
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
    return find(name, path, err);
}

bool tl_zone_set(const char *name, struct tl_error *err)
{
    char path[PATH_MAX_LENGTH];
    if (name[0] == '\0')
        return true;
    if (!find(name, path, err))
        return false;
    if (setenv("TZ", path, 1) != 0)
        return tl_error_set(err, TL_ERR_NOMEM, "timezone: out of memory");
    tzset();
    return true;
}

bool tl_zone_time(bool in_zone, int64_t unix_s, struct tm *tm, char label[TL_ZONE_LABEL_MAX])
{
    const time_t time = (time_t)unix_s;
    if ((in_zone ? localtime_r(&time, tm) : gmtime_r(&time, tm)) == NULL)
        return false;
    const char *name = in_zone ? tm->tm_zone : "UTC";
    /* Zones without letters of their own are called by their offset: "+03". */
    bool plain = name[0] == '+' || name[0] == '-';
    snprintf(label, TL_ZONE_LABEL_MAX, "%s%s", plain ? "UTC" : "", name);
    return true;
}
