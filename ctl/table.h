/* A text table; each column is as wide as its widest cell. */
#ifndef TL_CTL_TABLE_H
#define TL_CTL_TABLE_H

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

/* Appends the titles and all rows, two spaces between columns, no blanks at the end of a line. Sets
 * out->failed when memory ran out. */
void tl_table_write(const struct tl_table *table, struct tl_text *out);

#endif
