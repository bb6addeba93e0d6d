/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "worker/page/catalogue.h"

#include "common/base/text.h"
#include "common/config/yaml.h"

enum { NAME_MAX_BYTES = 40, YEAR_ADD_MAX = 10000, GROUP_FROM_MAX = 9, QUOTED_BYTES = 80 };

struct reader {
    struct tl_catalogue *catalogue;
    const char *label;
    struct tl_error *err;
};

static bool fail_at(const struct reader *reader, const char *key, struct tl_yaml_place place,
                    const char *what)
{
    char quoted[QUOTED_BYTES];
    tl_quote(key, quoted, sizeof(quoted));
    return tl_yaml_fail(reader->err, reader->label, place, "%s: %s", quoted, what);
}

/* `label:line:column: "name": what`, of the value of an entry, or of its key. */
static bool fail(const struct reader *reader, const struct tl_yaml *entry, const char *what)
{
    return fail_at(reader, entry->key, entry->place, what);
}

static bool fail_at_key(const struct reader *reader, const struct tl_yaml *entry, const char *what)
{
    return fail_at(reader, entry->key, entry->key_place, what);
}

static bool fail_memory(struct tl_error *err)
{
    return tl_error_set(err, TL_ERR_NOMEM, "no memory for the languages of the pages");
}

/* ---- the head: `language:` ---- */

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

/* A text, a list of texts, or a number. */
struct head_entry {
    const char *key;
    size_t offset, size; /* of the text, or of each item of the list; size 0: it is a number */
    int64_t least, most; /* items of a list, 0: it is a text; values of a number */
    bool (*valid)(const char *text);
    const char *expected;
};

#define MEMBER(name) (((struct tl_catalogue *)NULL)->name)
#define TEXT(name)   offsetof(struct tl_catalogue, name), sizeof(MEMBER(name)), 0, 0
#define LIST(name, least)                                                                          \
    offsetof(struct tl_catalogue, name), sizeof(MEMBER(name)[0]), (least),                         \
        sizeof(MEMBER(name)) / sizeof(MEMBER(name)[0])
#define NUMBER(name, least, most) offsetof(struct tl_catalogue, name), 0, (least), (most), NULL

