/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/page/catalogue_head.h"
#include "worker/page/plural.h"

#include "common/base/text.h"

enum { YEAR_ADD_MAX = 10000, GROUP_FROM_MAX = 9, QUOTED_BYTES = 80 };

struct reader {
    struct tl_catalogue_head *head;
    const char *label;
    struct tl_error *err;
};

bool tl_catalogue_fail(struct tl_error *err, const char *label, const struct tl_yaml *node,
                       const char *what)
{
    char quoted[QUOTED_BYTES];
    tl_quote(node->key != NULL ? node->key : node->text, quoted, sizeof(quoted));
    return tl_yaml_fail(err, label, node->place, "%s: %s", quoted, what);
}

bool tl_catalogue_fail_key(struct tl_error *err, const char *label, const struct tl_yaml *entry,
                           const char *what)
{
    char quoted[QUOTED_BYTES];
    tl_quote(entry->key, quoted, sizeof(quoted));
    return tl_yaml_fail(err, label, entry->key_place, "%s: %s", quoted, what);
}

static bool is_code(const char *text)
{
    return strlen(text) >= 2 && text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")] == '\0';
}

static bool is_direction(const char *text)
{
    return strcmp(text, "ltr") == 0 || strcmp(text, "rtl") == 0;
}

static bool has_rule(const char *text)
{
    return tl_plural_rule_find(text) != NULL;
}

static bool is_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ')
            return false;
    }
    return true;
}

/* Each of the parts of a date once, and no other braces. */
static bool is_date(const char *text)
{
    static const char *const parts[] = {"{day}", "{month}", "{year}", "{time}"};
    size_t braces = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strstr(text, parts[i]) == NULL)
            return false;
    }
    for (const char *at = text; *at != '\0'; at++)
        braces += *at == '{' || *at == '}';
    return braces == 2 * sizeof(parts) / sizeof(parts[0]) && is_text(text);
}

struct head_text {
    const char *key;
    size_t offset, size;
    bool (*valid)(const char *text);
    const char *expected;
};

#define HEAD(member)                                                                               \
    offsetof(struct tl_catalogue_head, member), sizeof(((struct tl_catalogue_head *)NULL)->member)

static const struct head_text head_texts[] = {
    {"code", HEAD(code), is_code, "a language's code, such as ko or zh-Hant"},
    {"name", HEAD(name), is_text, "how its speakers call it, at most 63 bytes"},
    {"locale", HEAD(locale), is_code, "a locale of BCP 47, such as ar-u-nu-latn"},
    {"direction", HEAD(direction), is_direction, "ltr or rtl"},
    {"plurals", HEAD(plurals), has_rule, "a language whose plural forms are known, such as ru"},
    {"group", HEAD(group), is_text, "what stands between groups of digits, at most 7 bytes"},
    {"date", HEAD(date), is_date, "a text with {day}, {month}, {year} and {time}"},
};

struct head_list {
    const char *key;
    size_t offset, size, least, most;
    bool (*valid)(const char *text);
    const char *expected;
};

#define HEAD_LIST(member)                                                                          \
    offsetof(struct tl_catalogue_head, member),                                                    \
        sizeof(((struct tl_catalogue_head *)NULL)->member[0])

static const struct head_list head_lists[] = {
    {"also", HEAD_LIST(also), 0, TL_CATALOGUE_ALSO_MAX, is_code, "a list of at most 8 codes"},
    {"months", HEAD_LIST(months), TL_CATALOGUE_MONTHS, TL_CATALOGUE_MONTHS, is_text,
     "a list of 12 names"},
};

struct head_number {
    const char *key;
    size_t offset;
    int64_t least, most;
    const char *expected;
};

static const struct head_number head_numbers[] = {
    {"group_from", offsetof(struct tl_catalogue_head, group_from), 4, GROUP_FROM_MAX,
     "a number from 4 to 9"},
    {"year_add", offsetof(struct tl_catalogue_head, year_add), -YEAR_ADD_MAX, YEAR_ADD_MAX,
     "a number of years"},
};

/* Copies the text of a node that is valid and fits. */
static bool copy(const struct tl_yaml *node, char *to, size_t size, bool (*valid)(const char *))
{
    if (node->kind != TL_YAML_SCALAR || node->text[0] == '\0' || strlen(node->text) >= size ||
        !valid(node->text))
        return false;
    memcpy(to, node->text, strlen(node->text) + 1);
    return true;
}

