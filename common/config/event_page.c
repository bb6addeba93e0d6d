/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "common/config/event_page.h"

/* What is read, and for messages from where. */
struct reader {
    const char *name, *owner;
    struct tl_event_page *page;
    struct tl_error *err;
};

static const char *const text_names[TL_EVENT_TEXTS] = {
    [TL_EVENT_TITLE] = "title",
    [TL_EVENT_PLACE] = "place",
    [TL_EVENT_DATE] = "date",
    [TL_EVENT_BEFORE] = "texts.before",
    [TL_EVENT_WAITING] = "texts.waiting",
    [TL_EVENT_TURN] = "texts.turn",
    [TL_EVENT_AFTER] = "texts.after",
};

const char *tl_event_text_name(enum tl_event_text text)
{
    return text_names[text];
}

/* `path` is within `page`: "title", "texts.before". */
static bool fail(const struct reader *reader, struct tl_yaml_place place, const char *path,
                 const char *problem)
{
    return tl_yaml_fail(reader->err, reader->name, place, "%s.page.%s: %s", reader->owner, path,
                        problem);
}

/* Is it text of 1 to max bytes? A line break may be in the texts of a moment only. */
static bool check_text(const struct reader *reader, const struct tl_yaml *node, const char *path,
                       size_t max, bool lines)
{
    char problem[96]; /* both numbers at their longest */
    if (node->kind != TL_YAML_SCALAR || node->text[0] == '\0')
        return fail(reader, node->place, path, "expected a text");
    if (strlen(node->text) > max) {
        snprintf(problem, sizeof(problem), "is %zu bytes long; at most %zu fit", strlen(node->text),
                 max);
        return fail(reader, node->place, path, problem);
    }
    for (const char *at = node->text; *at != '\0'; at++)
        if (iscntrl((unsigned char)*at) && !(lines && *at == '\n'))
            return fail(reader, node->place, path,
                        "holds a control character, which is not allowed");
    return true;
}

static bool read_value(const struct reader *reader, const struct tl_yaml *node, const char *path,
                       struct tl_event_value *value)
{
    if (!check_text(reader, node, path, sizeof(value->text) - 1, false))
        return false;
    memcpy(value->text, node->text, strlen(node->text) + 1);
    value->place = node->place;
    return true;
}

static bool add_wording(const struct reader *reader, const struct tl_yaml *node,
                        const char *language, enum tl_event_text text)
{
    size_t max = text >= TL_EVENT_BEFORE ? TL_EVENT_MOMENT_MAX : TL_EVENT_HEAD_MAX;
    if (!check_text(reader, node, text_names[text], max, text >= TL_EVENT_BEFORE))
        return false;
    size_t n = reader->page->texts[text].n;
    struct tl_event_wording *wording = &reader->page->texts[text].wordings[n];
    if (strlen(language) >= sizeof(wording->language))
        return fail(reader, node->key_place, text_names[text], "not a language's code");
    wording->text = strdup(node->text);
    if (wording->text == NULL)
        return tl_error_set(reader->err, TL_ERR_NOMEM, "out of memory while reading %s",
                            reader->name);
    memcpy(wording->language, language, strlen(language) + 1);
    wording->place = language[0] != '\0' ? node->key_place : node->place;
    reader->page->texts[text].n++;
    return true;
}

/* One text for all languages, or a mapping from languages to texts. */
static bool read_text(const struct reader *reader, const struct tl_yaml *node,
                      enum tl_event_text text)
{
    size_t n = 1;
    if (node->kind == TL_YAML_LIST)
        return fail(reader, node->place, text_names[text],
                    "expected a text, or a mapping from languages to texts");
    for (const struct tl_yaml *entry = node->first; entry != NULL; entry = entry->next)
        n++;
    reader->page->texts[text].wordings = calloc(n, sizeof(struct tl_event_wording));
    if (reader->page->texts[text].wordings == NULL)
        return tl_error_set(reader->err, TL_ERR_NOMEM, "out of memory while reading %s",
                            reader->name);
    if (node->kind == TL_YAML_SCALAR)
        return add_wording(reader, node, "", text);
    for (const struct tl_yaml *entry = node->first; entry != NULL; entry = entry->next)
        if (!add_wording(reader, entry, entry->key, text))
            return false;
    return true;
}

static bool read_gradient(const struct reader *reader, const struct tl_yaml *node)
{
    struct tl_event_page *page = reader->page;
    for (const struct tl_yaml *item = node->first; item != NULL; item = item->next) {
        if (page->n_colours == TL_EVENT_COLOURS_MAX)
            return fail(reader, item->place, "gradient", "expected two or three colours");
        if (!read_value(reader, item, "gradient", &page->colours[page->n_colours]))
            return false;
        page->n_colours++;
    }
    if (node->kind != TL_YAML_LIST || page->n_colours < 2)
        return fail(reader, node->place, "gradient",
                    "expected a list of two or three colours, such as [\"#3b1a78\", \"#6d28d9\"]");
    return true;
}

