/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A time zone as a list of periods with the same offset from UTC. The C library knows zones only as
 * that of the process, so a child computes the list, once. The zone of the process stays as it is.
 */
#ifndef TL_PAGE_ZONE_H
#define TL_PAGE_ZONE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "common/base/error.h"

enum { TL_ZONE_LABEL_MAX = 16 };

struct tl_zone;

/* The zone of this name (tl_check_timezone), from 2020 to 2060. NULL when there is none, or on
 * failure; freed with tl_zone_free. */
struct tl_zone *tl_zone_load(const char *name, struct tl_error *err);
void tl_zone_free(struct tl_zone **zone);

/* The time as it is in the zone. Returns the zone's name then, as clocks have it: "KST", "CEST",
 * "UTC+03". UTC where zone is NULL or does not know the time. NULL: there is no such time. */
const char *tl_zone_time(const struct tl_zone *zone, int64_t unix_s, struct tm *tm);

#endif
