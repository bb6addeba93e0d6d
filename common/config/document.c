/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "common/config/document.h"
#include "common/config/hook_table.h"
#include "common/config/queue_table.h"
#include "common/config/table.h"
#include "common/config/words.h"
#include "common/config/yaml.h"
#include "common/wire/names.h"

static const char introduction[] =
    "# Configuration\n"
    "\n"
    "<!-- Written by `tellerline config-doc` from the programs' table of settings. Do not edit. "
    "-->\n"
    "\n"
    "All programs read the same YAML file: `--config FILE`. `conf/tellerline.yaml` has every\n"
    "setting with its default, and `conf/examples/` has complete files for typical uses. Every\n"
    "setting may be left out. `--check` reads and checks the file and the environment, prints\n"
    "`FILE: ok` or what is wrong, and exits with 0 or 1. `tellerline check` does the same,\n"
    "and reads the files of `page` as the worker does at its start.\n"
    "\n"
    "An unknown setting, a duplicate, a wrong type or a value out of bounds stops the start:\n"
    "\n"
    "```\n"
    "tellerline.yaml:3:13: http.max_body: \"2MiB\" is out of bounds (256B to 1MiB)\n"
    "tellerline.yaml:9:5: unknown setting \"capasity\" in queues.demo; did you mean \"capacity\"?\n"
    "```\n"
    "\n"
    "## How values are written\n"
    "\n"
    "| type | written as |\n"
    "|---|---|\n"
    "| boolean | `true` or `false` |\n"
    "| number | digits only: `20000` |\n"
    "| size | bytes, or a number with `B`, `KB`, `MB`, `GB` (1000) or `KiB`, `MiB`, `GiB` (1024) "
    "|\n"
    "| duration | a number with `ms`, `s`, `m`, `h` or `d`: `250ms`, `10s`, `5m`, `2h`, `1d` |\n"
    "| time | RFC 3339 with an offset: `2026-12-01T20:00:00+09:00` |\n"
    "| address | `host:port`; IPv6 in brackets and quotes: `\"[::1]:8081\"` |\n"
    "| choice | one of the words listed |\n"
    "| list | `[vip, normal]` |\n"
    "| text | anything without control characters |\n"
    "\n";

static const char process_introduction[] =
    "## Settings of the programs\n"
    "\n"
    "The environment overrides the file. The name of the variable is `TELLERLINE_` and the path "
    "of\n"
    "the setting in capitals, with `_` for `.`. A variable with `_FILE` at its end names a file "
    "that\n"
    "holds the value, for secrets: `TELLERLINE_REDIS_URL_FILE=/run/redis.url`; one line end is "
    "cut\n"
    "off. It is an error to set both, or an unknown variable that starts with `TELLERLINE_`.\n"
    "`TELLERLINE_CONFIG` names the configuration file. `TELLERLINE_SEED` and `TELLERLINE_TEST_*`\n"
    "belong to the tests and are ignored.\n"
    "\n"
    "| setting | environment | type | default | bounds | meaning |\n"
    "|---|---|---|---|---|---|\n";

static const char queue_introduction[] =
    "\n"
    "## Settings of a queue\n"
    "\n"
    "They are under `queues:` and the queue's name (1 to %d of `a-z`, `0-9`, `.`, `_` and `-`,\n"
    "beginning with a letter or digit; at most %d queues). A queue listed here is created if it\n"
    "does not exist. After that the copy in Redis counts, and changes in the file have no effect:\n"
    "use `tellerline set`, with the name in the column \"in the store\".\n"
    "\n"
    "`TELLERLINE_QUEUES` replaces all queues of the file by a YAML mapping, in one line:\n"
    "`TELLERLINE_QUEUES='{demo: {capacity: 50, session_ttl: 5m}}'`.\n"
    "\n"
    "| setting | in the store | type | default | bounds | meaning |\n"
    "|---|---|---|---|---|---|\n";

static const char probe_introduction[] =
    "\n"
    "## The probe of a queue\n"
    "\n"
    "With `capacity: auto` the admitter can ask the site how loaded it is "
    "([adaptive.md](adaptive.md)).\n"
    "These are under the queue's name, too, but never in Redis: the file of the admitter says "
    "whom\n"
    "it asks, and a change takes effect when it is started again.\n"
    "\n"
    "| setting | type | default | bounds | meaning |\n"
    "|---|---|---|---|---|\n";

