/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/page/catalogue.h"

#define HEAD "language: {code: xx, name: X, plurals: pl}\ntexts:\n"

static const char english[] = "language:\n"
                              "  code: en\n"
                              "  name: English\n"
                              "texts:\n"
                              "  hello: \"Hello\"\n"
                              "  place: \"Place {0} of {1}\"\n"
                              "  minute: {one: \"{0} minute\", other: \"{0} minutes\"}\n";

static struct tl_catalogue *source;

/* Parses the file and reads it. */
static bool take(struct tl_catalogue *catalogue, const char *label, const char *file,
                 struct tl_error *err)
{
    const char *code;
    struct tl_yaml *root = tl_catalogue_parse(label, file, strlen(file), &code, err);
    bool ok = root != NULL && tl_catalogue_read(catalogue, label, root, err);
    tl_yaml_free(&root);
    return ok;
}

static int make_source(void **state)
{
    struct tl_error err;
    (void)state;
    source = tl_catalogue_new(NULL, &err);
    return source != NULL && take(source, "en.yaml", english, &err) ? 0 : -1;
}

static int free_source(void **state)
{
    (void)state;
    tl_catalogue_free(&source);
    return 0;
}

static struct tl_catalogue *read(const char *file)
{
    struct tl_error err;
    struct tl_catalogue *catalogue = tl_catalogue_new(source, &err);
    assert_non_null(catalogue);
    if (!take(catalogue, "x.yaml", file, &err))
        fail_msg("%s", err.text);
    return catalogue;
}

static void is_refused(const char *file, const char *message)
{
    struct tl_error err = {0};
    struct tl_catalogue *catalogue = tl_catalogue_new(source, &err);
    assert_non_null(catalogue);
    if (take(catalogue, "x.yaml", file, &err))
        fail_msg("taken, instead of: %s", message);
    assert_int_equal(err.kind, TL_ERR_INVALID);
    if (strstr(err.text, message) == NULL)
        fail_msg("\"%s\" instead of: %s", err.text, message);
    tl_catalogue_free(&catalogue);
}

static const char *text_of(const struct tl_catalogue *catalogue, const char *name)
{
    return tl_catalogue_text(catalogue, tl_catalogue_find(catalogue, name, strlen(name)));
}

static void test_reading(void **state)
{
    (void)state;
    struct tl_catalogue *polish =
        read("language:\n"
             "  code: pl\n"
             "  name: Polski\n"
             "  also: [pol]\n"
             "  group: \"\u00a0\"\n"
             "  group_from: 5\n"
             "  months: [a, b, c, d, e, f, g, h, i, j, k, l]\n"
             "  year_add: 1\n"
             "texts:\n"
             "  hello: \"Cześć\"\n"
             "  place: \"{1}, {0}\"\n"
             "  minute: {one: \"minuta\", few: \"{0} minuty\", many: \"{0} minut\"}\n");
    assert_null(tl_catalogue_missing(polish));
    assert_string_equal(polish->name, "Polski");
    assert_string_equal(polish->locale, "pl");
    assert_string_equal(polish->direction, "ltr");
    assert_string_equal(polish->group, "\u00a0");
    assert_int_equal(polish->group_from, 5);
    assert_string_equal(polish->months[11], "l");
    assert_int_equal(polish->year_add, 1);
    assert_string_equal(text_of(polish, "hello"), "Cześć");
    assert_string_equal(text_of(polish, "minute"), "minuta|{0} minuty|{0} minut");
    assert_string_equal(polish->forms, "one|few|many");
    int minute = tl_catalogue_find(polish, "minute", 6);
    assert_string_equal(tl_catalogue_form(polish, minute, 1), "minuta");
    assert_string_equal(tl_catalogue_form(polish, minute, 22), "{0} minuty");
    assert_string_equal(tl_catalogue_form(polish, minute, 12), "{0} minut");
    assert_int_equal(tl_catalogue_match(polish, "pl-PL", 5), 2);
    assert_int_equal(tl_catalogue_match(polish, "POL", 3), 3);
    assert_int_equal(tl_catalogue_match(polish, "plx", 3), 0);
    assert_int_equal(tl_catalogue_match(polish, "pl", 1), 0);
    assert_int_equal(tl_catalogue_find(polish, "minutes", 7), -1);
    assert_int_equal(tl_catalogue_find(polish, "minute", 3), -1);
    tl_catalogue_free(&polish);
}

