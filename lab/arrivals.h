/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When visitors arrive: from a file of comma-separated values, or drawn for a crowd.
 *
 * The file has one arrival per line: the time, and optionally how long the visitor stays once
 * admitted. A first line may name the columns; then `arrival` and `session` are used, in any order,
 * and others are passed over. A time is a number of seconds ("12.5", "1732291200"), a time of day
 * ("9:05:00", "21:05:00.250") or RFC 3339 with an offset, the same kind in all lines; a session is
 * seconds or H:MM:SS, or empty: as described by the options.
 */
#ifndef TL_LAB_ARRIVALS_H
#define TL_LAB_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#include "lab/model.h"

enum { TL_ARRIVALS_MOST = 10000000 };

struct tl_arrival {
    int64_t at_ms;      /* since the first one of a file, or the beginning of a crowd */
    int64_t session_ms; /* -1: not given */
    uint32_t row;       /* in the order of the file */
};

struct tl_arrivals {
    size_t n;
    struct tl_arrival *list; /* by time, then row; owned, freed with tl_arrivals_free */
};

/* Reads a file. TL_ERR_INVALID names the line of bad content, TL_ERR_SYSTEM says why it cannot be
 * read. */
bool tl_arrivals_read(const char *path, struct tl_arrivals *arrivals, struct tl_error *err);
/* The same from bytes in memory; `name` stands for the file in messages. */
bool tl_arrivals_parse(const char *name, const char *bytes, size_t length,
                       struct tl_arrivals *arrivals, struct tl_error *err);
/* Draws the arrivals of a crowd of 1 to TL_ARRIVALS_MOST visitors, over_ms at least 1. The same
 * seed gives the same arrivals. */
bool tl_arrivals_draw(const struct tl_crowd *crowd, uint64_t seed, struct tl_arrivals *arrivals,
                      struct tl_error *err);
void tl_arrivals_free(struct tl_arrivals *arrivals);

/* A random number in (0, 1) for one purpose of one visitor: the same for the same arguments,
 * whatever else is drawn. So two simulations that differ in one setting see the same visitors. */
double tl_plan_random(uint64_t seed, uint64_t visitor, unsigned purpose);

#endif
