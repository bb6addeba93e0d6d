/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/queue_settings.h"
#include "common/config/queue_table.h"
#include "common/config/read.h"
#include "common/config/spelling.h"
#include "common/config/value.h"
#include "common/config/webhook_table.h"
#include "common/wire/names.h"

/* ---- mistakes ---- */

/* A mistake at a place of the source. `shown` is the setting that the message names. */
static void note(const struct tl_section *section, struct tl_yaml_place place, const char *setting,
                 struct tl_error *err)
{
    if (section->source != NULL)
        tl_yaml_locate(err, section->source, place);
    tl_mistakes_add(section->mistakes, setting, err);
}

/* The same of a setting, which the message names. */
static void note_setting(const struct tl_section *section, struct tl_yaml_place place,
                         const char *setting, struct tl_error *err)
{
    if (*section->owner != '\0' || *setting != '\0')
        tl_error_prefix(err, "%s%s", section->owner, setting);
    note(section, place, setting, err);
}

/* "a mapping", for "expected x, found a mapping". */
static const char *kind_name(const struct tl_yaml *node)
{
    static const char *const names[] = {"a plain value", "a mapping", "a list"};
    return node->null ? "nothing" : names[node->kind];
}

static void note_kind(const struct tl_section *section, const struct tl_yaml *node,
                      const char *setting, const char *expected)
{
    struct tl_error err = {0};
    tl_error_set(&err, TL_ERR_INVALID, "expected %s, found %s", expected, kind_name(node));
    note_setting(section, node->place, setting, &err);
}

/* Keeps the name that is spelt most like the word, and still closer than *steps. */
static void propose(const char *word, const char *name, size_t *steps,
                    char best[TL_SETTING_PATH_MAX])
{
    if (tl_spelling_closer(word, name, steps))
        (void)tl_text_copy(best, TL_SETTING_PATH_MAX, name);
}

/* An entry of the mapping at `prefix` that is no setting. */
static void note_unknown(const struct tl_section *section, const char *prefix,
                         const struct tl_yaml *entry)
{
    char best[TL_SETTING_PATH_MAX] = "", name[TL_SETTING_PATH_MAX], quoted[64];
    char path[TL_MISTAKE_PATH_MAX], where[TL_MISTAKE_PATH_MAX];
    struct tl_error err = {0};
    size_t steps = SIZE_MAX;
    for (const struct tl_section *table = section; table != NULL; table = table->next) {
        for (size_t i = 0; i < table->n; i++) {
            const char *row = table->rows[i].path;
            if (strncmp(row, prefix, strlen(prefix)) != 0)
                continue;
            /* The rest of its path, or the name of the mapping that leads to it. */
            snprintf(name, sizeof(name), "%s", row + strlen(prefix));
            propose(entry->key, name, &steps, best);
            name[strcspn(name, ".")] = '\0';
            propose(entry->key, name, &steps, best);
        }
    }
    for (size_t i = 0; *prefix == '\0' && section->others != NULL && section->others[i] != NULL;
         i++)
        propose(entry->key, section->others[i], &steps, best);
    tl_quote(entry->key, quoted, sizeof(quoted));
    tl_error_set(&err, TL_ERR_INVALID, "unknown setting %s%s%s%s", quoted,
                 *best != '\0' ? "; did you mean \"" : "", best, *best != '\0' ? "\"?" : "");
    int length = snprintf(where, sizeof(where), "%s%s", section->owner, prefix);
    if (length > 0)
        tl_error_prefix(&err, "%.*s", length - 1, where); /* without the dot at its end */
    snprintf(path, sizeof(path), "%s%.64s", prefix, entry->key);
    note(section, entry->key_place, path, &err);
}

/* ---- settings ---- */

/* The items of a list, with commas between them; what is no item is noted. */
static bool join_items(const struct tl_section *section, const char *path,
                       const struct tl_yaml *list, struct tl_text *text)
{
    bool good = true;
    for (const struct tl_yaml *item = list->first; item != NULL; item = item->next) {
        if (item->kind != TL_YAML_SCALAR || strpbrk(item->text, ", ") != NULL) {
            note_kind(section, item, path, "a word without commas and spaces");
            good = false;
            continue;
        }
        tl_text_append(text, "%s%s", text->length > 0 ? "," : "", item->text);
    }
    return good;
}

