#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/page/language.h"
#include "worker/page/page_text.h"

#define EN TL_LANGUAGE_EN
#define KO TL_LANGUAGE_KO

static void test_accept_language(void **state)
{
    (void)state;
    static const struct {
        const char *query, *cookie, *accept;
        enum tl_language expected;
    } cases[] = {
        {NULL, NULL, NULL, EN},
        {NULL, NULL, "", EN},
        {NULL, NULL, "ko", KO},
        {NULL, NULL, "ko-KR", KO},
        {NULL, NULL, "KO-kr", KO},
        {NULL, NULL, "kok", EN}, /* Konkani */
        {NULL, NULL, "ko-KR,ko;q=0.9,en-US;q=0.8,en;q=0.7", KO},
        {NULL, NULL, "en-US,en;q=0.9,ko;q=0.8", EN},
        {NULL, NULL, "fr, ko;q=0.5, en;q=0.4", KO},
        {NULL, NULL, "en;q=0.4, ko;q=0.5", KO},
        {NULL, NULL, "en;q=0.5, ko;q=0.50", EN}, /* the first of equals */
        {NULL, NULL, "ko;q=0, en;q=0.1", EN},
        {NULL, NULL, "ko;q=0", EN},
        {NULL, NULL, " ko ; q=1.000 ", KO},
        {NULL, NULL, "ko;q=2, en;q=0.1", EN},
        {NULL, NULL, "ko;q=0.1234", EN},
        {NULL, NULL, "ko;level=1", EN},
        {NULL, NULL, "*", EN},
        {NULL, NULL, ",,;,ko", KO},
        {NULL, NULL, "zh;q=0.9,;q=1,=", EN},
        {NULL, "ko", "en", KO},
        {NULL, "xx", "ko", KO},
        {"en", "ko", "ko", EN},
        {"../../etc", "ko", "en", KO},
        {"", NULL, "ko", KO},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum tl_language language =
            tl_language_choose(cases[i].query, cases[i].cookie, cases[i].accept);
        if (language != cases[i].expected)
            fail_msg("case %zu (%s) gives %s", i, cases[i].accept, tl_language_code(language));
    }
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        uint64_t number;
        const char *text;
    } cases[] = {
        {0, "0"},
        {999, "999"},
        {1000, "1,000"},
        {123456, "123,456"},
        {1234567, "1,234,567"},
        {UINT64_MAX, "18,446,744,073,709,551,615"},
    };
    char text[TL_PAGE_TEXT_MAX];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tl_write_number(cases[i].number, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}

static void test_durations(void **state)
{
    (void)state;
    static const struct {
        int64_t seconds;
        const char *english, *korean;
    } cases[] = {
        {-5, "0 seconds", "0초"},    {0, "0 seconds", "0초"},
        {1, "1 second", "1초"},      {59, "59 seconds", "59초"},
        {60, "1 minute", "1분"},     {61, "1 minute 1 second", "1분 1초"},
        {600, "10 minutes", "10분"}, {5400, "1 hour 30 minutes", "1시간 30분"},
        {3659, "1 hour", "1시간"},   {90000, "1 day 1 hour", "1일 1시간"},
        {864000, "10 days", "10일"},
    };
    char text[TL_PAGE_TEXT_MAX];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tl_write_duration(cases[i].seconds, EN, text, sizeof(text));
        assert_string_equal(text, cases[i].english);
        tl_write_duration(cases[i].seconds, KO, text, sizeof(text));
        assert_string_equal(text, cases[i].korean);
    }
}

