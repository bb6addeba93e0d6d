/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/hook_table.h"
#include "common/config/mode.h"
#include "common/config/queue_settings.h"
#include "common/config/queue_table.h"
#include "common/config/read.h"
#include "common/config/table.h"
#include "common/config/value.h"
#include "common/config/words.h"
#include "common/config/yaml.h"
#include "common/wire/names.h"

/* A mapping of the file that is read against a table. */
struct section {
    const char *name;   /* of the file */
    const char *owner;  /* for messages: "" or "queues.demo." */
    const char *prefix; /* of the rows that belong here: "" or "redis." */
    const struct tl_setting *rows;
    size_t n;
    void *base;    /* the struct the rows are fields of */
    bool *written; /* a flag for each row, set where it is read; NULL: nobody asks */
    struct tl_error *err;
};

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* "a mapping", for "expected x, found a mapping". */
static const char *kind_name(const struct tl_yaml *node)
{
    static const char *const names[] = {"a plain value", "a mapping", "a list"};
    return node->null ? "nothing" : names[node->kind];
}

static bool fail_unknown(const struct section *section, const struct tl_yaml *entry)
{
    char best[TL_SETTING_PATH_MAX] = "";
    char name[TL_SETTING_PATH_MAX];
    char quoted[64];
    size_t steps = SIZE_MAX;
    for (size_t i = 0; i < section->n; i++) {
        const char *row = section->rows[i].path;
        if (!starts_with(row, section->prefix))
            continue;
        /* Its last part, or the name of the section below that leads to it. */
        snprintf(name, sizeof(name), "%s", row + strlen(section->prefix));
        name[strcspn(name, ".")] = '\0';
        if (tl_spelling_closer(entry->key, name, &steps))
            memcpy(best, name, sizeof(best));
    }
    bool top = *section->owner == '\0' && *section->prefix == '\0';
    if (top && tl_spelling_closer(entry->key, "queues", &steps))
        snprintf(best, sizeof(best), "queues");
    if (top && tl_spelling_closer(entry->key, "webhooks", &steps))
        snprintf(best, sizeof(best), "webhooks");
    tl_quote(entry->key, quoted, sizeof(quoted));
    char place[TL_QUEUE_NAME_MAX + TL_SETTING_PATH_MAX + 16];
    snprintf(place, sizeof(place), "%s%s", section->owner, section->prefix);
    if (*place != '\0')
        place[strlen(place) - 1] = '\0'; /* the dot at its end */
    return tl_yaml_fail(section->err, section->name, entry->key_place,
                        "unknown setting %s%s%s%s%s%s", quoted, top ? "" : " in ", place,
                        *best != '\0' ? "; did you mean \"" : "", best, *best != '\0' ? "\"?" : "");
}

/* A list's items, joined by commas as the store keeps them. NULL on failure. The caller frees. */
static char *join_items(const struct section *section, const struct tl_setting *row,
                        const struct tl_yaml *list)
{
    size_t size = 1;
    for (const struct tl_yaml *item = list->first; item != NULL; item = item->next) {
        if (item->kind != TL_YAML_SCALAR || strchr(item->text, ',') != NULL) {
            tl_yaml_fail(section->err, section->name, item->place,
                         "%s%s: expected a name, found %s", section->owner, row->path,
                         item->kind == TL_YAML_SCALAR ? "a comma in it" : kind_name(item));
            return NULL;
        }
        size += strlen(item->text) + 1;
    }
    char *text = malloc(size);
    if (text == NULL) {
        tl_error_set(section->err, TL_ERR_NOMEM, "out of memory while reading %s", section->name);
        return NULL;
    }
    char *end = text;
    *end = '\0';
    for (const struct tl_yaml *item = list->first; item != NULL; item = item->next) {
        end = stpcpy(end, item->text);
        end = stpcpy(end, item->next != NULL ? "," : "");
    }
    return text;
}

