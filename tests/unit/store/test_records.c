/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the records that functions write (common/store/records.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/store/records.h"

static void a_score_is_read_however_the_store_writes_it(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t score;
    } scores[] = {
        {"0", 0},
        {"99999999", 99999999},
        {"100000000", 100000000},
        {"1e+8", 100000000},
        {"1e+08", 100000000},
        {"1.2e+9", 1200000000},
        {"1.7637717e+12", UINT64_C(1763771700000)},
        {"281474976710657", UINT64_C(281474976710657)},
        {"9007199254740992", UINT64_C(9007199254740992)},
        {"9.007199254740992e+15", UINT64_C(9007199254740992)},
    };
    for (size_t i = 0; i < sizeof(scores) / sizeof(scores[0]); i++) {
        uint64_t score = 7;
        assert_true(tl_record_score(scores[i].text, &score));
        assert_int_equal(score, scores[i].score);
    }
}

static void what_is_no_score_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"",     "-1",  "+1",   " 1",    "1 ",
                                        "1.5",  "nan", "inf",  "1e+",   "1e+99",
                                        "0x10", "1:2", "1e-1", "1e+16", "9007199254740994"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        uint64_t score = 7;
        assert_false(tl_record_score(texts[i], &score));
        assert_int_equal(score, 7);
    }
}

static void a_place_is_a_score_in_a_lane(void **state)
{
    (void)state;
    tl_place place = 7;
    assert_false(tl_record_place("0", &place));
    assert_false(tl_record_place("", &place));
    assert_false(tl_record_place("4503599627370496", &place)); /* lane 16 */
    assert_int_equal(place, 7);
    assert_true(tl_record_place("4503599627370495", &place));
    assert_int_equal(tl_place_lane(place), 15);
    assert_true(tl_record_place("1e+8", &place));
    assert_int_equal(tl_place_seq(place), 100000000);
}

static void a_session_has_three_parts(void **state)
{
    (void)state;
    struct tl_session_record session = {0};
    assert_true(tl_record_session("281474976710657:1763771753000:1", &session));
    assert_int_equal(session.place, tl_place_make(1, 1));
    assert_int_equal(session.admitted_ms, INT64_C(1763771753000));
    assert_true(session.claimed);
    assert_true(tl_record_session("12:34:0", &session));
    assert_int_equal(session.place, 12);
    assert_false(session.claimed);
    static const char *const texts[] = {
        "",        "12",      "12:",       "12:34",    "12:34:",
        "0:34:0",  "12:34:2", "12:34:01:", "12:34:0 ", ":34:0",
        "-1:34:0", "12::0",   "nan:34:0",  "12:x:0",   "4503599627370496:34:0"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_false(tl_record_session(texts[i], &session));
    assert_int_equal(session.place, 12);
}

static void an_end_has_a_time_and_a_known_reason(void **state)
{
    (void)state;
    struct tl_end_record end = {0};
    assert_true(tl_record_end("14110174024003", &end));
    assert_int_equal(end.ended_ms, INT64_C(1763771753000));
    assert_int_equal(end.reason, TL_REASON_EXPIRED);
    assert_true(tl_record_end("13", &end));
    assert_int_equal(end.ended_ms, 1);
    assert_int_equal(end.reason, TL_REASON_ABSENT);
    assert_true(tl_record_end("14", &end));
    assert_int_equal(end.reason, TL_REASON_REMOVED);
    assert_false(tl_record_end("8", &end));
    assert_false(tl_record_end("15", &end));
    assert_false(tl_record_end("", &end));
    assert_int_equal(end.reason, TL_REASON_REMOVED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_score_is_read_however_the_store_writes_it),
        cmocka_unit_test(what_is_no_score_is_refused),
        cmocka_unit_test(a_place_is_a_score_in_a_lane),
        cmocka_unit_test(a_session_has_three_parts),
        cmocka_unit_test(an_end_has_a_time_and_a_known_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
