/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/page/languages.h"

static struct tl_languages *languages;

static int load_languages(void **state)
{
    (void)state;
    languages = tl_languages_new(NULL, NULL);
    return languages == NULL ? -1 : 0;
}

static int free_languages(void **state)
{
    (void)state;
    tl_languages_free(&languages);
    return 0;
}

static void test_accept_language(void **state)
{
    (void)state;
    static const struct {
        const char *query, *cookie, *accept;
        const char *expected;
    } cases[] = {
        {NULL, NULL, NULL, "en"},
        {NULL, NULL, "", "en"},
        {NULL, NULL, "ko", "ko"},
        {NULL, NULL, "ko-KR", "ko"},
        {NULL, NULL, "KO-kr", "ko"},
        {NULL, NULL, "kok", "en"}, /* Konkani */
        {NULL, NULL, "ko-KR,ko;q=0.9,en-US;q=0.8,en;q=0.7", "ko"},
        {NULL, NULL, "en-US,en;q=0.9,ko;q=0.8", "en"},
        {NULL, NULL, "sv, ko;q=0.5, en;q=0.4", "ko"},
        {NULL, NULL, "en;q=0.4, ko;q=0.5", "ko"},
        {NULL, NULL, "en;q=0.5, ko;q=0.50", "en"}, /* the first of equals */
        {NULL, NULL, "ko;q=0, en;q=0.1", "en"},
        {NULL, NULL, "ko;q=0", "en"},
        {NULL, NULL, " ko ; q=1.000 ", "ko"},
        {NULL, NULL, "ko;q=2, en;q=0.1", "en"},
        {NULL, NULL, "ko;q=0.1234", "en"},
        {NULL, NULL, "ko;level=1", "en"},
        {NULL, NULL, "*", "en"},
        {NULL, NULL, ",,;,ko", "ko"},
        {NULL, NULL, "sv;q=0.9,;q=1,=", "en"},
        {NULL, "ko", "en", "ko"},
        {NULL, "xx", "ko", "ko"},
        {"en", "ko", "ko", "en"},
        {"../../etc", "ko", "en", "ko"},
        {"", NULL, "ko", "ko"},
        {NULL, NULL, "zh-TW", "zh-Hant"},
        {NULL, NULL, "zh-HK,zh;q=0.9", "zh-Hant"},
        {NULL, NULL, "zh-Hant-TW", "zh-Hant"},
        {NULL, NULL, "zh-CN,zh;q=0.9,en;q=0.8", "zh-Hans"},
        {NULL, NULL, "zh-Hans-SG", "zh-Hans"},
        {NULL, NULL, "zh", "zh-Hans"},
        {NULL, NULL, "iw-IL", "he"}, /* old phones */
        {NULL, NULL, "in-ID", "id"},
        {NULL, NULL, "pt-BR,pt;q=0.9", "pt"},
        {NULL, NULL, "ar-EG", "ar"},
        {NULL, NULL, "sv, tr;q=0.3", "tr"},
        {"zh-TW", NULL, NULL, "zh-Hant"},
        {NULL, NULL, "sv,sv,sv,sv,sv,sv,sv,sv,sv,sv,sv,sv,sv,sv,sv,ko", "ko"},
        {NULL, NULL, "sv,sv,sv,sv,sv,sv,sv,sv,sv,sv,sv,sv,sv,sv,sv,sv,ko", "en"}, /* a 17th */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct tl_catalogue *language =
            tl_languages_choose(languages, cases[i].query, cases[i].cookie, cases[i].accept);
        if (strcmp(language->code, cases[i].expected) != 0)
            fail_msg("case %zu (%s) gives %s", i, cases[i].accept, language->code);
    }
}

