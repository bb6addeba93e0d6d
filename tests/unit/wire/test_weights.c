/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/wire/weights.h"

static void the_text_is_read_and_written(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        uint64_t period;
    } cases[] = {
        {"", 0, 1},
        {"1", 1, 1},
        {"3,1", 2, 3},
        {"4,6,10", 3, 60},
        {"1000,999", 2, 999000},
        {"1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", 16, 720720},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_weights weights = {.n = 9};
        char text[TL_WEIGHTS_TEXT_MAX];
        assert_int_equal(tl_weights_parse(cases[i].text, strlen(cases[i].text), &weights),
                         TL_WEIGHTS_GOOD);
        assert_int_equal(weights.n, cases[i].n);
        assert_int_equal(tl_weights_period(&weights), cases[i].period);
        tl_weights_format(&weights, text);
        assert_string_equal(text, cases[i].text);
    }
}

static void what_is_no_weight_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum tl_weights_problem problem;
    } cases[] = {
        {"0", TL_WEIGHTS_NUMBER},
        {"3,0", TL_WEIGHTS_NUMBER},
        {"01", TL_WEIGHTS_NUMBER},
        {"1001", TL_WEIGHTS_NUMBER},
        {"18446744073709551617", TL_WEIGHTS_NUMBER},
        {",1", TL_WEIGHTS_NUMBER},
        {"1,", TL_WEIGHTS_NUMBER},
        {"1,,1", TL_WEIGHTS_NUMBER},
        {"3, 1", TL_WEIGHTS_NUMBER},
        {"-1", TL_WEIGHTS_NUMBER},
        {"1.5", TL_WEIGHTS_NUMBER},
        {"1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", TL_WEIGHTS_MANY},
        {"997,991,983,2", TL_WEIGHTS_PERIOD},
        {"997,991,983,977,971,967,953,947,941,937,929,919,911,907,887,883", TL_WEIGHTS_PERIOD},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tl_weights weights = {.n = 9};
        assert_int_equal(tl_weights_parse(cases[i].text, strlen(cases[i].text), &weights),
                         cases[i].problem);
        assert_int_equal(weights.n, 9);
    }
}

static void the_longest_text_fits(void **state)
{
    (void)state;
    struct tl_weights weights = {.n = TL_LANES_MAX}, read;
    char text[TL_WEIGHTS_TEXT_MAX];
    for (size_t i = 0; i < TL_LANES_MAX; i++)
        weights.of[i] = TL_WEIGHT_MAX;
    tl_weights_format(&weights, text);
    assert_int_equal(strlen(text), TL_WEIGHTS_TEXT_MAX - 1);
    assert_int_equal(tl_weights_parse(text, strlen(text), &read), TL_WEIGHTS_GOOD);
    assert_true(tl_weights_same(&weights, &read));
    read.of[15] = 1;
    assert_false(tl_weights_same(&weights, &read));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_read_and_written),
        cmocka_unit_test(what_is_no_weight_is_refused),
        cmocka_unit_test(the_longest_text_fits),
    };
    return cmocka_run_group_tests_name("weights", tests, NULL, NULL);
}
