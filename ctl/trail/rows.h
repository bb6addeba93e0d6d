/* SPDX-License-Identifier: Apache-2.0 */
/* What a trail says of places that have ended, against their rows in PostgreSQL. */
#ifndef TL_CTL_TRAIL_ROWS_H
#define TL_CTL_TRAIL_ROWS_H

#include "common/archive/leaf.h"
#include "common/archive/postgres.h"

struct tl_trail_rows;

/* Freed by tl_trail_rows_free. */
struct tl_trail_rows *tl_trail_rows_new(void);
void tl_trail_rows_free(struct tl_trail_rows *rows);
/* The next leaf. */
void tl_trail_rows_take(struct tl_trail_rows *rows, const struct tl_leaf *leaf);
/* Compares what the leaves say with the rows of this generation, `HOST/QUEUE/GENERATION`, and
 * writes a line for each of the first places that differ. *n_wrong: how many do. A row that is
 * missing counts if its place ended after this time: older ones were dropped. False with err when
 * PostgreSQL could not be asked. */
bool tl_trail_rows_compare(struct tl_trail_rows *rows, struct tl_postgres *postgres,
                           const char *origin, int64_t kept_since_ms, uint64_t *n_wrong,
                           struct tl_error *err);

#endif
