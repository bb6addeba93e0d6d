/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history of a queue: its numbers every 10 s for a day and every minute for a week, which the
 * expirer notes (expirer/history.lua) and graphs read. While nothing changes there is a point every
 * ten minutes only: a point holds until the next one.
 */
#ifndef TL_HISTORY_H
#define TL_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/store/keys.h"
#include "common/store/redis.h"

#include "generated/protocol.h"

/* Points of one reading: a week of minutes. */
#define TL_HISTORY_READ_MAX 10080

/* The values of a point: the line and the capacity at that time; `seq`, the last number given,
 * which tells when a place was given, to a step; totals since the creation of the queue; and of the
 * waits told that came true, with their distances in percent of the true waits, added up. */
enum { TL_HISTORY_FIELDS = TL_HISTORY_ETA_ERROR + 1 };

struct tl_history_point {
    int64_t at_ms; /* Unix time by the store's clock */
    uint64_t values[TL_HISTORY_FIELDS];
    char mode[16]; /* "open", "paused", ... */
};

/* The name of a field, "waiting". Static storage. */
const char *tl_history_field_name(enum tl_history_field field);

/* Reads the points from from_ms to to_ms (Unix time), oldest first, with those of minutes instead
 * of 10 s if `minutes`; before them the one that holds at from_ms, if there is one. At most `most`
 * (up to TL_HISTORY_READ_MAX): the latest ones. *points is owned by the caller (free). */
bool tl_history_read(struct tl_redis *redis, const struct tl_keys *keys, bool minutes,
                     int64_t from_ms, int64_t to_ms, size_t most, struct tl_history_point **points,
                     size_t *n, struct tl_error *err);

#endif
