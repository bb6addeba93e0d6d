/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "worker/page/catalogue.h"
#include "worker/page/catalogue_head.h"
#include "worker/page/plural.h"

#include "common/config/yaml.h"

enum { TEXTS_MAX = 512, NAME_MAX_BYTES = 40, FORMS_BYTES = 40 };

struct text {
    char *name;              /* owned; only of the source */
    char *forms[TL_PLURALS]; /* owned; a text without plural forms has `other` only */
    bool plural;             /* only of the source */
    char *joined;            /* owned */
};

struct tl_catalogue {
    const struct tl_catalogue *source; /* itself, for the source */
    struct tl_catalogue_head head;
    const struct tl_plural_rule *rule;
    char forms[FORMS_BYTES];
    struct text *texts;
    size_t n_texts;
    bool complete; /* no file can add a text: all but the source while its own is read */
};

struct reader {
    struct tl_catalogue *catalogue;
    const char *label;
    struct tl_error *err;
};

static bool fail(const struct reader *reader, const struct tl_yaml *node, const char *what)
{
    return tl_catalogue_fail(reader->err, reader->label, node, what);
}

static bool fail_at_key(const struct reader *reader, const struct tl_yaml *entry, const char *what)
{
    return tl_catalogue_fail_key(reader->err, reader->label, entry, what);
}

static bool fail_memory(struct tl_error *err)
{
    return tl_error_set(err, TL_ERR_NOMEM, "no memory for the languages of the pages");
}

/* ---- the head: `language:` ---- */

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

