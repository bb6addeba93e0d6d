/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/text.h"
#include "common/base/units.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct good {
    const char *text;
    int64_t value;
};

struct bad {
    const char *text;
    const char *message;
};

static void numbers_are_read_whole(void **state)
{
    (void)state;
    static const struct good cases[] = {{"0", 0}, {"007", 7}, {"9223372036854775807", INT64_MAX}};
    uint64_t number;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_true(tl_number_parse(cases[i].text, &number, NULL));
        assert_int_equal(number, cases[i].value);
    }
    assert_true(tl_number_parse("18446744073709551615", &number, NULL));
    assert_true(number == UINT64_MAX);
}

static void bad_numbers_are_refused(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"", "\"\" is not a whole number"},
        {"-1", "\"-1\" is not a whole number"},
        {"+1", "\"+1\" is not a whole number"},
        {" 1", "\" 1\" is not a whole number"},
        {"1 ", "\"1 \" is not a whole number"},
        {"1_000", "\"1_000\" is not a whole number"},
        {"1.5", "\"1.5\" is not a whole number"},
        {"0x10", "\"0x10\" is not a whole number"},
        {"18446744073709551616", "\"18446744073709551616\" is too large a number"},
        {"99999999999999999999999", "\"99999999999999999999999\" is too large a number"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tl_error err = {0};
        uint64_t number = 42;
        assert_false(tl_number_parse(cases[i].text, &number, &err));
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(err.kind, TL_ERR_INVALID);
        assert_int_equal(number, 42);
    }
}

static void durations_are_read(void **state)
{
    (void)state;
    static const struct good cases[] = {
        {"0s", 0},
        {"250ms", 250},
        {"10s", 10000},
        {"5m", 300000},
        {"2h", 7200000},
        {"1d", 86400000},
        {"90s", 90000},
        {"7d", 604800000},
        {"106751991167d", INT64_C(9223372036828800000)},
        {"9223372036854775807ms", INT64_MAX},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t ms;
        assert_true(tl_duration_parse(cases[i].text, &ms, NULL));
        assert_true(ms == cases[i].value);
    }
}

static void bad_durations_are_refused(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"", "\"\" is not a duration such as 250ms, 10s, 5m, 2h or 1d"},
        {"10", "\"10\" is not a duration such as 250ms, 10s, 5m, 2h or 1d"},
        {"s", "\"s\" is not a duration such as 250ms, 10s, 5m, 2h or 1d"},
        {"10 s", "\"10 s\" is not a duration such as 250ms, 10s, 5m, 2h or 1d"},
        {"-1s", "\"-1s\" is not a duration such as 250ms, 10s, 5m, 2h or 1d"},
        {"1h30m", "\"1h30m\" is not a duration such as 250ms, 10s, 5m, 2h or 1d"},
        {"1w", "\"1w\" is not a duration such as 250ms, 10s, 5m, 2h or 1d"},
        {"10S", "\"10S\" is not a duration such as 250ms, 10s, 5m, 2h or 1d"},
        {"9223372036854775808ms", "\"9223372036854775808ms\" is too long a duration"},
        {"106751991168d", "\"106751991168d\" is too long a duration"},
        {"18446744073709551615d", "\"18446744073709551615d\" is too long a duration"},
        {"18446744073709551616ms", "\"18446744073709551616ms\" is too long a duration"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tl_error err = {0};
        int64_t ms = 42;
        assert_false(tl_duration_parse(cases[i].text, &ms, &err));
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(ms, 42);
    }
}