/* A text that a language does not have is the source's, in the source's plural form. */
static void test_what_is_missing_is_english(void **state)
{
    (void)state;
    struct tl_catalogue *own = read("language: {code: ar, name: A, direction: rtl}\n");
    assert_string_equal(own->direction, "rtl");
    assert_string_equal(tl_catalogue_missing(own), "hello");
    assert_string_equal(text_of(own, "hello"), "Hello");
    assert_string_equal(own->months[0], "");
    int minute = tl_catalogue_find(own, "minute", 6);
    assert_string_equal(tl_catalogue_form(own, minute, 1), "{0} minute");
    assert_string_equal(tl_catalogue_form(own, minute, 2), "{0} minutes");
    assert_string_equal(own->forms, "zero|one|two|few|many|other");
    assert_string_equal(text_of(own, "minute"), "{0} minutes|{0} minute|{0} minutes|{0} minutes|"
                                                "{0} minutes|{0} minutes");
    tl_catalogue_free(&own);
}

/* A second file changes what it has. */
static void test_overriding(void **state)
{
    (void)state;
    static const char more[] = "language: {code: ko}\ntexts: {hello: \"여보세요\"}\n";
    struct tl_error err;
    struct tl_catalogue *korean = read("language: {code: ko, name: 한국어}\n"
                                       "texts: {hello: \"안녕\", minute: \"{0}분\"}\n");
    assert_string_equal(text_of(korean, "minute"), "{0}분");
    assert_true(take(korean, "own.yaml", more, &err));
    assert_string_equal(text_of(korean, "hello"), "여보세요");
    assert_string_equal(text_of(korean, "minute"), "{0}분");
    assert_string_equal(korean->name, "한국어");
    tl_catalogue_free(&korean);
}

static void test_wrong_texts(void **state)
{
    (void)state;
    is_refused(HEAD "  helo: x\n", "x.yaml:3:3: \"helo\": there is no text of this name");
    is_refused(HEAD "  hello: \"Hello {0}\"\n",
               "x.yaml:3:10: \"hello\": the text must hold no {0}");
    is_refused(HEAD "  place: \"{0}\"\n",
               "\"place\": the text must hold {0} and {1}, as in English");
    is_refused(HEAD "  hello: \"{name}\"\n", "braces are only for {0} and {1}");
    is_refused(HEAD "  hello: \"a|b\"\n", "\"|\" is not possible");
    is_refused(HEAD "  hello: {other: x}\n", "\"hello\": this text has no plural forms");
    is_refused(HEAD "  hello: [x]\n", "\"hello\": expected a text");
    is_refused(HEAD "  minute: \"{0} m\"\n", "expected a mapping of the plural forms one|few|many");
    is_refused(HEAD "  minute: {one: \"{0}\", few: \"{0}\"}\n", "a plural form is missing; this");
    is_refused(HEAD "  minute: {two: \"{0}\"}\n", "x.yaml:3:12: \"minute\": not a plural form of");
    is_refused(HEAD "  minute: {one: \"\", few: \"few\", many: \"{0}\"}\n",
               "must hold {0}, and no");
    is_refused(HEAD "  - x\n", "expected a mapping of names and texts");
}