/* Every language has every text, so that no page mixes two. */
static void test_every_language_is_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < languages->n; i++) {
        const struct tl_catalogue *language = languages->all[i];
        const char *missing = tl_catalogue_missing(language);
        if (missing != NULL)
            fail_msg("%s lacks \"%s\"", language->code, missing);
        for (size_t text = 0; text < language->n_texts; text++) {
            const char *name = language->source->texts[text].name;
            assert_int_equal(tl_catalogue_find(language, name, strlen(name)), text);
            if (strcmp(name, "position_unit") != 0)
                assert_string_not_equal(tl_catalogue_text(language, (int)text), "");
        }
    }
}

static void test_english_is_the_source(void **state)
{
    (void)state;
    assert_string_equal(languages->all[0]->code, "en");
    assert_ptr_equal(tl_languages_find(languages, "en"), languages->all[0]);
    assert_null(tl_languages_find(languages, "xx"));
}

/* ---- files of an operator ---- */

#define FOLDER "/tmp/tellerline-languages-XXXXXX"
static char folder[] = FOLDER;

static int make_folder(void **state)
{
    (void)state;
    memcpy(folder, FOLDER, sizeof(folder));
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"1.yaml", "2.yaml", "note.txt"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        (void)unlink(path);
    }
    return rmdir(folder);
}

static const char *text_of(const struct tl_languages *of, const char *code, const char *name)
{
    const struct tl_catalogue *language = tl_languages_find(of, code);
    assert_non_null(language);
    return tl_catalogue_text(language, tl_catalogue_find(language, name, strlen(name)));
}

static void test_own_texts_and_languages(void **state)
{
    (void)state;
    struct tl_error err = {0};
    write_file("1.yaml", "language: {code: en}\ntexts: {waiting_head: Hold on}\n");
    write_file("2.yaml", "language: {code: sv, name: Svenska}\n"
                         "texts: {waiting_head: Du står i kön, minute: {one: \"{0} minut\", other: "
                         "\"{0} minuter\"}}\n");
    write_file("note.txt", "not read");
    struct tl_languages *own = tl_languages_new(folder, &err);
    if (own == NULL) {
        fail_msg("%s", err.text);
        return;
    }
    assert_int_equal(own->n, languages->n + 1);
    assert_string_equal(text_of(own, "en", "waiting_head"), "Hold on");
    assert_string_equal(text_of(own, "en", "active_head"), "It is your turn");
    assert_int_equal(own->all[0]->n_texts, languages->all[0]->n_texts);
    assert_string_equal(text_of(own, "sv", "waiting_head"), "Du står i kön");
    assert_string_equal(text_of(own, "sv", "active_head"), "It is your turn");
    assert_string_equal(tl_languages_choose(own, NULL, NULL, "sv-SE")->code, "sv");
    tl_languages_free(&own);
}

static void is_refused(const char *of, const char *message)
{
    struct tl_error err = {0};
    assert_null(tl_languages_new(of, &err));
    if (strstr(err.text, message) == NULL)
        fail_msg("\"%s\" instead of: %s", err.text, message);
}

static void test_wrong_files(void **state)
{
    (void)state;
    is_refused("/nowhere", "brand.languages: cannot read the folder /nowhere: No such file");
    is_refused(folder, "brand.languages: no .yaml file is in /tmp/");
    write_file("1.yaml", "language: {code: en}\ntexts: {waiting_heat: x}\n");
    is_refused(folder, "/1.yaml:2:9: \"waiting_heat\": there is no text of this name");
    write_file("1.yaml", "language: {code: en}\ntexts: {waiting_head: \"{0}\"}\n");
    is_refused(folder, "/1.yaml:2:23: \"waiting_head\": the text must hold no {0} or {1}");
    write_file("1.yaml", "language: {code: tlh, name: Klingon}\n");
    is_refused(folder,
               "/1.yaml:1:1: \"language\": the plural forms of this language are not known");
    write_file("1.yaml", "texts: {}\n");
    is_refused(folder, "/1.yaml:1:1: a catalogue begins with `language:`");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accept_language),
        cmocka_unit_test(test_every_language_is_complete),
        cmocka_unit_test(test_english_is_the_source),
        cmocka_unit_test_setup_teardown(test_own_texts_and_languages, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_wrong_files, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, load_languages, free_languages);
}
