/* SPDX-License-Identifier: Apache-2.0 */
/* The catalogue of problem types, and its document. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/wire/refusals.h"

#define DOCUMENT "docs/integrators/problems.md"

static const struct tl_refusal_row *row_of(size_t i)
{
    return tl_refusal_row((enum tl_refusal_kind)i);
}

static void every_kind_has_a_name_of_its_own_a_status_and_sentences(void **state)
{
    (void)state;
    for (size_t i = 0; i < TL_REFUSAL_COUNT; i++) {
        const struct tl_refusal_row *row = row_of(i);
        assert_non_null(row->name);
        assert_int_equal(strspn(row->name, "abcdefghijklmnopqrstuvwxyz-"), strlen(row->name));
        assert_in_range(row->status, 400, 599);
        assert_true(strlen(row->title) > 0 && row->title[strlen(row->title) - 1] != '.');
        assert_true(strlen(row->help) > 0 && row->help[strlen(row->help) - 1] == '.');
        assert_true(row->retry_after_s > 0 || (row->status != 429 && row->status != 503));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(row->name, row_of(k)->name);
    }
}

static void a_name_has_a_page(void **state)
{
    (void)state;
    struct tl_text page = {0};
    assert_false(tl_refusal_page("", &page));
    assert_false(tl_refusal_page("no-such-kind", &page));
    assert_int_equal(page.length, 0);
    assert_true(tl_refusal_page("sold-out", &page));
    assert_string_equal(page.data,
                        "sold-out (410)\nSold out\n\nThe sale is over. Do not try again.\n");
    tl_text_free(&page);
}

/* ---- the document ---- */

/* Breaks lines as the documentation does. */
static void append_wrapped(struct tl_text *out, const char *words)
{
    enum { COLUMNS = 120 };
    for (size_t column = 0; *words != '\0';) {
        size_t length = strcspn(words, " ");
        if (column > 0 && column + 1 + length > COLUMNS)
            column = 0, tl_text_append(out, "\n");
        tl_text_append(out, "%s%.*s", column > 0 ? " " : "", (int)length, words);
        column += length + (column > 0 ? 1 : 0);
        words += length + (words[length] == ' ' ? 1 : 0);
    }
    tl_text_append(out, "\n");
}

static void append_list(struct tl_text *out)
{
    for (size_t i = 0; i < TL_REFUSAL_COUNT; i++) {
        const struct tl_refusal_row *row = row_of(i);
        tl_text_append(out, "\n## %s\n\n%u%s: %s.\n\n", row->name, row->status,
                       row->retry_after_s > 0 ? " with `Retry-After`" : "", row->title);
        append_wrapped(out, row->help);
    }
}

static void the_document_lists_them(void **state)
{
    (void)state;
    static char stored[128 * 1024];
    struct tl_text list = {0};
    FILE *file = fopen(DOCUMENT, "r");
    assert_non_null(file);
    stored[fread(stored, 1, sizeof(stored) - 1, file)] = '\0';
    fclose(file);
    append_list(&list);
    const char *begin = strstr(stored, "\n## ");
    if (begin == NULL || strcmp(begin, list.data) != 0) {
        printf("%s", list.data);
        fail_msg("%s is stale: put what stands above behind its introduction", DOCUMENT);
    }
    tl_text_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_a_name_of_its_own_a_status_and_sentences),
        cmocka_unit_test(a_name_has_a_page),
        cmocka_unit_test(the_document_lists_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
