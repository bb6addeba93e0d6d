/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of a page in its language, with their values, and how numbers, durations and times are
 * written in it. "{0}" and "{1}" in a text stand for values. All functions append.
 */
#ifndef TL_PAGE_TEXT_H
#define TL_PAGE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/text.h"
#include "worker/page/catalogue.h"

/* The text with this name; "" when there is none. Of one with plural forms, all of them, joined
 * (tl_catalogue_text). Valid as long as the catalogue. */
const char *tl_page_message(const char *name, const struct tl_catalogue *language);
/* The text with {0} and {1} replaced. first NULL: it is empty; second NULL: {1} stays. */
void tl_page_message_format(const char *name, const struct tl_catalogue *language,
                            const char *first, const char *second, struct tl_text *out);
/* The text's plural form for this number, with {0} replaced by the number. */
void tl_page_message_count(const char *name, const struct tl_catalogue *language, uint64_t number,
                           struct tl_text *out);

/* 1234567 is "1,234,567" in English. */
void tl_write_number(uint64_t number, const struct tl_catalogue *language, struct tl_text *out);

/* The two largest units: 5400 s is "1 hour 30 minutes"; 0 is "0 seconds". */
void tl_write_duration(int64_t seconds, const struct tl_catalogue *language, struct tl_text *out);

/* The range of a wait, no more precise than an estimate can be: "about 4 to 7 minutes", "about 50
 * minutes to 1 hour 20 minutes", "less than a minute". Rounded outwards to steps that grow with the
 * wait: 1 minute up to 10, 5 up to an hour, 10 up to three hours, 30 up to twelve, then whole
 * hours. */
void tl_write_range(int64_t low_s, int64_t high_s, const struct tl_catalogue *language,
                    struct tl_text *out);

/* "1 Dec 2026, 11:00 UTC", or in the zone of the process, "1 Dec 2026, 20:00 KST", where the
 * language's date names it. The page's script shows the visitor's own time instead. */
void tl_write_time(int64_t unix_ms, const struct tl_catalogue *language, bool in_zone,
                   struct tl_text *out);
/* "11:00:00 UTC" */
void tl_write_clock(int64_t unix_ms, bool in_zone, struct tl_text *out);

/* ---- the time zone of the times that pages name ---- */

/* It is that of the process, as the C library knows no other; nothing else in the worker reads
 * local time. */
/* Is there a zone of this name (tl_check_timezone)? */
bool tl_zone_check(const char *name, struct tl_error *err);
/* Makes it the zone of this process and of those that it starts; "": it stays as it is. Called once
 * at the start, before there are threads. */
bool tl_zone_set(const char *name, struct tl_error *err);

#endif
