/* SPDX-License-Identifier: Apache-2.0 */
/* The time zone of the times that pages name. It is that of the process, as the C library knows no
 * other; nothing else in the worker reads local time. */
#ifndef TL_PAGE_ZONE_H
#define TL_PAGE_ZONE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "common/base/error.h"

enum { TL_ZONE_LABEL_MAX = 16 };

/* Is there a zone of this name (tl_check_timezone)? */
bool tl_zone_check(const char *name, struct tl_error *err);
/* Makes it the zone of this process and of those that it starts; "": it stays as it is. Called once
 * at the start, before there are threads. */
bool tl_zone_set(const char *name, struct tl_error *err);

/* The time as it is in the zone of the process, or in UTC; and the zone's name then, as clocks have
 * it: "KST", "CEST", "UTC+03". False: there is no such time. */
bool tl_zone_time(bool in_zone, int64_t unix_s, struct tm *tm, char label[TL_ZONE_LABEL_MAX]);

#endif