static bool read_head_list(const struct reader *reader, const struct head_list *list,
                           const struct tl_yaml *entry)
{
    char *member = (char *)reader->head + list->offset;
    size_t n = 0;
    if (entry->kind != TL_YAML_LIST)
        return tl_catalogue_fail(reader->err, reader->label, entry, list->expected);
    memset(member, 0, list->size * list->most);
    for (const struct tl_yaml *item = entry->first; item != NULL; item = item->next, n++) {
        if (n == list->most || !copy(item, member + n * list->size, list->size, list->valid))
            return tl_catalogue_fail(reader->err, reader->label, entry, list->expected);
    }
    return n >= list->least || tl_catalogue_fail(reader->err, reader->label, entry, list->expected);
}

static bool read_head_number(const struct reader *reader, const struct head_number *number,
                             const struct tl_yaml *entry)
{
    char *end = NULL;
    int64_t value = entry->kind == TL_YAML_SCALAR ? strtoll(entry->text, &end, 10) : 0;
    if (end == NULL || end == entry->text || *end != '\0' || value < number->least ||
        value > number->most)
        return tl_catalogue_fail(reader->err, reader->label, entry, number->expected);
    memcpy((char *)reader->head + number->offset, &value, sizeof(value));
    return true;
}

static bool read_head_entry(const struct reader *reader, const struct tl_yaml *entry)
{
    for (size_t i = 0; i < sizeof(head_texts) / sizeof(head_texts[0]); i++) {
        const struct head_text *text = &head_texts[i];
        if (strcmp(entry->key, text->key) == 0)
            return copy(entry, (char *)reader->head + text->offset, text->size, text->valid) ||
                   tl_catalogue_fail(reader->err, reader->label, entry, text->expected);
    }
    for (size_t i = 0; i < sizeof(head_lists) / sizeof(head_lists[0]); i++) {
        if (strcmp(entry->key, head_lists[i].key) == 0)
            return read_head_list(reader, &head_lists[i], entry);
    }
    for (size_t i = 0; i < sizeof(head_numbers) / sizeof(head_numbers[0]); i++) {
        if (strcmp(entry->key, head_numbers[i].key) == 0)
            return read_head_number(reader, &head_numbers[i], entry);
    }
    return tl_catalogue_fail_key(reader->err, reader->label, entry, "a language has no such entry");
}

void tl_catalogue_head_defaults(struct tl_catalogue_head *head)
{
    *head = (struct tl_catalogue_head){.group_from = 4};
    snprintf(head->group, sizeof(head->group), ",");
    snprintf(head->direction, sizeof(head->direction), "ltr");
    snprintf(head->date, sizeof(head->date), "{year}-{month}-{day} {time} UTC");
}

bool tl_catalogue_head_read(struct tl_catalogue_head *head, const char *label,
                            const struct tl_yaml *language, struct tl_error *err)
{
    const struct reader reader = {.head = head, .label = label, .err = err};
    if (language == NULL || language->kind != TL_YAML_MAPPING)
        return tl_yaml_fail(err, label,
                            language == NULL ? (struct tl_yaml_place){1, 1} : language->place,
                            "a catalogue begins with `language:`, a mapping with code and name");
    for (const struct tl_yaml *entry = language->first; entry != NULL; entry = entry->next) {
        if (!read_head_entry(&reader, entry))
            return false;
    }
    if (head->code[0] == '\0' || head->name[0] == '\0')
        return tl_catalogue_fail_key(err, label, language,
                                     "a new language needs a code and a name");
    if (head->locale[0] == '\0')
        snprintf(head->locale, sizeof(head->locale), "%s", head->code);
    return has_rule(head->plurals[0] != '\0' ? head->plurals : head->code) ||
           tl_catalogue_fail_key(
               err, label, language,
               "the plural forms of this language are not known: add `plurals:` with the code of "
               "one that has the same forms");
}

bool tl_catalogue_head_code(const struct tl_yaml *language, char code[TL_LANGUAGE_CODE_MAX + 1])
{
    const struct tl_yaml *entry = language != NULL && language->kind == TL_YAML_MAPPING
                                      ? tl_yaml_get(language, "code")
                                      : NULL;
    return entry != NULL && copy(entry, code, TL_LANGUAGE_CODE_MAX + 1, is_code);
}