static void read_texts(const struct tl_section *section, const struct tl_setting *row,
                       const struct tl_yaml *mapping)
{
    ((char *)section->base)[row->offset] = '\0';
    for (const struct tl_yaml *entry = mapping->first; entry != NULL; entry = entry->next) {
        struct tl_error err = {0};
        if (entry->kind != TL_YAML_SCALAR)
            note_kind(section, entry, row->path, "a text");
        else if (!tl_setting_set_text(row, section->base, entry->key, entry->text, &err))
            note_setting(section, entry->key_place, row->path, &err);
    }
}

/* A value that is no mapping. */
static void read_value(const struct tl_section *section, const struct tl_setting *row,
                       const struct tl_yaml *node)
{
    struct tl_text items = {0};
    struct tl_error err = {0};
    bool is_list = node->kind == TL_YAML_LIST;
    if (!is_list || join_items(section, row->path, node, &items)) {
        const char *text = items.data != NULL ? items.data : "";
        if (!is_list)
            text = node->null && section->source == NULL ? row->fallback : node->text;
        if (!(items.failed ? tl_error_set(&err, TL_ERR_NOMEM, "out of memory for a list")
                           : tl_setting_set(row, section->base, text, TL_FORM_FILE, &err)))
            note_setting(section, node->place, row->path, &err);
    }
    tl_text_free(&items);
}

void tl_setting_read(const struct tl_section *section, const struct tl_setting *row,
                     const struct tl_yaml *node)
{
    bool good = node->kind == TL_YAML_SCALAR ||
                (node->kind == TL_YAML_LIST && tl_setting_is_list(row)) ||
                (node->kind == TL_YAML_MAPPING && row->type == TL_SETTING_TEXTS);
    if (!good) {
        char expected[TL_SETTING_BOUNDS_MAX + 32], bounds[TL_SETTING_BOUNDS_MAX];
        const char *type = tl_setting_type_name(row);
        tl_setting_bounds(row, bounds);
        snprintf(expected, sizeof(expected), "%s %s (%s)", *type == 'a' ? "an" : "a", type, bounds);
        note_kind(section, node, row->path,
                  row->type == TL_SETTING_TEXTS ? "a text or a mapping from languages to texts"
                                                : expected);
    } else if (node->kind == TL_YAML_MAPPING) {
        read_texts(section, row, node);
    } else {
        read_value(section, row, node);
    }
}

/* Is the path that of a mapping with rows in it? */
static bool leads_to_rows(const struct tl_section *section, const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < section->n; i++) {
        const char *row = section->rows[i].path;
        if (strncmp(row, path, length) == 0 && row[length] == '.')
            return length > 0;
    }
    return false;
}

/* `capacity: 20`: the rows below have their defaults, unless they are named themselves. Column 0
 * says that they are not. */
static void default_below(const struct tl_section *section, const struct tl_setting *row,
                          struct tl_yaml_place place)
{
    size_t length = strlen(row->path);
    for (size_t i = 0; i < section->n; i++) {
        const char *path = section->rows[i].path;
        if (strncmp(path, row->path, length) != 0 || path[length] != '.' ||
            section->places[i].line > 0)
            continue;
        section->places[i] = (struct tl_yaml_place){place.line, 0};
        tl_settings_default(&section->rows[i], 1, section->base);
    }
}

static void read_entry(const struct tl_section *section, const char *prefix,
                       const struct tl_yaml *entry);

/* The entries of the mapping at a path. */
static void read_below(const struct tl_section *section, const char *path,
                       const struct tl_yaml *node)
{
    char prefix[TL_MISTAKE_PATH_MAX + 2];
    snprintf(prefix, sizeof(prefix), "%s.", path);
    if (node->kind != TL_YAML_MAPPING && !node->null) {
        note_kind(section, node, path, "a mapping of settings");
        return;
    }
    for (const struct tl_yaml *entry = node->first; entry != NULL; entry = entry->next)
        read_entry(section, prefix, entry);
}

static void read_row(const struct tl_section *section, const struct tl_setting *row,
                     const char *language, const struct tl_yaml *entry)
{
    struct tl_yaml_place *place = &section->places[row - section->rows];
    struct tl_error err = {0};
    if (place->column > 0 && language == NULL) {
        tl_error_set(&err, TL_ERR_INVALID, "given twice");
        note_setting(section, entry->key_place, row->path, &err);
        return;
    }
    *place = entry->place;
    if (language == NULL)
        tl_setting_read(section, row, entry);
    else if (entry->kind != TL_YAML_SCALAR)
        note_kind(section, entry, row->path, "a text");
    else if (!tl_setting_set_text(row, section->base, language, entry->text, &err))
        note_setting(section, entry->place, row->path, &err);
}