static void test_ranges(void **state)
{
    (void)state;
    static const struct {
        int64_t low, high;
        const char *english, *korean;
    } cases[] = {
        {0, 0, "less than a minute", "1분 이내"},
        {10, 60, "less than a minute", "1분 이내"},
        {10, 61, "up to 2 minutes", "2분 이내"},
        {60, 60, "about 1 minute", "약 1분"},
        {240, 420, "about 4 to 7 minutes", "약 4~7분"},
        {299, 361, "about 4 to 7 minutes", "약 4~7분"},
        {719, 1300, "about 10 to 25 minutes", "약 10~25분"},
        {3000, 4500, "about 50 minutes to 1 hour 20 minutes", "약 50분~1시간 20분"},
        {3600, 3600, "about 1 hour", "약 1시간"},
        {7200, 10800, "about 2 to 3 hours", "약 2~3시간"},
        {9000, 12000, "about 2 hours 30 minutes to 3 hours 30 minutes", "약 2시간 30분~3시간 30분"},
        {500, 100, "about 1 to 2 minutes", "약 1~2분"}, /* nonsense is put right, not shown */
        {-9, -3, "less than a minute", "1분 이내"},
        {0, INT64_MAX, "up to 1,000 days", "1,000일 이내"},
    };
    char text[TL_PAGE_TEXT_MAX];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tl_write_range(cases[i].low, cases[i].high, EN, text, sizeof(text));
        assert_string_equal(text, cases[i].english);
        tl_write_range(cases[i].low, cases[i].high, KO, text, sizeof(text));
        assert_string_equal(text, cases[i].korean);
    }
}

/* A rounded range always contains the exact one. */
static void test_ranges_are_rounded_outwards(void **state)
{
    (void)state;
    char text[TL_PAGE_TEXT_MAX];
    tl_write_range(601, 1201, EN, text, sizeof(text));
    assert_string_equal(text, "about 10 to 25 minutes");
    tl_write_range(10799, 10801, EN, text, sizeof(text));
    assert_string_equal(text, "about 2 hours 30 minutes to 3 hours 30 minutes");
}

static void test_messages(void **state)
{
    (void)state;
    char text[TL_PAGE_TEXT_MAX];
    tl_page_message_format("say_waiting", EN, "12", "{0}", text, sizeof(text));
    assert_string_equal(text, "You are number 12 in line. Estimated wait: {0}.");
    tl_page_message_format("no-such-word", EN, "1", NULL, text, sizeof(text));
    assert_string_equal(text, "");
    char small[8];
    tl_page_message_format("left_head", KO, "", NULL, small,
                           sizeof(small)); /* whole characters only */
    assert_string_equal(small, "대기");
    assert_string_equal(tl_page_message("left", EN), "");
}

static void test_every_message_in_every_language(void **state)
{
    (void)state;
    size_t n;
    const struct tl_page_message *messages = tl_page_messages(&n);
    for (size_t i = 0; i < n; i++) {
        const char *name = messages[i].name;
        const char *english = messages[i].in[EN];
        const char *korean = messages[i].in[KO];
        assert_ptr_equal(tl_page_message(name, EN), english);
        assert_ptr_equal(tl_page_message(name, KO), korean);
        assert_non_null(english);
        assert_non_null(korean);
        assert_true(strlen(english) < TL_PAGE_TEXT_MAX / 2 &&
                    strlen(korean) < TL_PAGE_TEXT_MAX / 2);
        if (strcmp(name, "position_unit") != 0)
            assert_true(english[0] != '\0' && korean[0] != '\0');
        assert_int_equal(strstr(english, "{0}") != NULL, strstr(korean, "{0}") != NULL);
        assert_int_equal(strstr(english, "{1}") != NULL, strstr(korean, "{1}") != NULL);
    }
}

static void test_times(void **state)
{
    (void)state;
    char text[TL_PAGE_TEXT_MAX];
    tl_write_time(INT64_C(1796122800000), EN, text, sizeof(text));
    assert_string_equal(text, "1 Dec 2026, 11:00 UTC");
    tl_write_time(INT64_C(1796122800000), KO, text, sizeof(text));
    assert_string_equal(text, "2026년 12월 1일 11:00 UTC");
    tl_write_time(-1, KO, text, sizeof(text));
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accept_language),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_ranges_are_rounded_outwards),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_every_message_in_every_language),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