static void test_wrong_heads(void **state)
{
    (void)state;
    is_refused("", "x.yaml:1:1: a catalogue begins with `language:`");
    is_refused("- x\n", "expected `language:` and `texts:`");
    is_refused("language: {code: ko}\n", "a new language needs a name");
    is_refused("language: {code: ko, name: K}\nwords: {}\n", "x.yaml:2:1: \"words\": a catalogue");
    is_refused("language: {code: ko, nam: K}\n", "x.yaml:1:22: \"nam\": a language has no such");
    is_refused("language: {code: \"k o\", name: K}\n", "\"code\": a language's code, such as");
    is_refused("language: {code: xx, name: K}\n", "add `plurals:` with the code of one");
    is_refused("language: {code: ko, name: K, plurals: xx}\n", "a language whose plural forms");
    is_refused("language: {code: ko, name: K, direction: up}\n", "\"direction\": ltr or rtl");
    is_refused("language: {code: ko, name: K, months: [a]}\n", "a list of 12 names");
    is_refused("language: {code: ko, name: K, months: a}\n", "a list of 12 names");
    is_refused("language: {code: ko, name: K, group_from: 3}\n", "a number from 4 to 9");
    is_refused("language: {code: ko, name: K, group_from: four}\n", "a number from 4 to 9");
    is_refused("language: {code: ko, name: K, date: \"{day}\"}\n", "a text with {day}, {month}");
    is_refused("language: {code: ko, name: K, date: \"{day}{month}{year}{time}{x}\"}\n", "a text");
}

static void test_codes(void **state)
{
    (void)state;
    const char *code = NULL;
    struct tl_error err;
    static const char good[] = "language: {code: zh-Hant}\n", bad[] = "language: {name: x}\n";
    struct tl_yaml *root = tl_catalogue_parse("x.yaml", good, strlen(good), &code, &err);
    assert_non_null(root);
    assert_string_equal(code, "zh-Hant");
    tl_yaml_free(&root);
    assert_null(tl_catalogue_parse("x.yaml", bad, strlen(bad), &code, &err));
    assert_non_null(strstr(err.text, "x.yaml:1:11: a catalogue begins with `language:` and"));
}

/* As CLDR's table of the rules says in its examples. */
static void test_plural_rules(void **state)
{
    (void)state;
    static const struct {
        const char *code;
        uint64_t number;
        const char *form;
    } cases[] = {
        {"ko", 1, "other"},      {"en", 1, "one"},        {"en", 0, "other"},  {"fr", 0, "one"},
        {"fr", 2, "other"},      {"fr", 1000000, "many"}, {"pt-BR", 1, "one"}, {"es", 0, "other"},
        {"es", 2000000, "many"}, {"he", 2, "two"},        {"he", 20, "other"}, {"ar", 0, "zero"},
        {"ar", 2, "two"},        {"ar", 103, "few"},      {"ar", 111, "many"}, {"ar", 100, "other"},
        {"ar", 102, "other"},    {"pl", 22, "few"},       {"pl", 21, "many"},  {"pl", 112, "many"},
        {"ru", 21, "one"},       {"ru", 11, "many"},      {"cs", 3, "few"},    {"cs", 23, "other"},
        {"hr", 21, "one"},       {"hr", 5, "other"},      {"sl", 102, "two"},  {"sl", 104, "few"},
        {"ro", 119, "few"},      {"ro", 120, "other"},    {"lt", 21, "one"},   {"lt", 22, "few"},
        {"lt", 11, "other"},     {"zh-Hant", 1, "other"}, {"hi", 0, "one"},    {"tr", 1, "one"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct tl_plural_rule *rule = tl_plural_rule_find(cases[i].code);
        assert_non_null(rule);
        enum tl_plural form = tl_plural_of(rule, cases[i].number);
        assert_true((tl_plural_forms(rule) & (1U << form)) != 0);
        if (strcmp(tl_plural_name(form), cases[i].form) != 0)
            fail_msg("case %zu gives %s", i, tl_plural_name(form));
    }
    assert_null(tl_plural_rule_find("xx"));
    assert_null(tl_plural_rule_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reading),      cmocka_unit_test(test_what_is_missing_is_english),
        cmocka_unit_test(test_overriding),   cmocka_unit_test(test_wrong_texts),
        cmocka_unit_test(test_wrong_heads),  cmocka_unit_test(test_codes),
        cmocka_unit_test(test_plural_rules),
    };
    return cmocka_run_group_tests(tests, make_source, free_source);
}