static void read_entry(const struct tl_section *section, const char *prefix,
                       const struct tl_yaml *entry)
{
    char path[TL_MISTAKE_PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s%s", prefix, entry->key);
    bool possible = *entry->key != '\0' && length > 0 && (size_t)length < sizeof(path);
    const char *language = NULL;
    const struct tl_setting *row =
        possible ? tl_setting_find(section->rows, section->n, path, &language) : NULL;
    bool is_mapping = entry->kind == TL_YAML_MAPPING;
    if (row != NULL && !(is_mapping && row->self != NULL)) {
        if (row->self != NULL && strcmp(path, row->path) == 0)
            default_below(section, row, entry->place);
        read_row(section, row, language, entry);
    } else if (possible && leads_to_rows(section, path)) {
        read_below(section, path, entry);
    } else {
        note_unknown(section, prefix, entry);
    }
}

/* The table of these that an entry belongs to; the first, where it is in none. */
static const struct tl_section *table_of(const struct tl_section *first, const char *key)
{
    const char *language;
    for (const struct tl_section *table = first; table != NULL; table = table->next)
        if (tl_setting_find(table->rows, table->n, key, &language) != NULL ||
            leads_to_rows(table, key))
            return table;
    return first;
}

void tl_settings_read(const struct tl_section *section, const struct tl_yaml *mapping)
{
    /* The lanes come first, wherever they are written, since default_lane is one of them. */
    const struct tl_yaml *lanes = mapping->first != NULL ? tl_yaml_get(mapping, "lanes") : NULL;
    if (lanes != NULL)
        read_entry(section, "", lanes);
    for (const struct tl_yaml *entry = mapping->first; entry != NULL; entry = entry->next)
        if (entry != lanes)
            read_entry(table_of(section, entry->key), "", entry);
}

/* ---- queues ---- */

/* What no row can say alone. */
static bool check_probe(const struct tl_probe_config *probe, struct tl_error *err)
{
    if (!(probe->full > 0))
        return tl_error_set(err, TL_ERR_INVALID, "probe.full must be above 0");
    return probe->url[0] == '\0' || probe->value[0] != '\0' ||
           tl_error_set(err, TL_ERR_INVALID,
                        "probe.url needs probe.value: %s to read of the answer",
                        probe->format == TL_PROBE_JSON ? "the path to the number" : "the metric");
}

/* *row becomes the one that is wrong. */
static bool check_page(const struct tl_event_page *page, const char **row, struct tl_error *err)
{
    size_t colours = page->gradient[0] != '\0' ? 1 : 0;
    for (const char *at = page->gradient; *at != '\0'; at++)
        colours += *at == ' ';
    *row = "page.gradient";
    if (colours == 1 || colours > TL_EVENT_COLOURS_MAX)
        return tl_error_set(err, TL_ERR_INVALID,
                            "expected a list of two or three colours, such as "
                            "[\"#3b1a78\", \"#6d28d9\"]");
    *row = "page.image";
    if (colours > 0 && page->image[0] != '\0')
        return tl_error_set(err, TL_ERR_INVALID, "there is a gradient as well: set one of them");
    *row = "page.logo.dark";
    return page->logo_dark[0] == '\0' || page->logo[0] != '\0' ||
           tl_error_set(err, TL_ERR_INVALID, "`light` is missing: the file for light pages");
}

/* The settings of a queue, its probe and its event, over the defaults. */
static void read_settings(struct tl_queue_config *queue, const char *name,
                          const struct tl_yaml *mapping, struct tl_mistakes *mistakes)
{
    char owner[TL_QUEUE_NAME_MAX + 16];
    struct tl_yaml_place probe_places[16] = {0};
    struct tl_section own = {.source = name,
                             .owner = owner,
                             .base = &queue->settings,
                             .places = queue->places,
                             .mistakes = mistakes};
    struct tl_section probe = own, page = own;
    struct tl_error err = {0};
    const char *row;
    own.rows = tl_queue_table(&own.n);
    own.next = &probe;
    probe.rows = tl_probe_table(&probe.n);
    probe.base = queue;
    probe.places = probe_places;
    probe.next = queue->page != NULL ? &page : NULL;
    page.rows = tl_page_table(&page.n);
    page.base = queue->page;
    page.places = queue->page != NULL ? queue->page->places : NULL;
    snprintf(owner, sizeof(owner), "queues.%s.", queue->name);
    tl_queue_settings_defaults(&queue->settings);
    tl_settings_default(probe.rows, probe.n, queue);
    size_t before = mistakes->n;
    tl_settings_read(&own, mapping);
    /* Of the file it is a switch beside the settings, which the store keeps. */
    queue->passthrough = queue->settings.mode == TL_MODE_PASSTHROUGH;
    if (queue->passthrough)
        queue->settings.mode = TL_MODE_OPEN;
    if (mistakes->n > before)
        return;
    if (!tl_queue_settings_validate(&queue->settings, &err) || !check_probe(&queue->probe, &err)) {
        tl_error_prefix(&err, "queues.%s", queue->name);
        note(&own, mapping->key_place, "", &err);
    }
    if (queue->page != NULL && !check_page(queue->page, &row, &err)) {
        const struct tl_setting *found = tl_setting_find(page.rows, page.n, row, NULL);
        note_setting(&page, queue->page->places[found - page.rows], row, &err);
    }
}

/* Does the queue have an event? */
static bool has_page(const struct tl_yaml *mapping)
{
    for (const struct tl_yaml *entry = mapping->first; entry != NULL; entry = entry->next)
        if (strncmp(entry->key, "page", 4) == 0 && (entry->key[4] == '\0' || entry->key[4] == '.'))
            return true;
    return false;
}

static void read_queue(struct tl_queue_config *queue, const char *name, const struct tl_yaml *entry,
                       struct tl_mistakes *mistakes)
{
    const struct tl_section top = {.source = name, .owner = "queues.", .mistakes = mistakes};
    struct tl_error err = {0};
    if (!tl_queue_name_valid(entry->key, strlen(entry->key))) {
        char quoted[64];
        tl_quote(entry->key, quoted, sizeof(quoted));
        tl_error_set(&err, TL_ERR_INVALID,
                     "%s is not a queue's name (1 to %d of a-z, 0-9, '.', '_' and '-', beginning "
                     "with a letter or digit)",
                     quoted, TL_QUEUE_NAME_MAX);
        note(&top, entry->key_place, entry->key, &err);
        return;
    }
    memcpy(queue->name, entry->key, strlen(entry->key) + 1);
    queue->place = entry->key_place;
    if (entry->kind != TL_YAML_MAPPING && !entry->null) {
        note_kind(&top, entry, queue->name, "a mapping of settings");
    } else if (has_page(entry) && (queue->page = calloc(1, sizeof(*queue->page))) == NULL) {
        tl_error_set(&err, TL_ERR_NOMEM, "out of memory for the page of a queue");
        note(&top, entry->key_place, queue->name, &err);
    } else {
        read_settings(queue, name, entry, mistakes);
    }
}

void tl_config_free_queues(struct tl_config *config)
{
    for (size_t i = 0; i < config->n_queues; i++)
        free(config->queues[i].page);
    free(config->queues);
    config->queues = NULL;
    config->n_queues = 0;
}

/* Memory for what the entries of this node are read into; NULL: there is none, or a mistake is
 * noted. `kind` is what the node must be. */
static void *make_room(const struct tl_section *section, const struct tl_yaml *node,
                       enum tl_yaml_kind kind, const char *expected, size_t most, size_t size)
{
    struct tl_error err = {0};
    void *room = NULL;
    size_t n = 0;
    for (const struct tl_yaml *entry = node->first; entry != NULL; entry = entry->next)
        n++;
    if (node->kind != kind && !node->null) {
        note_kind(section, node, "", expected);
    } else if (n > most) {
        tl_error_set(&err, TL_ERR_INVALID, "%zu of them; at most %zu are possible", n, most);
        note_setting(section, node->place, "", &err);
    } else if (n > 0 && (room = calloc(n, size)) == NULL) {
        tl_error_set(&err, TL_ERR_NOMEM, "out of memory for %zu of them", n);
        note_setting(section, node->place, "", &err);
    }
    return room;
}

void tl_config_read_queues(struct tl_config *config, const char *name, const struct tl_yaml *queues,
                           struct tl_mistakes *mistakes)
{
    const struct tl_section top = {.source = name, .owner = "queues", .mistakes = mistakes};
    tl_config_free_queues(config);
    snprintf(config->queues_source, sizeof(config->queues_source), "%s", name);
    config->queues = make_room(&top, queues, TL_YAML_MAPPING, "a mapping from names to settings",
                               TL_YAML_ENTRIES_MAX, sizeof(*config->queues));
    if (config->queues == NULL)
        return;
    for (const struct tl_yaml *entry = queues->first; entry != NULL; entry = entry->next)
        read_queue(&config->queues[config->n_queues++], name, entry, mistakes);
}

/* ---- webhooks ---- */

/* What no row can say alone; `nth` of them come before. */
static bool check_webhook(const struct tl_webhook_config *webhooks, size_t nth,
                          struct tl_error *err)
{
    const struct tl_webhook_config *webhook = &webhooks[nth];
    if (webhook->name[0] == '\0' || webhook->url[0] == '\0' || webhook->secret_file[0] == '\0')
        return tl_error_set(err, TL_ERR_INVALID, "a webhook needs name, url and secret_file");
    if (webhook->events == 0)
        return tl_error_set(err, TL_ERR_INVALID, "a webhook needs events: what it is told of");
    if ((webhook->events & (UINT64_C(1) << TL_WEBHOOK_THRESHOLD)) != 0 && webhook->threshold == 0)
        return tl_error_set(err, TL_ERR_INVALID,
                            "the event threshold needs threshold: how many visitors wait");
    for (size_t i = 0; i < nth; i++)
        if (strcmp(webhooks[i].name, webhook->name) == 0)
            return tl_error_set(err, TL_ERR_INVALID, "there are two webhooks \"%s\"",
                                webhook->name);
    return true;
}

static void read_webhook(struct tl_config *config, const char *name, const struct tl_yaml *entry,
                         struct tl_mistakes *mistakes)
{
    struct tl_webhook_config *webhook = &config->webhooks[config->n_webhooks];
    char owner[32];
    struct tl_yaml_place places[16] = {0};
    struct tl_error err = {0};
    struct tl_section section = {
        .source = name, .owner = owner, .base = webhook, .places = places, .mistakes = mistakes};
    section.rows = tl_webhook_table(&section.n);
    size_t before = mistakes->n;
    int length = snprintf(owner, sizeof(owner), "webhooks[%zu].", config->n_webhooks);
    tl_settings_default(section.rows, section.n, webhook);
    if (entry->kind != TL_YAML_MAPPING) {
        owner[length - 1] = '\0';
        note_kind(&section, entry, "", "a mapping of settings");
        return;
    }
    tl_settings_read(&section, entry);
    if (mistakes->n == before && !check_webhook(config->webhooks, config->n_webhooks, &err)) {
        owner[length - 1] = '\0';
        note_setting(&section, entry->place, "", &err);
    }
    config->n_webhooks++;
}

void tl_config_read_webhooks(struct tl_config *config, const char *name,
                             const struct tl_yaml *webhooks, struct tl_mistakes *mistakes)
{
    const struct tl_section top = {.source = name, .owner = "webhooks", .mistakes = mistakes};
    free(config->webhooks);
    config->n_webhooks = 0;
    config->webhooks = make_room(&top, webhooks, TL_YAML_LIST, "a list of webhooks",
                                 TL_WEBHOOKS_MAX, sizeof(*config->webhooks));
    if (config->webhooks == NULL)
        return;
    for (const struct tl_yaml *entry = webhooks->first; entry != NULL; entry = entry->next)
        read_webhook(config, name, entry, mistakes);
}

/* ---- the file ---- */

void tl_config_read(struct tl_config *config, const char *name, const struct tl_yaml *root,
                    struct tl_mistakes *mistakes)
{
    static const char *const others[] = {"queues", "webhooks", NULL};
    struct tl_yaml_place places[TL_CONFIG_ROWS_MAX] = {0};
    struct tl_section top = {.source = name,
                             .owner = "",
                             .base = config,
                             .places = places,
                             .others = others,
                             .mistakes = mistakes};
    top.rows = tl_config_table(&top.n);
    if (root->kind != TL_YAML_MAPPING && !root->null) {
        note_kind(&top, root, "", "a mapping of settings");
        return;
    }
    for (const struct tl_yaml *entry = root->first; entry != NULL; entry = entry->next) {
        if (strcmp(entry->key, "queues") == 0)
            tl_config_read_queues(config, name, entry, mistakes);
        else if (strcmp(entry->key, "webhooks") == 0)
            tl_config_read_webhooks(config, name, entry, mistakes);
        else
            read_entry(&top, "", entry);
    }
}