static const struct head_entry head_entries[] = {
    {"code", TEXT(code), is_code, "a language's code, such as ko or zh-Hant"},
    {"name", TEXT(name), is_text, "how its speakers call it, at most 63 bytes"},
    {"locale", TEXT(locale), is_code, "a locale of BCP 47, such as ar-u-nu-latn"},
    {"direction", TEXT(direction), is_direction, "ltr or rtl"},
    {"plurals", TEXT(plurals), has_rule, "a language whose plural forms are known, such as ru"},
    {"group", TEXT(group), is_text, "what stands between groups of digits, at most 7 bytes"},
    {"date", TEXT(date), is_date, "a text with {day}, {month}, {year} and {time}"},
    {"also", LIST(also, 0), is_code, "a list of at most 8 codes"},
    {"months", LIST(months, TL_CATALOGUE_MONTHS), is_text, "a list of 12 names"},
    {"group_from", NUMBER(group_from, 4, GROUP_FROM_MAX), "a number from 4 to 9"},
    {"year_add", NUMBER(year_add, -YEAR_ADD_MAX, YEAR_ADD_MAX), "a number of years"},
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

static bool read_head_texts(const struct head_entry *known, const struct tl_yaml *entry,
                            char *member)
{
    int64_t n = 0;
    if (known->most == 0)
        return copy(entry, member, known->size, known->valid);
    if (entry->kind != TL_YAML_LIST)
        return false;
    memset(member, 0, known->size * (size_t)known->most);
    for (const struct tl_yaml *item = entry->first; item != NULL; item = item->next, n++) {
        if (n == known->most ||
            !copy(item, member + (size_t)n * known->size, known->size, known->valid))
            return false;
    }
    return n >= known->least;
}

static bool read_head_number(const struct head_entry *known, const struct tl_yaml *entry,
                             char *member)
{
    char *end = NULL;
    int64_t value = entry->kind == TL_YAML_SCALAR ? strtoll(entry->text, &end, 10) : 0;
    if (end == NULL || end == entry->text || *end != '\0' || value < known->least ||
        value > known->most)
        return false;
    memcpy(member, &value, sizeof(value));
    return true;
}

static bool read_head_entry(const struct reader *reader, const struct tl_yaml *entry)
{
    for (size_t i = 0; i < sizeof(head_entries) / sizeof(head_entries[0]); i++) {
        const struct head_entry *known = &head_entries[i];
        char *member = (char *)reader->catalogue + known->offset;
        if (strcmp(entry->key, known->key) == 0)
            return (known->size == 0 ? read_head_number(known, entry, member)
                                     : read_head_texts(known, entry, member)) ||
                   fail(reader, entry, known->expected);
    }
    return fail_at_key(reader, entry, "a language has no such entry");
}

/* The names of the language's forms, for the page's script. */
static void list_forms(struct tl_catalogue *catalogue)
{
    size_t length = 0;
    for (int i = 0; i < TL_PLURALS; i++) {
        if ((tl_plural_forms(catalogue->rule) & (1U << i)) != 0)
            length +=
                (size_t)snprintf(catalogue->forms + length, sizeof(catalogue->forms) - length,
                                 "%s%s", length > 0 ? "|" : "", tl_plural_name((enum tl_plural)i));
    }
}

static bool read_head(const struct reader *reader, const struct tl_yaml *language)
{
    struct tl_catalogue *catalogue = reader->catalogue;
    for (const struct tl_yaml *entry = language->first; entry != NULL; entry = entry->next) {
        if (!read_head_entry(reader, entry))
            return false;
    }
    if (catalogue->name[0] == '\0')
        return fail_at_key(reader, language, "a new language needs a name");
    if (catalogue->locale[0] == '\0')
        snprintf(catalogue->locale, sizeof(catalogue->locale), "%s", catalogue->code);
    catalogue->rule =
        tl_plural_rule_find(catalogue->plurals[0] != '\0' ? catalogue->plurals : catalogue->code);
    if (catalogue->rule == NULL)
        return fail_at_key(
            reader, language,
            "the plural forms of this language are not known: add `plurals:` with the code of one "
            "that has the same forms");
    list_forms(catalogue);
    return true;
}

/* ---- the texts ---- */

/* A bit for "{0}" and one for "{1}"; -1 when there are other braces, or a "|", which joins forms.
 */
static int values_in(const char *text)
{
    int values = 0;
    for (; *text != '\0'; text++) {
        if (*text == '|' || *text == '}' || ((unsigned char)*text < ' ' && *text != '\n'))
            return -1;
        if (*text != '{')
            continue;
        if ((text[1] != '0' && text[1] != '1') || text[2] != '}')
            return -1;
        values |= 1 << (text[1] - '0');
        text += 2;
    }
    return values;
}

/* Reads one text or form. "one minute" needs no number, where the form is of one number only. */
static bool read_form(const struct reader *reader, struct tl_catalogue_text *source,
                      struct tl_catalogue_text *text, enum tl_plural form,
                      const struct tl_yaml *node)
{
    if (node->kind != TL_YAML_SCALAR)
        return fail(reader, node, "expected a text");
    if (strlen(node->text) > TL_CATALOGUE_TEXT_MAX)
        return fail(reader, node, "longer than 1024 bytes");
    int values = values_in(node->text);
    if (values < 0)
        return fail(reader, node, "braces are only for {0} and {1}, and \"|\" is not possible");
    if (!reader->catalogue->complete)
        source->values |= values;
    int wanted = reader->catalogue->complete ? source->values : values;
    bool may_lack = form <= TL_PLURAL_TWO;
    if ((values & ~wanted) != 0 || (values != wanted && !may_lack))
        return tl_yaml_fail(reader->err, reader->label, node->place,
                            "\"%s\": the text must hold %s, as in English", source->name,
                            wanted == 0   ? "no {0} or {1}"
                            : wanted == 1 ? "{0}, and no {1}"
                            : wanted == 2 ? "{1}, and no {0}"
                                          : "{0} and {1}");
    free(text->forms[form]);
    text->forms[form] = strdup(node->text);
    text->own = true;
    return text->forms[form] != NULL || fail_memory(reader->err);
}

static bool read_forms(const struct reader *reader, struct tl_catalogue_text *source,
                       struct tl_catalogue_text *text, const struct tl_yaml *entry)
{
    unsigned wanted = tl_plural_forms(reader->catalogue->rule);
    unsigned got = 0;
    for (const struct tl_yaml *form = entry->first; form != NULL; form = form->next) {
        int i = 0;
        while (i < TL_PLURALS && strcmp(form->key, tl_plural_name((enum tl_plural)i)) != 0)
            i++;
        if (i == TL_PLURALS || (wanted & (1U << i)) == 0)
            return tl_yaml_fail(reader->err, reader->label, form->key_place,
                                "\"%s\": not a plural form of this language; it has %s",
                                source->name, reader->catalogue->forms);
        if (!read_form(reader, source, text, (enum tl_plural)i, form))
            return false;
        got |= 1U << i;
    }
    return got == wanted || tl_yaml_fail(reader->err, reader->label, entry->place,
                                         "\"%s\": a plural form is missing; this language has %s",
                                         source->name, reader->catalogue->forms);
}

static bool read_text(const struct reader *reader, struct tl_catalogue_text *source,
                      struct tl_catalogue_text *text, const struct tl_yaml *entry)
{
    if (entry->kind == TL_YAML_MAPPING)
        return source->plural ? read_forms(reader, source, text, entry)
                              : fail(reader, entry, "this text has no plural forms");
    if (source->plural && reader->catalogue->rule->cases[0].divisor > 0)
        return tl_yaml_fail(reader->err, reader->label, entry->place,
                            "\"%s\": expected a mapping of the plural forms %s", source->name,
                            reader->catalogue->forms);
    return read_form(reader, source, text, TL_PLURAL_OTHER, entry);
}

/* A text that only the source's file can add. */
static bool add_text(const struct reader *reader, const struct tl_yaml *entry)
{
    struct tl_catalogue *source = reader->catalogue;
    if (strlen(entry->key) > NAME_MAX_BYTES || entry->key[0] == '\0')
        return fail_at_key(reader, entry, "a name has 1 to 40 bytes");
    if (source->n_texts == TL_CATALOGUE_TEXTS_MAX)
        return fail_at_key(reader, entry, "more than 512 texts");
    struct tl_catalogue_text *text = &source->texts[source->n_texts++];
    text->plural = entry->kind == TL_YAML_MAPPING;
    text->name = strdup(entry->key);
    return text->name != NULL || fail_memory(reader->err);
}

static bool read_texts(const struct reader *reader, const struct tl_yaml *texts)
{
    struct tl_catalogue *catalogue = reader->catalogue;
    if (texts->kind != TL_YAML_MAPPING)
        return fail(reader, texts, "expected a mapping of names and texts");
    for (const struct tl_yaml *entry = texts->first; entry != NULL; entry = entry->next) {
        if (!catalogue->complete && !add_text(reader, entry))
            return false;
        int i = tl_catalogue_find(catalogue, entry->key, strlen(entry->key));
        if (i < 0)
            return fail_at_key(reader, entry, "there is no text of this name");
        if (!read_text(reader, &catalogue->source->texts[i], &catalogue->texts[i], entry))
            return false;
    }
    return true;
}

/* ---- forms ---- */

/* The form of the text in this catalogue; else the source's, which always has `other`. */
static const char *form_of(const struct tl_catalogue *catalogue, size_t i, enum tl_plural form)
{
    const struct tl_catalogue_text *source = &catalogue->source->texts[i];
    const struct tl_catalogue_text *text = catalogue->texts[i].own ? &catalogue->texts[i] : source;
    if (!source->plural)
        form = TL_PLURAL_OTHER;
    if (text->forms[form] != NULL)
        return text->forms[form];
    return text->forms[TL_PLURAL_OTHER] != NULL ? text->forms[TL_PLURAL_OTHER] : "";
}

/* Joins the forms of every text that has some, for the page's script. */
static bool join_forms(struct tl_catalogue *catalogue, struct tl_error *err)
{
    const unsigned forms = tl_plural_forms(catalogue->rule);
    for (size_t i = 0; i < catalogue->n_texts; i++) {
        char joined[TL_PLURALS * (TL_CATALOGUE_TEXT_MAX + 1)];
        size_t length = 0;
        if (!catalogue->source->texts[i].plural)
            continue;
        for (int form = 0; form < TL_PLURALS; form++) {
            if ((forms & (1U << form)) != 0)
                length += (size_t)snprintf(joined + length, sizeof(joined) - length, "%s%s",
                                           length > 0 ? "|" : "",
                                           form_of(catalogue, i, (enum tl_plural)form));
        }
        free(catalogue->texts[i].joined);
        catalogue->texts[i].joined = strdup(joined);
        if (catalogue->texts[i].joined == NULL)
            return fail_memory(err);
    }
    return true;
}

/* ---- reading ---- */

struct tl_yaml *tl_catalogue_parse(const char *label, const void *bytes, size_t length,
                                   const char **code, struct tl_error *err)
{
    if (length > TL_CATALOGUE_BYTES_MAX) {
        tl_yaml_fail(err, label, (struct tl_yaml_place){1, 1}, "larger than 128 KiB");
        return NULL;
    }
    struct tl_yaml *root = tl_yaml_parse(label, bytes, length, err);
    if (root == NULL)
        return NULL;
    const bool is_mapping = root->kind == TL_YAML_MAPPING;
    const struct tl_yaml *language = is_mapping ? tl_yaml_get(root, "language") : NULL;
    const struct tl_yaml *entry = language != NULL && language->kind == TL_YAML_MAPPING
                                      ? tl_yaml_get(language, "code")
                                      : NULL;
    if (entry != NULL && entry->kind == TL_YAML_SCALAR) {
        *code = entry->text;
        return root;
    }
    tl_yaml_fail(err, label, language != NULL ? language->place : root->place, "%s",
                 is_mapping ? "a catalogue begins with `language:` and the code of the language in "
                              "it, such as `code: ko`"
                            : "expected `language:` and `texts:`");
    tl_yaml_free(&root);
    return NULL;
}

bool tl_catalogue_read(struct tl_catalogue *catalogue, const char *label,
                       const struct tl_yaml *root, struct tl_error *err)
{
    const struct reader reader = {.catalogue = catalogue, .label = label, .err = err};
    bool ok = read_head(&reader, tl_yaml_get(root, "language"));
    for (const struct tl_yaml *entry = root->first; ok && entry != NULL; entry = entry->next) {
        if (strcmp(entry->key, "texts") == 0)
            ok = read_texts(&reader, entry);
        else if (strcmp(entry->key, "language") != 0)
            ok = fail_at_key(&reader, entry, "a catalogue has only `language:` and `texts:`");
    }
    catalogue->complete = catalogue->complete || ok;
    return ok && join_forms(catalogue, err);
}

struct tl_catalogue *tl_catalogue_new(const struct tl_catalogue *source, struct tl_error *err)
{
    size_t n = source != NULL ? source->n_texts : TL_CATALOGUE_TEXTS_MAX;
    struct tl_catalogue *catalogue = calloc(1, sizeof(*catalogue));
    struct tl_catalogue_text *texts = calloc(n + 1, sizeof(*texts));
    if (catalogue == NULL || texts == NULL) {
        free(catalogue);
        free(texts);
        (void)fail_memory(err);
        return NULL;
    }
    *catalogue = (struct tl_catalogue){.direction = "ltr",
                                       .group = ",",
                                       .group_from = 4,
                                       .date = "{year}-{month}-{day} {time} UTC",
                                       .source = source != NULL ? source : catalogue,
                                       .texts = texts,
                                       .n_texts = source != NULL ? n : 0,
                                       .complete = source != NULL};
    return catalogue;
}

void tl_catalogue_free(struct tl_catalogue **catalogue)
{
    if (*catalogue == NULL)
        return;
    for (size_t i = 0; i < (*catalogue)->n_texts; i++) {
        struct tl_catalogue_text *text = &(*catalogue)->texts[i];
        for (int form = 0; form < TL_PLURALS; form++)
            free(text->forms[form]);
        free(text->name);
        free(text->joined);
    }
    free((*catalogue)->texts);
    free(*catalogue);
    *catalogue = NULL;
}

/* ---- what a catalogue says ---- */

const char *tl_catalogue_missing(const struct tl_catalogue *catalogue)
{
    for (size_t i = 0; i < catalogue->n_texts; i++) {
        if (!catalogue->texts[i].own)
            return catalogue->source->texts[i].name;
    }
    return NULL;
}

/* The bytes of the code when the range is it, or one of its dialects ("ko-KR" of "ko"); else 0. */
static size_t match(const char *code, const char *range, size_t length)
{
    size_t n = strlen(code);
    bool fits = n > 0 && length >= n && strncasecmp(range, code, n) == 0 &&
                (length == n || range[n] == '-');
    return fits ? n : 0;
}

size_t tl_catalogue_match(const struct tl_catalogue *catalogue, const char *range, size_t length)
{
    size_t best = match(catalogue->code, range, length);
    for (size_t i = 0; i < TL_CATALOGUE_ALSO_MAX; i++) {
        size_t found = match(catalogue->also[i], range, length);
        if (found > best)
            best = found;
    }
    return best;
}

int tl_catalogue_find(const struct tl_catalogue *catalogue, const char *name, size_t length)
{
    const struct tl_catalogue *source = catalogue->source;
    for (size_t i = 0; i < source->n_texts; i++) {
        const char *known = source->texts[i].name;
        if (strlen(known) == length && memcmp(known, name, length) == 0)
            return (int)i;
    }
    return -1;
}

const char *tl_catalogue_text(const struct tl_catalogue *catalogue, int text)
{
    if (catalogue->source->texts[text].plural)
        return catalogue->texts[text].joined;
    return form_of(catalogue, (size_t)text, TL_PLURAL_OTHER);
}

const char *tl_catalogue_form(const struct tl_catalogue *catalogue, int text, uint64_t number)
{
    const struct tl_plural_rule *rule =
        catalogue->texts[text].own ? catalogue->rule : catalogue->source->rule;
    return form_of(catalogue, (size_t)text, tl_plural_of(rule, number));
}