static bool read_value(const struct section *section, const struct tl_setting *row,
                       const struct tl_yaml *entry)
{
    bool list = row->type == TL_SETTING_LANES || row->type == TL_SETTING_WEIGHTS ||
                row->type == TL_SETTING_NAMES;
    if (entry->kind != (list ? TL_YAML_LIST : TL_YAML_SCALAR)) {
        char bounds[TL_SETTING_BOUNDS_MAX];
        const char *type = tl_setting_type_name(row);
        tl_setting_bounds(row, bounds);
        return tl_yaml_fail(section->err, section->name, entry->place,
                            "%s%s: expected %s %s (%s), found %s", section->owner, row->path,
                            *type == 'a' ? "an" : "a", type, bounds, kind_name(entry));
    }
    char *items = list ? join_items(section, row, entry) : NULL;
    if (list && items == NULL)
        return false;
    bool good =
        tl_setting_set(row, section->base, list ? items : entry->text, TL_FORM_FILE, section->err);
    free(items);
    if (good)
        return true;
    tl_error_prefix(section->err, "%s%s", section->owner, row->path);
    return tl_yaml_locate(section->err, section->name, entry->place);
}

static bool read_section(const struct section *section, const struct tl_yaml *mapping);

/* The settings below `path`. */
static bool read_below(const struct section *section, const char *path, const struct tl_yaml *entry)
{
    struct section below = *section;
    char prefix[TL_SETTING_PATH_MAX + 1];
    snprintf(prefix, sizeof(prefix), "%s.", path);
    below.prefix = prefix;
    if (entry->null)
        return true;
    if (entry->kind != TL_YAML_MAPPING)
        return tl_yaml_fail(section->err, section->name, entry->place,
                            "%s%s: expected a mapping of settings, found %s", section->owner, path,
                            kind_name(entry));
    return read_section(&below, entry);
}