static void durations_are_written_short_and_exact(void **state)
{
    (void)state;
    static const struct good cases[] = {
        {"0s", 0},       {"1ms", 1},         {"1500ms", 1500},  {"90s", 90000},
        {"10m", 600000}, {"36h", 129600000}, {"7d", 604800000},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[TL_UNITS_TEXT_MAX];
        tl_duration_format(cases[i].value, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}

static void sizes_are_read(void **state)
{
    (void)state;
    static const struct good cases[] = {
        {"0", 0},
        {"512", 512},
        {"512B", 512},
        {"1KB", 1000},
        {"64KiB", 65536},
        {"1MB", 1000000},
        {"1MiB", 1048576},
        {"2GB", 2000000000},
        {"1GiB", 1073741824},
        {"8589934591GiB", INT64_C(9223372035781033984)},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t bytes;
        assert_true(tl_size_parse(cases[i].text, &bytes, NULL));
        assert_true(bytes == (uint64_t)cases[i].value);
    }
}

static void bad_sizes_are_refused(void **state)
{
    (void)state;
    static const struct bad cases[] = {
        {"", "\"\" is not a size such as 512, 64KiB or 1MB"},
        {"KiB", "\"KiB\" is not a size such as 512, 64KiB or 1MB"},
        {"1K", "\"1K\" is not a size such as 512, 64KiB or 1MB"},
        {"1kib", "\"1kib\" is not a size such as 512, 64KiB or 1MB"},
        {"1 MB", "\"1 MB\" is not a size such as 512, 64KiB or 1MB"},
        {"1.5MB", "\"1.5MB\" is not a size such as 512, 64KiB or 1MB"},
        {"17179869184GiB", "\"17179869184GiB\" is too large a size"},
        {"18446744073709551616", "\"18446744073709551616\" is too large a size"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tl_error err = {0};
        uint64_t bytes = 42;
        assert_false(tl_size_parse(cases[i].text, &bytes, &err));
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(bytes, 42);
    }
}

static void sizes_are_written_short_and_exact(void **state)
{
    (void)state;
    static const struct good cases[] = {
        {"0B", 0},         {"256B", 256},        {"1000B", 1000},     {"4KiB", 4096},
        {"1MiB", 1048576}, {"1025KiB", 1049600}, {"3GiB", 3221225472}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[TL_UNITS_TEXT_MAX];
        tl_size_format((uint64_t)cases[i].value, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}

static void times_are_read(void **state)
{
    (void)state;
    static const struct good cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-12-01T20:00:00+09:00", INT64_C(1796122800000)},
        {"2026-12-01T11:00:00Z", INT64_C(1796122800000)},
        {"2026-12-01t11:00:00z", INT64_C(1796122800000)},
        {"2026-12-01 11:00:00Z", INT64_C(1796122800000)},
        {"2026-12-01T07:30:00-03:30", INT64_C(1796122800000)},
        {"2026-12-01T11:00:00.25Z", INT64_C(1796122800250)},
        {"2026-12-01T11:00:00.1239999999999999999999Z", INT64_C(1796122800123)},
        {"2000-02-29T00:00:00Z", INT64_C(951782400000)},
        {"1969-12-31T23:59:59Z", -1000},
        {"2016-12-31T23:59:60Z", INT64_C(1483228800000)},
        {"2017-01-01T08:59:60+09:00", INT64_C(1483228800000)},
        {"0000-01-01T00:00:00Z", INT64_C(-62167219200000)},
        {"9999-12-31T23:59:59.999Z", INT64_C(253402300799999)},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t ms;
        assert_true(tl_time_parse(cases[i].text, &ms, NULL));
        assert_true(ms == cases[i].value);
    }
}

static void bad_times_are_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "tomorrow",
        "2026-12-01",
        "2026-12-01T20:00:00", /* whose noon? */
        "2026-12-01T20:00Z",
        "2026-12-01T20:00:00+0900",
        "2026-12-01T20:00:00+09:00 ",
        " 2026-12-01T20:00:00Z",
        "2026-13-01T20:00:00Z",
        "2026-00-01T20:00:00Z",
        "2026-12-00T20:00:00Z",
        "2026-02-29T20:00:00Z",
        "1900-02-29T20:00:00Z",
        "2026-04-31T20:00:00Z",
        "2026-12-01T24:00:00Z",
        "2026-12-01T20:60:00Z",
        "2026-12-01T20:00:61Z",
        "2026-12-01T20:00:60Z", /* a leap second at no end of a day */
        "2026-12-01T20:00:00.Z",
        "2026-12-01T20:00:00+24:00",
        "2026-12-01T20:00:00+09:60",
        "26-12-01T20:00:00Z",
        "+2026-12-01T20:00:00Z",
        "2026-12-01T20:00:00Zjunk",
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tl_error err = {0};
        int64_t ms = 42;
        assert_false(tl_time_parse(cases[i], &ms, &err));
        assert_non_null(strstr(err.text, "is not a time with an offset such as"));
        assert_int_equal(ms, 42);
    }
}

static void times_are_written_in_utc(void **state)
{
    (void)state;
    static const struct good cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-12-01T11:00:00Z", INT64_C(1796122800000)},
        {"2026-12-01T11:00:00.007Z", INT64_C(1796122800007)},
        {"1969-12-31T23:59:59.999Z", -1},
        {"0000-01-01T00:00:00Z", INT64_C(-62167219200000)},
        {"9999-12-31T23:59:59.999Z", INT64_C(253402300799999)},
        {"", INT64_C(253402300800000)},
        {"", INT64_C(-62167219200001)},
        {"", INT64_MIN},
        {"", INT64_MAX},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[TL_UNITS_TEXT_MAX];
        tl_time_format(cases[i].value, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}

static void every_day_of_the_calendar_comes_back(void **state)
{
    (void)state;
    char text[TL_UNITS_TEXT_MAX];
    for (int64_t ms = INT64_C(-62167219200000); ms < INT64_C(253402300800000);
         ms += INT64_C(86400000) * 3 + 12345678) {
        int64_t back;
        tl_time_format(ms, text, sizeof(text));
        assert_true(tl_time_parse(text, &back, NULL));
        assert_true(back == ms);
    }
}

static void quoted_text_is_short_and_harmless(void **state)
{
    (void)state;
    char quoted[64];
    tl_quote("a\nb\033[0m\xc3\xa4 \xea\xb3\xa7", quoted, sizeof(quoted));
    assert_string_equal(quoted, "\"a?b?[0m\xc3\xa4 \xea\xb3\xa7\"");
    /* NEL, right-to-left override, zero width space, a byte of no character, one cut short. */
    tl_quote("\xc2\x85|\xe2\x80\xae|\xe2\x80\x8b|\xff|\xea\xb3", quoted, sizeof(quoted));
    assert_string_equal(quoted, "\"?|?|?|?|??\"");
    char text[200];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    tl_quote(text, quoted, sizeof(quoted));
    assert_int_equal(strlen(quoted), sizeof(quoted) - 1);
    assert_string_equal(quoted + strlen(quoted) - 5, "x...\"");
    memcpy(text + 56, "\xea\xb3\xa7", 3); /* would be cut in its middle */
    tl_quote(text, quoted, sizeof(quoted));
    assert_string_equal(quoted + strlen(quoted) - 5, "x...\"");
    assert_int_equal(strlen(quoted), 1 + 56 + 4);
    memset(text + 56, 'x', 3);
    text[58] = '\0';
    tl_quote(text, quoted, sizeof(quoted));
    assert_int_equal(strlen(quoted), 60);
    assert_null(strstr(quoted, "..."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_whole),
        cmocka_unit_test(bad_numbers_are_refused),
        cmocka_unit_test(durations_are_read),
        cmocka_unit_test(bad_durations_are_refused),
        cmocka_unit_test(durations_are_written_short_and_exact),
        cmocka_unit_test(sizes_are_read),
        cmocka_unit_test(bad_sizes_are_refused),
        cmocka_unit_test(sizes_are_written_short_and_exact),
        cmocka_unit_test(times_are_read),
        cmocka_unit_test(bad_times_are_refused),
        cmocka_unit_test(times_are_written_in_utc),
        cmocka_unit_test(every_day_of_the_calendar_comes_back),
        cmocka_unit_test(quoted_text_is_short_and_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
