/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of queues as `queue list`, `top` and `stats` show them: from the control room's
 * answer, which may come over HTTP. */
#ifndef TL_CTL_CALLS_ROWS_H
#define TL_CTL_CALLS_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "ctl/shell/table.h"

/* Each takes the numbers of one queue (GET /v1/admin/queues/{queue}/stats). Texts are borrowed from
 * them. */

const char *tl_row_name(const json_t *stats);
/* What is wrong with its data, and what to do; "" for a sound queue. */
const char *tl_row_trouble(const json_t *stats);
/* A number of the queue, "waiting", or one of its totals, "admitted"; 0 when there is none. */
uint64_t tl_row_number(const json_t *stats, const char *name);
uint64_t tl_row_total(const json_t *stats, const char *name);
/* Those who gave up: left, or were not seen any more. */
uint64_t tl_row_gave_up(const json_t *stats);

/* What is so: the phase, or "damaged"; in recovery "recovers 12 s: 8 of 10" (places that came
 * back), before the opening "opens 2026-12-01T20:00:00+09:00". */
void tl_row_phase(const json_t *stats, char *text, size_t size);
/* Mode and phase in one word: the phase where the mode is open, else the mode. */
const char *tl_row_state(const json_t *stats);
/* Adds such a text as a cell: what wants care, and what is damaged, stands out in colour. */
void tl_row_add_state(struct tl_table *table, const json_t *stats, const char *text);
/* What limits admission: the capacity ("300"; "0: no one"; "140 auto" where the site's reports
 * steer it, "120 auto (no feedback)" while there are none), the rate ("1400/10s"), or both. */
void tl_row_limit(const json_t *stats, char *text, size_t size);
/* How many a minute, such as "admitted"; "-" when that is not known. */
void tl_row_per_minute(const json_t *stats, const char *name, char *text, size_t size);
/* How long the first in line has waited; "-" when nobody waits, or it is not known. */
void tl_row_oldest(const json_t *stats, char *text, size_t size);

#endif
