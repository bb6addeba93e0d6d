/* SPDX-License-Identifier: Apache-2.0 */
/* What the terminal can, and what people read there. */
#ifndef TL_CTL_SHELL_TERMINAL_H
#define TL_CTL_SHELL_TERMINAL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Columns of the terminal that this is written to; 80 when it is none, or does not say. */
int tl_terminal_columns(FILE *file);

/* A time in RFC 3339, as the control room answers, as people here read it: local, with the offset
 * from UTC ("2026-12-01T20:00:00+09:00"; "Z" for none), as the configuration takes it, too. Without
 * fractions of a second. What is no time is copied. */
void tl_terminal_time_of(const char *rfc3339, char *text, size_t size);

/* Writes a length of time for people: "48 s", "12 min", "3 h 5 min". */
void tl_terminal_duration(int64_t ms, char *text, size_t size);

#endif
