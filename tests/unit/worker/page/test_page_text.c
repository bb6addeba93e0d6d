/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "worker/page/languages.h"
#include "worker/page/page_text.h"

static struct tl_languages *languages;

#define EN tl_languages_find(languages, "en")
#define KO tl_languages_find(languages, "ko")

static void is(struct tl_text *text, const char *expected)
{
    assert_false(text->failed);
    assert_string_equal(text->data != NULL ? text->data : "", expected);
    tl_text_free(text);
}

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
    struct tl_text text = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tl_write_number(cases[i].number, EN, &text);
        is(&text, cases[i].text);
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
    struct tl_text text = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tl_write_duration(cases[i].seconds, EN, &text);
        is(&text, cases[i].english);
        tl_write_duration(cases[i].seconds, KO, &text);
        is(&text, cases[i].korean);
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
    struct tl_text text = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tl_write_range(cases[i].low, cases[i].high, EN, &text);
        is(&text, cases[i].english);
        tl_write_range(cases[i].low, cases[i].high, KO, &text);
        is(&text, cases[i].korean);
    }
}

/* A rounded range always contains the exact one. */
static void test_ranges_are_rounded_outwards(void **state)
{
    (void)state;
    struct tl_text text = {0};
    tl_write_range(601, 1201, EN, &text);
    is(&text, "about 10 to 25 minutes");
    tl_write_range(10799, 10801, EN, &text);
    is(&text, "about 2 hours 30 minutes to 3 hours 30 minutes");
}

static void test_messages(void **state)
{
    (void)state;
    struct tl_text text = {0};
    tl_page_message_format("say_waiting", EN, "12", "{0}", &text);
    is(&text, "You are number 12 in line. Estimated wait: {0}.");
    tl_page_message_format("no-such-word", EN, "1", NULL, &text);
    is(&text, "");
    assert_string_equal(tl_page_message("left", EN), "");
    assert_string_equal(tl_page_message("minute", EN), "{0} minute|{0} minutes");
    assert_string_equal(tl_page_message("minute", KO), "{0}분");
    tl_page_message_count("minute", EN, 1, &text);
    is(&text, "1 minute");
    tl_page_message_count("minute", EN, 1000, &text);
    is(&text, "1,000 minutes");
    tl_page_message_count("no-such-word", EN, 1, &text);
    is(&text, "");
}

static void test_times(void **state)
{
    (void)state;
    struct tl_text text = {0};
    tl_write_time(INT64_C(1796122800000), EN, false, &text);
    is(&text, "1 Dec 2026, 11:00 UTC");
    tl_write_time(INT64_C(1796122800000), KO, false, &text);
    is(&text, "2026년 12월 1일 11:00 UTC");
    tl_write_time(-1, KO, false, &text);
    is(&text, "");
    tl_write_clock(INT64_C(1796122801000), false, &text);
    is(&text, "11:00:01 UTC");
}

static void test_times_in_a_zone(void **state)
{
    (void)state;
    struct tl_text text = {0};
    assert_true(tl_zone_set("Asia/Seoul", NULL));
    tl_write_time(INT64_C(1796122800000), EN, true, &text);
    is(&text, "1 Dec 2026, 20:00 KST");
    tl_write_time(INT64_C(1796140800000), KO, true, &text);
    is(&text, "2026년 12월 2일 01:00 KST");
    tl_write_time(INT64_C(1796122800000), tl_languages_find(languages, "th"), true, &text);
    is(&text, "1 ธันวาคม 2569 เวลา 20:00 น. (KST)");
    tl_write_clock(INT64_C(1796122801000), true, &text);
    is(&text, "20:00:01 KST");
}

/* Some of each kind of language: forms of few and many, of two, right to left, another calendar. */
static void test_other_languages(void **state)
{
    (void)state;
    static const struct {
        const char *code, *number, *duration, *range, *date;
    } cases[] = {
        {"de", "12.345", "2 Stunden 1 Minute", "etwa 4 bis 7 Minuten",
         "1. Dezember 2026, 11:00 UTC"},
        {"fr", "12\u202f345", "2 heures 1 minute", "environ 4 à 7 minutes",
         "1 décembre 2026 à 11:00 UTC"},
        {"es", "12.345", "2 horas 1 minuto", "aprox. de 4 a 7 minutos",
         "1 de diciembre de 2026, 11:00 UTC"},
        {"pl", "12\u00a0345", "2 godz. 1 min", "ok. 4 – 7 min", "1 grudnia 2026, 11:00 UTC"},
        {"ar", "12,345", "ساعتين دقيقة واحدة", "من 4 إلى 7 دقائق تقريبًا",
         "1 ديسمبر 2026، 11:00 UTC"},
        {"he", "12,345", "שעתיים דקה אחת", "בערך 4 עד 7 דקות", "1 בדצמבר 2026, 11:00 UTC"},
        {"th", "12,345", "2 ชั่วโมง 1 นาที", "ประมาณ 4 ถึง 7 นาที", "1 ธันวาคม 2569 เวลา 11:00 น. (UTC)"},
        {"ja", "12,345", "2時間 1分", "約4～7分", "2026年12月1日 11:00 UTC"},
        {"zh-Hant", "12,345", "2 小時 1 分鐘", "約 4 至 7 分鐘", "2026年12月1日 11:00 UTC"},
    };
    struct tl_text text = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct tl_catalogue *language = tl_languages_find(languages, cases[i].code);
        assert_non_null(language);
        tl_write_number(12345, language, &text);
        is(&text, cases[i].number);
        tl_write_duration(7260, language, &text);
        is(&text, cases[i].duration);
        tl_write_range(250, 400, language, &text);
        is(&text, cases[i].range);
        tl_write_time(INT64_C(1796122800000), language, false, &text);
        is(&text, cases[i].date);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),         cmocka_unit_test(test_durations),
        cmocka_unit_test(test_ranges),          cmocka_unit_test(test_ranges_are_rounded_outwards),
        cmocka_unit_test(test_messages),        cmocka_unit_test(test_times),
        cmocka_unit_test(test_times_in_a_zone), cmocka_unit_test(test_other_languages),
    };
    return cmocka_run_group_tests(tests, load_languages, free_languages);
}
