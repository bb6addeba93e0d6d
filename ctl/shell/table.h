/* SPDX-License-Identifier: Apache-2.0 */
/* A text table; each column is as wide as its widest cell. */
#ifndef TL_CTL_SHELL_TABLE_H
#define TL_CTL_SHELL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/text.h"

struct tl_column {
    const char *title;
    bool right; /* aligned to the right, for numbers */
};

struct tl_table;

/* columns is borrowed for the life of the table. NULL when out of memory. */
struct tl_table *tl_table_new(const struct tl_column *columns, size_t n_columns);
void tl_table_free(struct tl_table **table);

/* Add the next cell, row by row and left to right; texts are copied. tl_table_write reports a
 * failed allocation. */
void tl_table_text(struct tl_table *table, const char *text);
void tl_table_number(struct tl_table *table, uint64_t number);

/* How a cell stands out where there is colour. */
enum tl_tint { TL_TINT_NONE, TL_TINT_CARE, TL_TINT_TROUBLE };
/* Tints the cell that was added last. */
void tl_table_tint(struct tl_table *table, enum tl_tint tint);
/* Titles are bold from now on, and tinted cells have their colour: for a terminal that shows it. */
void tl_table_colour(struct tl_table *table, bool colour);

/* One space between columns instead of two, where room is scarce. */
void tl_table_dense(struct tl_table *table);

/* Appends the titles and all rows, two spaces between columns, no blanks at the end of a line. Sets
 * out->failed when memory ran out. */
void tl_table_write(const struct tl_table *table, struct tl_text *out);

/* Writes it to standard output, in colour if that is a terminal that shows it. False: no memory, or
 * it cannot be written. */
bool tl_table_print(struct tl_table *table);

#endif
