/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/shell/lines.h"
#include "ctl/shell/table.h"

struct tl_table {
    const struct tl_column *columns;
    size_t n_columns;
    char **cells;         /* row after row */
    unsigned char *tints; /* of each: enum tl_tint */
    bool colour, dense;
    size_t n_cells, capacity;
    bool failed;
};

struct tl_table *tl_table_new(const struct tl_column *columns, size_t n_columns)
{
    struct tl_table *table = calloc(1, sizeof(*table));
    if (table == NULL)
        return NULL;
    table->columns = columns;
    table->n_columns = n_columns;
    return table;
}

void tl_table_free(struct tl_table **table)
{
    if (*table == NULL)
        return;
    for (size_t i = 0; i < (*table)->n_cells; i++)
        free((*table)->cells[i]);
    free((*table)->cells);
    free((*table)->tints);
    free(*table);
    *table = NULL;
}

void tl_table_text(struct tl_table *table, const char *text)
{
    if (table->n_cells == table->capacity) {
        size_t grown = table->capacity == 0 ? 64 : 2 * table->capacity;
        char **cells = reallocarray(table->cells, grown, sizeof(*cells));
        if (cells != NULL)
            table->cells = cells;
        unsigned char *tints = cells != NULL ? realloc(table->tints, grown) : NULL;
        if (tints == NULL) {
            table->failed = true;
            return;
        }
        table->tints = tints;
        table->capacity = grown;
    }
    char *copy = strdup(text);
    if (copy == NULL)
        table->failed = true;
    if (copy == NULL)
        return;
    table->tints[table->n_cells] = TL_TINT_NONE;
    table->cells[table->n_cells++] = copy;
}

void tl_table_tint(struct tl_table *table, enum tl_tint tint)
{
    if (table->n_cells > 0)
        table->tints[table->n_cells - 1] = (unsigned char)tint;
}

void tl_table_dense(struct tl_table *table)
{
    table->dense = true;
}

void tl_table_colour(struct tl_table *table, bool colour)
{
    table->colour = colour;
}

void tl_table_number(struct tl_table *table, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    tl_table_text(table, text);
}

/* A cell, in the colour of this escape sequence; NULL: in none. */
static void write_cell(const struct tl_table *table, size_t column, int width, const char *text,
                       const char *colour, struct tl_text *out)
{
    bool last = column + 1 == table->n_columns, right = table->columns[column].right;
    int blanks = width - (int)strlen(text);
    bool coloured = table->colour && colour != NULL;
    tl_text_append(out, "%*s%s%s%s", right ? blanks : 0, "", coloured ? colour : "", text,
                   coloured ? "\033[0m" : "");
    tl_text_append(out, "%*s%s", right || last ? 0 : blanks, "",
                   last           ? "\n"
                   : table->dense ? " "
                                  : "  ");
}

void tl_table_write(const struct tl_table *table, struct tl_text *out)
{
    static const char *const colours[] = {
        [TL_TINT_NONE] = NULL, [TL_TINT_CARE] = "\033[33m", [TL_TINT_TROUBLE] = "\033[31m"};
    int *widths = calloc(table->n_columns, sizeof(*widths));
    if (widths == NULL || table->failed) {
        free(widths);
        out->failed = true;
        return;
    }
    for (size_t c = 0; c < table->n_columns; c++)
        widths[c] = (int)strlen(table->columns[c].title);
    for (size_t i = 0; i < table->n_cells; i++) {
        int length = (int)strlen(table->cells[i]);
        if (length > widths[i % table->n_columns])
            widths[i % table->n_columns] = length;
    }
    for (size_t c = 0; c < table->n_columns; c++)
        write_cell(table, c, widths[c], table->columns[c].title, "\033[1m", out);
    for (size_t i = 0; i < table->n_cells; i++)
        write_cell(table, i % table->n_columns, widths[i % table->n_columns], table->cells[i],
                   colours[table->tints[i]], out);
    free(widths);
}

bool tl_table_print(struct tl_table *table)
{
    struct tl_text out = {0};
    tl_table_colour(table, tl_lines_output(stdout).colour);
    tl_table_write(table, &out);
    bool ok = !out.failed && fputs(out.data, stdout) >= 0;
    tl_text_free(&out);
    return ok;
}
