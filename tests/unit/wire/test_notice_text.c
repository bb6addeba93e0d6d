/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/wire/notice_text.h"

#define EN_KO "\x1e[en] We are open.\x1e[ko] \xec\x97\xb4\xeb\xa0\xb8\xec\x96\xb4\xec\x9a\x94."

static size_t split(const char *notice, struct tl_notice_text texts[TL_NOTICE_LANGUAGES])
{
    return tl_notice_split(notice, strlen(notice), texts);
}

static void is_text(const struct tl_notice_text *one, const char *language, const char *text)
{
    assert_string_equal(one->language, language);
    assert_int_equal(one->length, strlen(text));
    assert_memory_equal(one->text, text, one->length);
}

static void a_plain_text_is_for_everyone(void **state)
{
    (void)state;
    struct tl_notice_text texts[TL_NOTICE_LANGUAGES];
    static const char *const plain[] = {"", "We are open.", "[en] We are open.", "a [ko] b"};
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        assert_int_equal(split(plain[i], texts), 1);
        is_text(&texts[0], "", plain[i]);
        assert_true(tl_notice_check(plain[i], strlen(plain[i]), NULL));
        assert_int_equal(tl_notice_pick(texts, 1, "ko"), 0);
    }
}

static void each_language_has_its_text(void **state)
{
    (void)state;
    struct tl_notice_text texts[TL_NOTICE_LANGUAGES];
    struct tl_text notice = {0};
    struct tl_error err = {0};
    assert_int_equal(split(EN_KO, texts), 2);
    is_text(&texts[0], "en", "We are open.");
    is_text(&texts[1], "ko", "\xec\x97\xb4\xeb\xa0\xb8\xec\x96\xb4\xec\x9a\x94.");
    assert_true(tl_notice_join(texts, 2, &notice, &err));
    assert_string_equal(notice.data, EN_KO);
    assert_true(tl_notice_check(notice.data, notice.length, &err));
    tl_text_free(&notice);
}

static void a_visitor_reads_the_nearest_language(void **state)
{
    (void)state;
    struct tl_notice_text texts[TL_NOTICE_LANGUAGES];
    assert_int_equal(split("\x1e[ko] 1\x1e[pt] 2\x1e[zh-Hant] 3\x1e[en] 4", texts), 4);
    static const struct {
        const char *language;
        size_t index;
    } cases[] = {{"ko", 0},      {"ko-KR", 0},   {"pt-BR", 1}, {"zh-Hant", 2},
                 {"zh-hant", 2}, {"zh-Hans", 3}, {"fr", 3},    {NULL, 3}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(tl_notice_pick(texts, 4, cases[i].language), cases[i].index);
    assert_int_equal(tl_notice_pick(texts, 3, "fr"), 0); /* no English: the first */
}

static bool joins(const char *a, const char *text_a, const char *b, const char *text_b)
{
    struct tl_notice_text texts[2] = {{.text = text_a, .length = strlen(text_a)},
                                      {.text = text_b, .length = strlen(text_b)}};
    struct tl_text notice = {0};
    struct tl_error err = {0};
    memcpy(texts[0].language, a, strlen(a));
    memcpy(texts[1].language, b, strlen(b));
    bool ok = tl_notice_join(texts, 2, &notice, &err);
    assert_int_equal(ok ? TL_OK : TL_ERR_INVALID, err.kind);
    assert_true(ok || notice.length == 0);
    tl_text_free(&notice);
    return ok;
}

static void what_is_no_notice_is_refused(void **state)
{
    (void)state;
    char much[TL_NOTICE_TEXT_MAX + 2];
    struct tl_notice_text texts[TL_NOTICE_LANGUAGES];
    memset(much, 'x', sizeof(much));
    much[TL_NOTICE_TEXT_MAX + 1] = '\0';
    assert_true(joins("en", "a", "ko", "b"));
    assert_false(joins("en", "a", "en", "b"));
    assert_false(joins("en", "a", "", "b"));
    assert_false(joins("en", "a", "korean", "b"));
    assert_false(joins("en", "a", "ko", ""));
    assert_false(joins("en", "a", "ko", "b\x1e"));
    assert_false(joins("en", "a", "ko", much));
    assert_false(tl_notice_check(much, strlen(much), NULL));
    assert_true(tl_notice_check(much, strlen(much) - 1, NULL));
    assert_false(tl_notice_check("\x1e", 1, NULL));
    assert_false(tl_notice_check("a\x1e[en] b", 9, NULL));
    assert_false(tl_notice_check("\x1e[en]b", 6, NULL));
    assert_int_equal(tl_notice_join(texts, 0, NULL, NULL), false);
}

/* What another version may have written is shown as far as it can be. */
static void too_much_is_cut(void **state)
{
    (void)state;
    struct tl_notice_text texts[TL_NOTICE_LANGUAGES];
    char much[1000];
    for (size_t i = 0; i < sizeof(much); i++)
        much[i] = "\xec\x97\xb4"[i % 3];
    assert_int_equal(tl_notice_split(much, sizeof(much) - 1, texts), 1);
    assert_int_equal(texts[0].length, TL_NOTICE_TEXT_MAX / 3 * 3);
    assert_int_equal(split("\x1e[EN] a\x1e\x1e[en]", texts), 3);
    is_text(&texts[0], "", "[EN] a");
    is_text(&texts[1], "", "");
    is_text(&texts[2], "", "[en]");
    memset(much, 0x1e, sizeof(much));
    assert_int_equal(tl_notice_split(much, sizeof(much), texts), TL_NOTICE_LANGUAGES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_text_is_for_everyone),
        cmocka_unit_test(each_language_has_its_text),
        cmocka_unit_test(a_visitor_reads_the_nearest_language),
        cmocka_unit_test(what_is_no_notice_is_refused),
        cmocka_unit_test(too_much_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