/* The language of the file, and the rule of its plural forms. */
static bool read_head(const struct reader *reader, const struct tl_yaml *language)
{
    struct tl_catalogue *catalogue = reader->catalogue;
    const struct tl_catalogue_head *head = &catalogue->head;
    if (!tl_catalogue_head_read(&catalogue->head, reader->label, language, reader->err))
        return false;
    catalogue->rule = tl_plural_rule_find(head->plurals[0] != '\0' ? head->plurals : head->code);
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

/* The values that a text must hold: those of the source. */
static int values_of(const struct text *source)
{
    int values = 0;
    for (int i = 0; i < TL_PLURALS; i++) {
        if (source->forms[i] != NULL)
            values |= values_in(source->forms[i]);
    }
    return values;
}

/* Reads one text or form. "one minute" needs no number, where the form is of one number only. */
static bool read_form(const struct reader *reader, const struct text *source, struct text *text,
                      enum tl_plural form, const struct tl_yaml *node)
{
    if (node->kind != TL_YAML_SCALAR)
        return fail(reader, node, "expected a text");
    if (strlen(node->text) > TL_CATALOGUE_TEXT_MAX)
        return fail(reader, node, "longer than 1024 bytes");
    int values = values_in(node->text);
    if (values < 0)
        return fail(reader, node, "braces are only for {0} and {1}, and \"|\" is not possible");
    int wanted = reader->catalogue->complete ? values_of(source) : values;
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
    return text->forms[form] != NULL || fail_memory(reader->err);
}

static bool read_forms(const struct reader *reader, const struct text *source, struct text *text,
                       const struct tl_yaml *entry)
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

static bool read_text(const struct reader *reader, const struct text *source, struct text *text,
                      const struct tl_yaml *entry)
{
    if (entry->kind == TL_YAML_MAPPING)
        return source->plural ? read_forms(reader, source, text, entry)
                              : fail(reader, entry, "this text has no plural forms");
    if (source->plural && tl_plural_forms(reader->catalogue->rule) != 1U << TL_PLURAL_OTHER)
        return tl_yaml_fail(reader->err, reader->label, entry->place,
                            "\"%s\": expected a mapping of the plural forms %s", source->name,
                            reader->catalogue->forms);
    return read_form(reader, source, text, TL_PLURAL_OTHER, entry);
}

/* A text that only the source's file can add. */
static struct text *add_text(const struct reader *reader, const struct tl_yaml *entry)
{
    struct tl_catalogue *source = reader->catalogue;
    if (strlen(entry->key) > NAME_MAX_BYTES || entry->key[0] == '\0') {
        (void)fail_at_key(reader, entry, "a name has 1 to 40 bytes");
        return NULL;
    }
    if (source->n_texts == TEXTS_MAX) {
        (void)fail_at_key(reader, entry, "more than 512 texts");
        return NULL;
    }
    struct text *text = &source->texts[source->n_texts++];
    text->plural = entry->kind == TL_YAML_MAPPING;
    text->name = strdup(entry->key);
    if (text->name == NULL)
        (void)fail_memory(reader->err);
    return text->name != NULL ? text : NULL;
}

static bool read_texts(const struct reader *reader, const struct tl_yaml *texts)
{
    struct tl_catalogue *catalogue = reader->catalogue;
    if (texts->kind != TL_YAML_MAPPING)
        return fail(reader, texts, "expected a mapping of names and texts");
    for (const struct tl_yaml *entry = texts->first; entry != NULL; entry = entry->next) {
        struct text *text;
        const struct text *source;
        if (!catalogue->complete) {
            source = text = add_text(reader, entry);
            if (text == NULL)
                return false;
        } else {
            int i = tl_catalogue_find(catalogue, entry->key, strlen(entry->key));
            if (i < 0)
                return fail_at_key(reader, entry, "there is no text of this name");
            source = &catalogue->source->texts[i];
            text = &catalogue->texts[i];
        }
        if (!read_text(reader, source, text, entry))
            return false;
    }
    return true;
}

/* ---- forms ---- */

static bool is_own(const struct text *text)
{
    for (int i = 0; i < TL_PLURALS; i++) {
        if (text->forms[i] != NULL)
            return true;
    }
    return false;
}

/* The form of the text in this catalogue; else the source's, which always has `other`. */
static const char *form_of(const struct tl_catalogue *catalogue, size_t i, enum tl_plural form)
{
    const struct text *source = &catalogue->source->texts[i];
    const struct text *text = is_own(&catalogue->texts[i]) ? &catalogue->texts[i] : source;
    if (!source->plural)
        form = TL_PLURAL_OTHER;
    if (text->forms[form] != NULL)
        return text->forms[form];
    return text->forms[TL_PLURAL_OTHER] != NULL ? text->forms[TL_PLURAL_OTHER] : "";
}

/* Joins the forms of every text, for the page's script. */
static bool join_forms(struct tl_catalogue *catalogue, struct tl_error *err)
{
    for (size_t i = 0; i < catalogue->n_texts; i++) {
        char joined[TL_PLURALS * (TL_CATALOGUE_TEXT_MAX + 1)];
        size_t length = 0;
        joined[0] = '\0';
        for (int form = 0; form < TL_PLURALS && catalogue->source->texts[i].plural; form++) {
            if ((tl_plural_forms(catalogue->rule) & (1U << form)) != 0)
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

static struct tl_yaml *parse(const char *label, const void *bytes, size_t length,
                             struct tl_error *err)
{
    if (length > TL_CATALOGUE_BYTES_MAX) {
        tl_yaml_fail(err, label, (struct tl_yaml_place){1, 1}, "larger than 128 KiB");
        return NULL;
    }
    struct tl_yaml *root = tl_yaml_parse(label, bytes, length, err);
    if (root != NULL && root->kind != TL_YAML_MAPPING) {
        tl_yaml_fail(err, label, root->place, "expected `language:` and `texts:`");
        tl_yaml_free(&root);
    }
    return root;
}

bool tl_catalogue_read_code(const char *label, const void *bytes, size_t length,
                            char code[TL_LANGUAGE_CODE_MAX + 1], struct tl_error *err)
{
    struct tl_yaml *root = parse(label, bytes, length, err);
    if (root == NULL)
        return false;
    const struct tl_yaml *language = tl_yaml_get(root, "language");
    bool ok = tl_catalogue_head_code(language, code);
    if (!ok)
        tl_yaml_fail(err, label, language != NULL ? language->place : root->place,
                     "a catalogue begins with `language:` and the code of the language in it, such "
                     "as `code: ko`");
    tl_yaml_free(&root);
    return ok;
}

bool tl_catalogue_read(struct tl_catalogue *catalogue, const char *label, const void *bytes,
                       size_t length, struct tl_error *err)
{
    const struct reader reader = {.catalogue = catalogue, .label = label, .err = err};
    struct tl_yaml *root = parse(label, bytes, length, err);
    if (root == NULL)
        return false;
    bool ok = read_head(&reader, tl_yaml_get(root, "language"));
    for (const struct tl_yaml *entry = root->first; ok && entry != NULL; entry = entry->next) {
        if (strcmp(entry->key, "texts") == 0)
            ok = read_texts(&reader, entry);
        else if (strcmp(entry->key, "language") != 0)
            ok = fail_at_key(&reader, entry, "a catalogue has only `language:` and `texts:`");
    }
    tl_yaml_free(&root);
    return ok && join_forms(catalogue, err);
}

/* With room for n texts. source NULL: it is its own. */
static struct tl_catalogue *make(const struct tl_catalogue *source, size_t n, struct tl_error *err)
{
    struct tl_catalogue *catalogue = calloc(1, sizeof(*catalogue));
    struct text *texts = calloc(n > 0 ? n : 1, sizeof(*texts));
    if (catalogue == NULL || texts == NULL) {
        free(catalogue);
        free(texts);
        (void)fail_memory(err);
        return NULL;
    }
    catalogue->texts = texts;
    catalogue->source = source != NULL ? source : catalogue;
    tl_catalogue_head_defaults(&catalogue->head);
    return catalogue;
}

struct tl_catalogue *tl_catalogue_source(const char *label, const void *bytes, size_t length,
                                         struct tl_error *err)
{
    struct tl_catalogue *source = make(NULL, TEXTS_MAX, err);
    if (source != NULL && !tl_catalogue_read(source, label, bytes, length, err))
        tl_catalogue_free(&source);
    if (source != NULL)
        source->complete = true;
    return source;
}

struct tl_catalogue *tl_catalogue_new(const struct tl_catalogue *source, struct tl_error *err)
{
    struct tl_catalogue *catalogue = make(source, source->n_texts, err);
    if (catalogue == NULL)
        return NULL;
    catalogue->n_texts = source->n_texts;
    catalogue->complete = true;
    return catalogue;
}

void tl_catalogue_free(struct tl_catalogue **catalogue)
{
    if (*catalogue == NULL)
        return;
    for (size_t i = 0; i < (*catalogue)->n_texts; i++) {
        struct text *text = &(*catalogue)->texts[i];
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
        if (!is_own(&catalogue->texts[i]))
            return catalogue->source->texts[i].name;
    }
    return NULL;
}

const char *tl_catalogue_code(const struct tl_catalogue *catalogue)
{
    return catalogue->head.code;
}

const char *tl_catalogue_name(const struct tl_catalogue *catalogue)
{
    return catalogue->head.name;
}

const char *tl_catalogue_locale(const struct tl_catalogue *catalogue)
{
    return catalogue->head.locale;
}

bool tl_catalogue_right_to_left(const struct tl_catalogue *catalogue)
{
    return strcmp(catalogue->head.direction, "rtl") == 0;
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
    size_t best = match(catalogue->head.code, range, length);
    for (size_t i = 0; i < TL_CATALOGUE_ALSO_MAX; i++) {
        size_t found = match(catalogue->head.also[i], range, length);
        if (found > best)
            best = found;
    }
    return best;
}

size_t tl_catalogue_texts(const struct tl_catalogue *catalogue)
{
    return catalogue->n_texts;
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

const char *tl_catalogue_text_name(const struct tl_catalogue *catalogue, int text)
{
    return catalogue->source->texts[text].name;
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
        is_own(&catalogue->texts[text]) ? catalogue->rule : catalogue->source->rule;
    return form_of(catalogue, (size_t)text, tl_plural_of(rule, number));
}

const char *tl_catalogue_forms(const struct tl_catalogue *catalogue)
{
    return catalogue->forms;
}

const char *tl_catalogue_group(const struct tl_catalogue *catalogue)
{
    return catalogue->head.group;
}

size_t tl_catalogue_group_from(const struct tl_catalogue *catalogue)
{
    return (size_t)catalogue->head.group_from;
}

const char *tl_catalogue_date(const struct tl_catalogue *catalogue)
{
    return catalogue->head.date;
}

const char *tl_catalogue_month(const struct tl_catalogue *catalogue, unsigned month)
{
    const char *name = catalogue->head.months[month];
    return name[0] != '\0' ? name : NULL;
}

int tl_catalogue_year_add(const struct tl_catalogue *catalogue)
{
    return (int)catalogue->head.year_add;
}
