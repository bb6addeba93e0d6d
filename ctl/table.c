#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/table.h"

struct tl_table {
    const struct tl_column *columns;
    size_t n_columns;
    char **cells; /* row after row */
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
    free(*table);
    *table = NULL;
}

void tl_table_text(struct tl_table *table, const char *text)
{
    if (table->n_cells == table->capacity) {
        size_t grown = table->capacity == 0 ? 64 : 2 * table->capacity;
        char **cells = reallocarray(table->cells, grown, sizeof(*cells));
        if (cells == NULL) {
            table->failed = true;
            return;
        }
        table->cells = cells;
        table->capacity = grown;
    }
    char *copy = strdup(text);
    if (copy == NULL)
        table->failed = true;
    else
        table->cells[table->n_cells++] = copy;
}

void tl_table_number(struct tl_table *table, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, number);
    tl_table_text(table, text);
}

static void write_cell(const struct tl_table *table, size_t column, int width, const char *text,
                       struct tl_text *out)
{
    bool last = column + 1 == table->n_columns;
    if (table->columns[column].right)
        tl_text_append(out, "%*s", width, text);
    else if (last)
        tl_text_append(out, "%s", text);
    else
        tl_text_append(out, "%-*s", width, text);
    tl_text_append(out, last ? "\n" : "  ");
}

void tl_table_write(const struct tl_table *table, struct tl_text *out)
{
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
        write_cell(table, c, widths[c], table->columns[c].title, out);
    for (size_t i = 0; i < table->n_cells; i++)
        write_cell(table, i % table->n_columns, widths[i % table->n_columns], table->cells[i], out);
    free(widths);
}
