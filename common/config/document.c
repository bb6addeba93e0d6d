/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/document.h"
#include "common/config/hook_table.h"
#include "common/config/queue_table.h"
#include "common/config/table.h"
#include "common/config/words.h"

static void write_row(const struct tl_setting *row, bool environment, FILE *out)
{
    char name[TL_SETTING_PATH_MAX];
    char bounds[TL_SETTING_BOUNDS_MAX];
    bool list = row->type == TL_SETTING_LANES || row->type == TL_SETTING_WEIGHTS ||
                row->type == TL_SETTING_NAMES;
    tl_setting_bounds(row, bounds);
    fprintf(out, "| `%s` | ", row->path);
    tl_setting_env_name(row, name);
    if (environment)
        fprintf(out, "`%s` | ", name);
    fprintf(out, "%s | ", tl_setting_type_name(row));
    if (*row->fallback == '\0') {
        fputs("empty", out);
    } else {
        fputs(list ? "`[" : "`", out);
        for (const char *at = row->fallback; *at != '\0'; at++)
            fputs(*at == ',' ? ", " : (const char[]){*at, '\0'}, out);
        fputs(list ? "]`" : "`", out);
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
    rows = tl_hook_table(&n);
    write_table("a webhook", rows, n, false, out);
}