static bool read_entry(const struct section *section, const struct tl_yaml *entry)
{
    char path[TL_SETTING_PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s%s", section->prefix, entry->key);
    /* "redis.url" in one word would be a second way to write the same. */
    bool possible = length > 0 && (size_t)length < sizeof(path) &&
                    strchr(entry->key, '.') == NULL && *entry->key != '\0';
    for (size_t i = 0; possible && i < section->n; i++) {
        const struct tl_setting *row = &section->rows[i];
        if (strcmp(row->path, path) == 0) {
            if (section->written != NULL)
                section->written[i] = true;
            return read_value(section, row, entry);
        }
        if (starts_with(row->path, path) && row->path[length] == '.')
            return read_below(section, path, entry);
    }
    return fail_unknown(section, entry);
}

static bool read_section(const struct section *section, const struct tl_yaml *mapping)
{
    for (const struct tl_yaml *entry = mapping->first; entry != NULL; entry = entry->next)
        if (!read_entry(section, entry))
            return false;
    return true;
}

/* A number, which is fixed, or the bounds between which it is steered. */
static bool read_capacity(const struct section *section, const struct tl_yaml *entry)
{
    const struct tl_setting *most = NULL, *least = NULL;
    for (size_t i = 0; i < section->n; i++) {
        const struct tl_setting *row = &section->rows[i];
        bool is_most = strcmp(row->path, "capacity") == 0;
        if (!is_most && strcmp(row->path, "capacity.min") != 0)
            continue;
        *(is_most ? &most : &least) = row;
        section->written[i] = true;
    }
    if (entry->kind != TL_YAML_MAPPING)
        return read_value(section, most, entry);
    struct section below = *section;
    below.prefix = "capacity.";
    for (const struct tl_yaml *bound = entry->first; bound != NULL; bound = bound->next) {
        bool is_max = strcmp(bound->key, "max") == 0;
        if (!is_max && strcmp(bound->key, "min") != 0)
            return fail_unknown(&below, bound);
        if (!read_value(section, is_max ? most : least, bound))
            return false;
    }
    return true;
}

/* The event of a queue. */
static bool read_page(struct tl_queue_config *queue, const struct section *section,
                      const struct tl_yaml *entry)
{
    char owner[TL_QUEUE_NAME_MAX + 16]; /* without its dot */
    snprintf(owner, sizeof(owner), "%.*s", (int)strlen(section->owner) - 1, section->owner);
    queue->page = tl_event_page_read(section->name, owner, entry, section->err);
    return queue->page != NULL;
}

/* The settings of a queue, its probe, which are in two tables, and its event. */
static bool read_settings(struct tl_queue_config *queue, const struct section *section,
                          const struct tl_yaml *mapping)
{
    struct section probe = *section;
    probe.rows = tl_probe_table(&probe.n);
    probe.base = queue;
    probe.written = NULL;
    for (const struct tl_yaml *entry = mapping->first; entry != NULL; entry = entry->next) {
        bool is_probe = strcmp(entry->key, "probe") == 0;
        bool good = strcmp(entry->key, "page") == 0 ? read_page(queue, section, entry)
                    : strcmp(entry->key, "capacity") == 0
                        ? read_capacity(section, entry)
                        : read_entry(is_probe ? &probe : section, entry);
        if (!good)
            return false;
    }
    return true;
}

/* A probe needs to know what to read. */
static bool check_probe(const struct tl_queue_config *queue, struct tl_error *err)
{
    const struct tl_probe_config *probe = &queue->probe;
    if (!(probe->full > 0))
        return tl_error_set(err, TL_ERR_INVALID, "probe.full must be above 0");
    return probe->url[0] == '\0' || probe->value[0] != '\0' ||
           tl_error_set(err, TL_ERR_INVALID,
                        "probe.url needs probe.value: %s to read of the answer",
                        probe->format == TL_PROBE_JSON ? "the path to the number" : "the metric");
}

/* One queue: its name, and its settings over the defaults. */
static bool read_queue(struct tl_queue_config *queue, const char *name, const struct tl_yaml *entry,
                       struct tl_error *err)
{
    char owner[TL_QUEUE_NAME_MAX + 16];
    struct section section = {.name = name,
                              .owner = owner,
                              .prefix = "",
                              .base = &queue->settings,
                              .written = queue->written,
                              .err = err};
    section.rows = tl_queue_table(&section.n);
    size_t n_probe;
    const struct tl_setting *probe_rows = tl_probe_table(&n_probe);
    tl_settings_default(probe_rows, n_probe, queue);
    tl_queue_settings_defaults(&queue->settings);
    if (!tl_queue_name_valid(entry->key, strlen(entry->key))) {
        char quoted[64];
        tl_quote(entry->key, quoted, sizeof(quoted));
        return tl_yaml_fail(err, name, entry->key_place,
                            "%s is not a queue's name (1 to %d of a-z, 0-9, '.', '_' and '-', "
                            "beginning with a letter or digit)",
                            quoted, TL_QUEUE_NAME_MAX);
    }
    memcpy(queue->name, entry->key, strlen(entry->key) + 1);
    const struct tl_yaml *challenge = entry->null ? NULL : tl_yaml_get(entry, "challenge");
    const struct tl_yaml_place place = challenge != NULL ? challenge->place : entry->key_place;
    queue->line = place.line;
    queue->column = place.column;
    snprintf(owner, sizeof(owner), "queues.%s.", queue->name);
    if (entry->kind != TL_YAML_MAPPING && !entry->null)
        return tl_yaml_fail(err, name, entry->place,
                            "queues.%s: expected a mapping of settings, found %s", queue->name,
                            kind_name(entry));
    /* The lanes come first, wherever they are written, since default_lane is one of them. */
    const struct tl_yaml *lanes = entry->null ? NULL : tl_yaml_get(entry, "lanes");
    if (lanes != NULL && !read_entry(&section, lanes))
        return false;
    if (!read_settings(queue, &section, entry))
        return false;
    /* Of the file it is a switch beside the settings, which the store keeps. */
    queue->passthrough = queue->settings.mode == TL_MODE_PASSTHROUGH;
    if (queue->passthrough)
        queue->settings.mode = TL_MODE_OPEN;
    if (tl_queue_settings_validate(&queue->settings, err) && check_probe(queue, err))
        return true;
    tl_error_prefix(err, "queues.%s", queue->name);
    return tl_yaml_locate(err, name, entry->key_place);
}

void tl_config_free_queues(struct tl_config *config)
{
    for (size_t i = 0; i < config->n_queues; i++)
        tl_event_page_free(&config->queues[i].page);
    free(config->queues);
    config->queues = NULL;
    config->n_queues = 0;
}

bool tl_config_read_queues(struct tl_config *config, const char *name, const struct tl_yaml *queues,
                           struct tl_error *err)
{
    tl_config_free_queues(config);
    snprintf(config->queues_source, sizeof(config->queues_source), "%s", name);
    if (queues->kind != TL_YAML_MAPPING && !queues->null)
        return tl_yaml_fail(err, name, queues->place,
                            "queues: expected a mapping from names to settings, found %s",
                            kind_name(queues));
    size_t n = 0;
    for (const struct tl_yaml *entry = queues->first; entry != NULL; entry = entry->next)
        n++;
    if (n == 0)
        return true;
    config->queues = calloc(n, sizeof(*config->queues));
    if (config->queues == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "out of memory for %zu queues", n);
    for (const struct tl_yaml *entry = queues->first; entry != NULL; entry = entry->next)
        if (!read_queue(&config->queues[config->n_queues++], name, entry, err))
            return false;
    return true;
}

/* One hook: its settings over the defaults. */
static bool read_hook(struct tl_config *config, const char *name, const struct tl_yaml *entry,
                      struct tl_error *err)
{
    size_t nth = config->n_webhooks;
    struct tl_hook_config *hook = &config->webhooks[nth];
    char owner[32];
    struct section section = {.name = name, .owner = owner, .prefix = "", .base = hook, .err = err};
    section.rows = tl_hook_table(&section.n);
    snprintf(owner, sizeof(owner), "webhooks[%zu].", nth);
    if (entry->kind != TL_YAML_MAPPING)
        return tl_yaml_fail(err, name, entry->place,
                            "webhooks[%zu]: expected a mapping of settings, found %s", nth,
                            kind_name(entry));
    tl_settings_default(section.rows, section.n, hook);
    if (!read_section(&section, entry))
        return false;
    bool good = true;
    if (hook->name[0] == '\0' || hook->url[0] == '\0' || hook->secret_file[0] == '\0')
        good = tl_error_set(err, TL_ERR_INVALID, "a webhook needs name, url and secret_file");
    else if (hook->events == 0)
        good = tl_error_set(err, TL_ERR_INVALID, "a webhook needs events: what it is told of");
    else if ((hook->events & (UINT64_C(1) << TL_HOOK_THRESHOLD)) != 0 && hook->threshold == 0)
        good = tl_error_set(err, TL_ERR_INVALID,
                            "the event threshold needs threshold: how many visitors wait");
    for (size_t i = 0; good && i < nth; i++)
        if (strcmp(config->webhooks[i].name, hook->name) == 0)
            good = tl_error_set(err, TL_ERR_INVALID, "there are two webhooks \"%s\"", hook->name);
    config->n_webhooks++;
    if (good)
        return true;
    tl_error_prefix(err, "webhooks[%zu]", nth);
    return tl_yaml_locate(err, name, entry->place);
}

bool tl_config_read_hooks(struct tl_config *config, const char *name, const struct tl_yaml *hooks,
                          struct tl_error *err)
{
    free(config->webhooks);
    config->webhooks = NULL;
    config->n_webhooks = 0;
    if (hooks->kind != TL_YAML_LIST && !hooks->null)
        return tl_yaml_fail(err, name, hooks->place,
                            "webhooks: expected a list of webhooks, found %s", kind_name(hooks));
    size_t n = 0;
    for (const struct tl_yaml *entry = hooks->first; entry != NULL; entry = entry->next)
        n++;
    if (n == 0)
        return true;
    if (n > TL_HOOKS_MAX)
        return tl_yaml_fail(err, name, hooks->place,
                            "webhooks: %zu of them; at most %d are possible", n, TL_HOOKS_MAX);
    config->webhooks = calloc(n, sizeof(*config->webhooks));
    if (config->webhooks == NULL)
        return tl_error_set(err, TL_ERR_NOMEM, "out of memory for %zu webhooks", n);
    for (const struct tl_yaml *entry = hooks->first; entry != NULL; entry = entry->next)
        if (!read_hook(config, name, entry, err))
            return false;
    return true;
}

bool tl_config_read(struct tl_config *config, const char *name, const struct tl_yaml *root,
                    struct tl_error *err)
{
    struct section top = {.name = name, .owner = "", .prefix = "", .base = config, .err = err};
    top.rows = tl_config_table(&top.n);
    if (root->kind != TL_YAML_MAPPING && !root->null)
        return tl_yaml_fail(err, name, root->place, "expected a mapping of settings, found %s",
                            kind_name(root));
    for (const struct tl_yaml *entry = root->first; entry != NULL; entry = entry->next) {
        bool good;
        if (strcmp(entry->key, "queues") == 0)
            good = tl_config_read_queues(config, name, entry, err);
        else if (strcmp(entry->key, "webhooks") == 0)
            good = tl_config_read_hooks(config, name, entry, err);
        else
            good = read_entry(&top, entry);
        if (!good)
            return false;
    }
    return true;
}
