/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "common/base/units.h"

#include "ctl/shell/terminal.h"

enum { COLUMNS = 80, YEAR_MAX = 9999 };

int tl_terminal_columns(FILE *file)
{
    struct winsize size = {0};
    if (ioctl(fileno(file), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return COLUMNS;
    return size.ws_col;
}

static void format_local(int64_t unix_ms, char *text, size_t size)
{
    struct tm local;
    time_t seconds = (time_t)(unix_ms / 1000);
    text[0] = '\0';
    if (localtime_r(&seconds, &local) == NULL || local.tm_year + 1900 > YEAR_MAX ||
        local.tm_year + 1900 < 0)
        return;
    size_t length = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &local);
    long offset = local.tm_gmtoff / 60;
    if (offset == 0)
        snprintf(text + length, size - length, "Z");
    else
        snprintf(text + length, size - length, "%c%02ld:%02ld", offset < 0 ? '-' : '+',
                 labs(offset) / 60, labs(offset) % 60);
}

void tl_terminal_time_of(const char *rfc3339, char *text, size_t size)
{
    int64_t unix_ms;
    if (tl_time_parse(rfc3339, &unix_ms, NULL))
        format_local(unix_ms, text, size);
    else
        snprintf(text, size, "%s", rfc3339);
}

void tl_terminal_duration(int64_t ms, char *text, size_t size)
{
    int64_t seconds = (ms + 500) / 1000;
    int64_t minutes = (seconds + 30) / 60;
    if (seconds < 100)
        snprintf(text, size, "%" PRId64 " s", seconds);
    else if (minutes < 100)
        snprintf(text, size, "%" PRId64 " min", minutes);
    else
        snprintf(text, size, "%" PRId64 " h %" PRId64 " min", minutes / 60, minutes % 60);
}
