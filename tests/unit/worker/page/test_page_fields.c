/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/page/languages.h"
#include "worker/page/page_fields.h"

static const char *template_name(const struct tl_catalogue *catalogue, size_t i)
{
    if (i < N_FIELDS)
        return tl_page_field_names[i];
    size_t text = i - N_FIELDS;
    return text < catalogue->n_texts ? catalogue->texts[text].name : NULL;
}

/* No name of the template hides another. */
static void test_names_are_unique(void **state)
{
    (void)state;
    struct tl_languages *languages = tl_languages_new(NULL, NULL);
    assert_non_null(languages);
    const struct tl_catalogue *english = tl_languages_find(languages, "en");
    for (size_t i = 0; template_name(english, i) != NULL; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(template_name(english, i), template_name(english, j)) == 0)
                fail_msg("twice: %s", template_name(english, i));
        }
    }
    tl_languages_free(&languages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names_are_unique)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