static const char page_section[] =
    "\n"
    "## The event of a queue\n"
    "\n"
    "`page:` under the queue's name says what visitors wait for\n"
    "([waiting-page.md](../integrators/waiting-page.md#the-event)).\n"
    "It is never in Redis: each worker's file counts, and SIGHUP reads it again. `tellerline "
    "check` "
    "reads\n"
    "the files that it names, too.\n"
    "\n"
    "| setting | written as | bounds | meaning |\n"
    "|---|---|---|---|\n"
    "| `page.title`, `page.place` | text, or a mapping from languages to texts | 1 to %d bytes "
    "each "
    "| What it is, and where. The title also stands in the title of the browser's tab. |\n"
    "| `page.date` | the same, or a time | 1 to %d bytes each | When. A time is shown in the "
    "visitor's language and time zone, a text as it is. |\n"
    "| `page.gradient` | list of colours: `[\"#3b1a78\", \"#6d28d9\"]` | two or three | Behind "
    "title, place and date. The text on it is white or dark, whichever is readable; neither: "
    "refused. Without it and `image`: the accent colour. |\n"
    "| `page.image` | file: `.jpg`, `.jpeg`, `.png` or `.webp` | at most 500 KB | Instead of a "
    "gradient, darkened behind the text. A relative path starts at the folder of the configuration "
    "file. |\n"
    "| `page.accent` | colour | contrast of 4.5 to 1 on a light page | Of buttons, links and the "
    "bar. On a dark page it is made lighter until it is readable. |\n"
    "| `page.logo` | file, or `light` and `dark` with a file each: `.svg`, `.png` or `.webp` | at "
    "most 100 KB | Instead of that of `page.logo` of the programs. |\n"
    "| `page.help` | address | `https://`, or a path of the worker's host | A link to help, which "
    "opens in a new tab. |\n"
    "| `page.texts.before`, `.waiting`, `.turn`, `.after` | as the title; with line breaks | 1 to "
    "%d bytes each | What you say before the opening, in the line, at the turn, and when the queue "
    "is sold out or closed. |\n";

static const char hook_introduction[] =
    "\n"
    "## Hooks\n"
    "\n"
    "A list under `hooks:`, of at most %d, each with these settings. The notifier reads it at its "
    "start\n"
    "([webhooks.md](../integrators/webhooks.md)). `TELLERLINE_HOOKS` replaces the list by one in "
    "YAML.\n"
    "\n"
    "| setting | type | default | bounds | meaning |\n"
    "|---|---|---|---|---|\n";
/* Not a setting of the store, so not in the table (tl_queue_settings_plain). */
static const char capacity_max[] =
    "| `capacity_max` | `capacity` | number | `300` | 0 to 10000000 | With `capacity: auto`: the "
    "most it may become. |\n";

static const char limits[] =
    "\n"
    "## Limits of the file\n"
    "\n"
    "UTF-8, at most 1 MiB, one document, mappings and lists nested at most %d deep, at most %d\n"
    "entries in each. Anchors, aliases and tags are refused, and so is a duplicate key.\n";

/* other_name: its name elsewhere, for a column of its own; NULL: there is no such column. */
static void write_row(const struct tl_setting *row, const char *other_name, FILE *out)
{
    char bounds[TL_SETTING_BOUNDS_MAX];
    bool list = row->type == TL_SETTING_LANES || row->type == TL_SETTING_WEIGHTS ||
                row->type == TL_SETTING_NAMES;
    tl_setting_bounds(row, bounds);
    fprintf(out, "| `%s` | ", row->path);
    if (other_name != NULL)
        fprintf(out, "`%s` | ", other_name);
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

void tl_config_document(FILE *out)
{
    size_t n;
    const struct tl_setting *rows = tl_config_table(&n);
    fputs(introduction, out);
    fputs(process_introduction, out);
    for (size_t i = 0; i < n; i++) {
        char env[TL_SETTING_PATH_MAX];
        tl_setting_env_name(&rows[i], env);
        write_row(&rows[i], env, out);
    }
    rows = tl_queue_table(&n);
    fprintf(out, queue_introduction, TL_QUEUE_NAME_MAX, TL_YAML_ENTRIES_MAX);
    for (size_t i = 0; i < n; i++) {
        write_row(&rows[i], rows[i].key, out);
        if (strcmp(rows[i].key, "capacity") == 0)
            fputs(capacity_max, out);
    }
    fputs(probe_introduction, out);
    rows = tl_probe_table(&n);
    for (size_t i = 0; i < n; i++)
        write_row(&rows[i], NULL, out);
    fprintf(out, page_section, TL_EVENT_HEAD_MAX, TL_EVENT_HEAD_MAX, TL_EVENT_MOMENT_MAX);
    rows = tl_hook_table(&n);
    fprintf(out, hook_introduction, TL_HOOKS_MAX);
    for (size_t i = 0; i < n; i++)
        write_row(&rows[i], NULL, out);
    fprintf(out, limits, TL_YAML_DEPTH_MAX, TL_YAML_ENTRIES_MAX);
}
