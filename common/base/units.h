/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers, durations, sizes and times as people write them. Every parser takes the whole text or
 * refuses it, checks for overflow, leaves the output untouched on failure and answers with
 * TL_ERR_INVALID and a sentence. The `err` argument may be NULL.
 */
#ifndef TL_UNITS_H
#define TL_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define TL_UNITS_TEXT_MAX 40 /* every formatted value fits, with the terminating zero */

/* Decimal digits only: no sign, no space, no separators. */
bool tl_number_parse(const char *text, uint64_t *number, struct tl_error *err);

/* Digits, perhaps with a fraction or a per cent sign: "0.9", "200", "15%", which is 0.15. */
bool tl_decimal_parse(const char *text, double *number, struct tl_error *err);

/* A whole number with ms, s, m, h or d: "250ms", "10s", "5m", "2h", "1d". In milliseconds. */
bool tl_duration_parse(const char *text, int64_t *ms, struct tl_error *err);
/* The shortest exact form: 90000 is "90s", 600000 is "10m". */
void tl_duration_format(int64_t ms, char *text, size_t size);

/* A whole number of bytes, alone or with B, KB, MB, GB (1000) or KiB, MiB, GiB (1024): "512",
 * "64KiB", "1MB". */
bool tl_size_parse(const char *text, uint64_t *bytes, struct tl_error *err);
/* The shortest exact form with a unit of 1024: 4096 is "4KiB", 1000 is "1000B". */
void tl_size_format(uint64_t bytes, char *text, size_t size);

/* RFC 3339 with an offset, "2026-12-01T20:00:00+09:00" or "...Z", to Unix milliseconds. Finer
 * fractions are cut off; a leap second (23:59:60 in UTC) counts as the second after it. */
bool tl_time_parse(const char *text, int64_t *unix_ms, struct tl_error *err);
/* In UTC, with milliseconds only when there are any: "2026-12-01T11:00:00Z". For years 0000 to
 * 9999; any other time gives "". */
void tl_time_format(int64_t unix_ms, char *text, size_t size);

#endif
