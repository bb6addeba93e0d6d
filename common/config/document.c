/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/config/document.h"
#include "common/config/queue_table.h"
#include "common/config/value.h"
#include "common/config/webhook_table.h"

enum { REFERENCE_COLUMNS = 100 };

/* The default as the file writes it. */
static void write_default(const struct tl_setting *row, FILE *out)
{
    bool list = tl_setting_is_list(row);
    bool quoted = row->type == TL_SETTING_STRING || row->type == TL_SETTING_LISTEN ||
                  row->type == TL_SETTING_TEXTS || row->type == TL_SETTING_LIST ||
                  (*row->fallback == '\0' && !list);
    fputs(list ? "[" : "", out);
    if (*row->fallback != '\0' || !list)
        fputs(quoted ? "\"" : "", out);
    for (const char *at = row->fallback; *at != '\0'; at++) {
        if (*at == ',' && list)
            fputs(quoted ? "\", \"" : ", ", out);
        else
            fputc(*at, out);
    }
    if (*row->fallback != '\0' || !list)
        fputs(quoted ? "\"" : "", out);
    fputs(list ? "]" : "", out);
}

/* ---- tables in Markdown ---- */

static void write_row(const struct tl_setting *row, bool environment, FILE *out)
{
    char name[TL_SETTING_PATH_MAX];
    char bounds[TL_SETTING_BOUNDS_MAX];
    tl_setting_bounds(row, bounds);
    fprintf(out, "| `%s` | ", row->path);
    tl_setting_env_name(row, name);
    if (environment)
        fprintf(out, "`%s` | ", name);
    fprintf(out, "%s | ", tl_setting_type_name(row));
    if (*row->fallback == '\0') {
        fputs("empty", out);
    } else if (tl_setting_is_list(row)) {
        fputc('`', out);
        write_default(row, out);
        fputc('`', out);
    } else {
        fprintf(out, "`%s`", row->fallback);
    }
    fprintf(out, " | %s | %s |\n", bounds, row->help);
}

/* Between two comments, which the document has, too. */
static void write_table(const char *name, const struct tl_setting *rows, size_t n, bool environment,
                        FILE *out)
{
    fprintf(out, "<!-- settings of %s: written by `tellerline config-doc` -->\n", name);
    fprintf(out, "| setting | %stype | default | bounds | meaning |\n|---|%s---|---|---|---|\n",
            environment ? "environment | " : "", environment ? "---|" : "");
    for (size_t i = 0; i < n; i++)
        write_row(&rows[i], environment, out);
    fputs("<!-- end -->\n", out);
}

void tl_config_document(FILE *out)
{
    size_t n;
    const struct tl_setting *rows = tl_config_table(&n);
    write_table("the programs", rows, n, true, out);
    rows = tl_queue_table(&n);
    write_table("a queue", rows, n, false, out);
    rows = tl_probe_table(&n);
    write_table("a probe", rows, n, false, out);
    rows = tl_page_table(&n);
    write_table("an event", rows, n, false, out);
    rows = tl_webhook_table(&n);
    write_table("a webhook", rows, n, false, out);
}

/* ---- the file with every setting ---- */

/* The words as lines of a comment. */
static void write_comment(const char *text, int indent, FILE *out)
{
    int column = 0;
    while (*text != '\0') {
        int length = (int)strcspn(text, " ");
        if (column == 0 || column + 1 + length > REFERENCE_COLUMNS)
            column = fprintf(out, "%s%*s#", column == 0 ? "" : "\n", indent, "");
        column += fprintf(out, " %.*s", length, text);
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

/* The name in the mapping that the row is in, after the lines that open the mappings that the row
 * before was not in. */
static const char *open_mappings(const char *before, const char *path, int *indent, FILE *out)
{
    bool same = true;
    for (const char *dot; (dot = strchr(path, '.')) != NULL; path = dot + 1, *indent += 2) {
        size_t length = (size_t)(dot - path) + 1;
        same = same && strncmp(before, path, length) == 0;
        if (!same)
            fprintf(out, "%*s%.*s:\n", *indent, "", (int)length - 1, path);
        before += same ? length : 0;
    }
    return path;
}

static void write_settings(const struct tl_setting *rows, size_t n, int base, FILE *out)
{
    const char *before = "", *alone = NULL; /* the row before, if it has a long form */
    int indent = base;
    char help[1024];
    for (size_t i = 0; i < n; i++) {
        const struct tl_setting *row = &rows[i];
        size_t length = alone != NULL ? strlen(alone) : 0;
        if (alone != NULL && strncmp(row->path, alone, length) == 0 && row->path[length] == '.') {
            snprintf(help, sizeof(help), "`%s` of the mapping: %s", row->path + length + 1,
                     row->help);
            write_comment(help, indent, out);
            continue;
        }
        indent = base;
        const char *name = open_mappings(before, row->path, &indent, out);
        write_comment(row->help, indent, out);
        fprintf(out, "%*s%s: ", indent, "", name);
        write_default(row, out);
        fputc('\n', out);
        before = row->path;
        alone = row->self != NULL ? row->path : NULL;
    }
}

void tl_config_reference(FILE *out)
{
    size_t n;
    const struct tl_setting *rows = tl_config_table(&n);
    fputs(
        "# Every setting of Tellerline with its default, written by `tellerline config-doc`. Every "
        "setting may\n# be left out; conf/tellerline.yaml is what to begin with. Types and bounds "
        "are in\n# docs/operators/configuration.md.\n\n",
        out);
    write_settings(rows, n, 0, out);
    fputs("\n# Whom the notifier tells what happens. Each has:\n", out);
    rows = tl_webhook_table(&n);
    for (size_t i = 0; i < n; i++) {
        char text[1024];
        snprintf(text, sizeof(text), "`%s`: %s", rows[i].path, rows[i].help);
        write_comment(text, 0, out);
    }
    fputs("webhooks: []\n\n# Queues listed here are created if they do not exist. After that the "
          "copy in Redis counts: change it\n# with `tellerline queue set`.\nqueues:\n  demo:\n",
          out);
    rows = tl_queue_table(&n);
    write_settings(rows, n, 4, out);
    rows = tl_probe_table(&n);
    write_settings(rows, n, 4, out);
    rows = tl_page_table(&n);
    write_settings(rows, n, 4, out);
}