/* One file, or one for light and one for dark pages. */
static bool read_logo(const struct reader *reader, const struct tl_yaml *node)
{
    if (node->kind == TL_YAML_SCALAR)
        return read_value(reader, node, "logo", &reader->page->logo);
    for (const struct tl_yaml *entry = node->first; entry != NULL; entry = entry->next) {
        bool light = node->kind == TL_YAML_MAPPING && strcmp(entry->key, "light") == 0;
        bool dark = node->kind == TL_YAML_MAPPING && strcmp(entry->key, "dark") == 0;
        if (!light && !dark)
            return fail(reader, entry->place, "logo",
                        "expected a file, or `light` and `dark` with a file each");
        if (!read_value(reader, entry, light ? "logo.light" : "logo.dark",
                        light ? &reader->page->logo : &reader->page->logo_dark))
            return false;
    }
    return reader->page->logo.text[0] != '\0' ||
           fail(reader, node->place, "logo", "`light` is missing: the file for light pages");
}

static bool fail_unknown(const struct reader *reader, const struct tl_yaml *entry, const char *path,
                         const char *known)
{
    char quoted[64];
    tl_quote(entry->key, quoted, sizeof(quoted));
    return tl_yaml_fail(reader->err, reader->name, entry->key_place,
                        "unknown setting %s in %s.%s; it has %s", quoted, reader->owner, path,
                        known);
}

static bool read_moments(const struct reader *reader, const struct tl_yaml *node)
{
    if (node->kind != TL_YAML_MAPPING && !node->null)
        return fail(reader, node->place, "texts",
                    "expected a mapping of before, waiting, turn and after");
    for (const struct tl_yaml *entry = node->first; entry != NULL; entry = entry->next) {
        unsigned text = TL_EVENT_BEFORE;
        while (text < TL_EVENT_TEXTS &&
               strcmp(text_names[text] + strlen("texts."), entry->key) != 0)
            text++;
        if (text == TL_EVENT_TEXTS)
            return fail_unknown(reader, entry, "page.texts", "before, waiting, turn and after");
        if (!read_text(reader, entry, (enum tl_event_text)text))
            return false;
    }
    return true;
}

static bool read_entry(const struct reader *reader, const struct tl_yaml *entry)
{
    struct tl_event_page *page = reader->page;
    for (unsigned text = TL_EVENT_TITLE; text < TL_EVENT_BEFORE; text++)
        if (strcmp(entry->key, text_names[text]) == 0)
            return read_text(reader, entry, (enum tl_event_text)text);
    if (strcmp(entry->key, "image") == 0)
        return read_value(reader, entry, "image", &page->image);
    if (strcmp(entry->key, "gradient") == 0)
        return read_gradient(reader, entry);
    if (strcmp(entry->key, "accent") == 0)
        return read_value(reader, entry, "accent", &page->accent);
    if (strcmp(entry->key, "logo") == 0)
        return read_logo(reader, entry);
    if (strcmp(entry->key, "help") == 0)
        return read_value(reader, entry, "help", &page->help);
    if (strcmp(entry->key, "texts") == 0)
        return read_moments(reader, entry);
    return fail_unknown(reader, entry, "page",
                        "title, place, date, image, gradient, accent, logo, help and texts");
}

struct tl_event_page *tl_event_page_read(const char *name, const char *owner,
                                         const struct tl_yaml *mapping, struct tl_error *err)
{
    struct reader reader = {.name = name, .owner = owner, .err = err};
    if (mapping->kind != TL_YAML_MAPPING && !mapping->null) {
        tl_yaml_fail(err, name, mapping->place, "%s.page: expected a mapping of settings", owner);
        return NULL;
    }
    reader.page = calloc(1, sizeof(*reader.page));
    if (reader.page == NULL) {
        tl_error_set(err, TL_ERR_NOMEM, "out of memory while reading %s", name);
        return NULL;
    }
    bool good = true;
    for (const struct tl_yaml *entry = mapping->first; good && entry != NULL; entry = entry->next)
        good = read_entry(&reader, entry);
    if (good && reader.page->image.text[0] != '\0' && reader.page->n_colours > 0)
        good = fail(&reader, reader.page->image.place, "image",
                    "there is a gradient as well: set one of them");
    if (!good)
        tl_event_page_free(&reader.page);
    return reader.page;
}

struct tl_event_page *tl_event_page_copy(const struct tl_event_page *page)
{
    struct tl_event_page *copy = malloc(sizeof(*copy));
    if (copy == NULL)
        return NULL;
    *copy = *page;
    bool good = true;
    for (unsigned text = 0; text < TL_EVENT_TEXTS; text++) {
        size_t n = page->texts[text].n;
        copy->texts[text].n = 0;
        copy->texts[text].wordings = calloc(n + 1, sizeof(struct tl_event_wording));
        for (size_t i = 0; i < n && copy->texts[text].wordings != NULL; i++) {
            struct tl_event_wording *wording = &copy->texts[text].wordings[i];
            *wording = page->texts[text].wordings[i];
            wording->text = strdup(wording->text);
            good = good && wording->text != NULL;
            copy->texts[text].n++;
        }
        good = good && copy->texts[text].wordings != NULL;
    }
    if (!good)
        tl_event_page_free(&copy);
    return copy;
}

void tl_event_page_free(struct tl_event_page **page)
{
    if (*page == NULL)
        return;
    for (unsigned text = 0; text < TL_EVENT_TEXTS; text++) {
        for (size_t i = 0; i < (*page)->texts[text].n; i++)
            free((*page)->texts[text].wordings[i].text);
        free((*page)->texts[text].wordings);
    }
    free(*page);
    *page = NULL;
}
