/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of `tellerline plan`, with worked examples of real sites. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/words/words.h"

#include "lab/model.h"

static void assert_near(double found, double expected, double distance)
{
    if (!(found >= expected - distance && found <= expected + distance))
        fail_msg("%f is not %f", found, expected);
}

static struct tl_plan_input example(int64_t session_ms, double calls, double safety)
{
    return (struct tl_plan_input){.tps = 1000,
                                  .session_ms = session_ms,
                                  .calls = calls,
                                  .safety = safety,
                                  .margin = 0.25,
                                  .period_ms = 10000,
                                  .policy = TL_POLICY_BOTH,
                                  .crowd = {.over_ms = 600000, .peak_ms = -1}};
}

static struct tl_plan computed(const struct tl_plan_input *input)
{
    struct tl_plan plan;
    struct tl_error err = {0};
    if (!tl_plan_compute(input, &plan, &err))
        fail_msg("%s", err.text);
    return plan;
}

/* 6 calls in 300 s, of which 15 % fail and are repeated. */
static void test_repeats(void **state)
{
    (void)state;
    struct tl_plan_input input = example(300000, 6, 0);
    input.failure_rate = 0.15;
    struct tl_plan plan = computed(&input);
    assert_true(plan.calls == 6);
    assert_near(plan.calls_used, 6.9, 1e-9);
    assert_int_equal((int)plan.at_once, 43478); /* 1,000 * 300 / 6.9 */
    assert_int_equal(plan.settings.session_ttl_ms, 375000);
    assert_int_equal((int)(plan.at_once_most + 0.5), 54348); /* 1,000 * 375 / 6.9 */
    assert_near(plan.per_second, 144.93, 0.005);
    assert_int_equal((int)plan.per_period, 1449);
    assert_int_equal(plan.settings.rate.admit, 1400);
    assert_int_equal(plan.settings.capacity, 43000);

    /* The same number as visitors per period of 375 s. */
    input.period_ms = 375000;
    plan = computed(&input);
    assert_int_equal((int)(plan.per_period + 0.5), 54348);
}

/* 6 calls a minute for 4 minutes. */
static void test_calls_per_minute(void **state)
{
    (void)state;
    struct tl_plan_input input = example(240000, 6, 0.3);
    input.calls_per_ms = 60000;
    struct tl_plan plan = computed(&input);
    assert_true(plan.calls == 24);
    assert_true(plan.per_second * 60 == 2500);
    assert_int_equal((int)plan.per_period, 416);
    /* The site chose the round number 300; the planner's is 10 below it. */
    assert_int_equal(plan.settings.rate.admit, 290);
    input.safety = 0.28;
    assert_int_equal(computed(&input).settings.rate.admit, 300);

    input.period_ms = 60000;
    assert_true(computed(&input).per_period == 2500);
}

/* 10 calls in one minute; the site chose 600 of 1,000. */
static void test_one_minute(void **state)
{
    (void)state;
    struct tl_plan_input input = example(60000, 10, 0.4);
    struct tl_plan plan = computed(&input);
    assert_true(plan.per_second * 60 == 6000);
    assert_true(plan.per_period == 1000);
    assert_int_equal(plan.settings.rate.admit, 600);
    input.safety = 0;
    assert_int_equal(computed(&input).settings.rate.admit, 1000);
}

/* Two significant digits, never up, and no digit lost to a binary fraction. */
static void test_rounding(void **state)
{
    (void)state;
    static const struct {
        double tps, safety;
        uint64_t admit;
    } rows[] = {{7, 0, 7},        {99, 0, 99},     {109, 0, 100},       {1000, 0.9, 100},
                {1000, 0.3, 700}, {1999, 0, 1900}, {123456, 0, 120000}, {1000, 0.4, 600},
                {110, 0.1, 99},   {9999, 0, 9900}, {2.9, 0, 2},         {1000, 0.07, 930}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tl_plan_input input = example(10000, 10, rows[i].safety);
        input.tps = rows[i].tps;
        assert_int_equal(computed(&input).settings.rate.admit, rows[i].admit);
    }
}

static void test_policies(void **state)
{
    (void)state;
    struct tl_plan_input input = example(300000, 6, 0.3);
    struct tl_plan plan = computed(&input); /* 35,000 for 300 s: 116.7/s; 1,100 per 10 s */
    assert_true(plan.by_rate == 110 && plan.admitted == 110);
    assert_near(plan.by_capacity, 116.67, 0.005);
    assert_near(plan.admitted_least, 35000 / 375.0, 1e-9);
    assert_int_equal(tl_plan_wait_ms(1100, plan.admitted), 10000);
    assert_int_equal(tl_plan_wait_ms(0, plan.admitted), 0);

    input.policy = TL_POLICY_COUNTER;
    plan = computed(&input);
    assert_true(plan.by_rate == 0 && plan.admitted == plan.by_capacity);
    input.policy = TL_POLICY_RATE;
    plan = computed(&input);
    assert_true(plan.by_capacity == 0 && plan.admitted == 110 && plan.admitted_least == 110);

    /* Half do not come, and each holds a slot for a third of a session. */
    input.policy = TL_POLICY_COUNTER;
    input.no_shows = 0.5;
    input.claim_ttl_ms = 100000;
    plan = computed(&input);
    assert_true(plan.hold_ms == 200000);
    assert_true(plan.by_capacity == 175);

    input.capacity = 500;
    assert_int_equal(computed(&input).settings.capacity, 500);
    input.policy = TL_POLICY_RATE;
    input.admit = 70;
    assert_true(computed(&input).admitted == 7);
}

/* Longer waits get longer times, within bounds. */
static void test_times(void **state)
{
    (void)state;
    static const struct {
        uint64_t visitors;
        int64_t claim_ms, waiting_ms;
    } rows[] = {{0, 120000, 600000},
                {1000, 60000, 600000},
                {100000, 120000, 600000},  /* the last waits 15 min 9 s */
                {500000, 187000, 1140000}, /* 75 min 46 s: half a session is shorter than 5 min */
                {100000000, 187000, 3600000}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct tl_plan_input input = example(300000, 6, 0.3);
        input.crowd.visitors = rows[i].visitors;
        struct tl_plan plan = computed(&input);
        assert_int_equal(plan.settings.claim_ttl_ms, rows[i].claim_ms);
        assert_int_equal(plan.settings.waiting_ttl_ms, rows[i].waiting_ms);
    }
}

static void test_size(void **state)
{
    (void)state;
    struct tl_plan_input input = example(300000, 6, 0.3);
    assert_int_equal(computed(&input).processes, 0);

    input.crowd = (struct tl_crowd){100000, TL_CROWD_EVEN, 10000, -1};
    struct tl_plan plan = computed(&input);
    assert_true(plan.peak_joins == 10000);
    assert_int_equal(plan.processes, 6); /* 100,000 pages of 19,000 */
    assert_int_equal(plan.redis_bytes, 26000000);

    input.crowd.over_ms = 1000;
    input.crowd.shape = TL_CROWD_WAVE;
    plan = computed(&input);
    assert_true(plan.peak_joins == 200000);
    assert_int_equal(plan.processes, 10); /* 200,000 joins of 21,900 */

    input.crowd = (struct tl_crowd){10, TL_CROWD_RUSH, 10000, -1};
    plan = computed(&input);
    assert_near(plan.peak_joins, 4.07, 0.005);
    assert_int_equal(plan.processes, 2);
}

/* A master takes 280,000 joins per second, or visitors of 65 us, and is half busy at most. */
static void test_masters(void **state)
{
    (void)state;
    struct tl_plan_input input = example(300000, 6, 0.3);
    assert_int_equal(computed(&input).redis_masters, 0);

    input.crowd = (struct tl_crowd){100000, TL_CROWD_EVEN, 10000, -1};
    struct tl_plan plan = computed(&input);
    assert_near(plan.redis_share, 10000 / 280e3 + 110 * 65e-6, 1e-9);
    assert_int_equal(plan.redis_masters, 1);
    struct tl_sentences warnings;
    tl_plan_warn(&input, &plan, &warnings);
    size_t before = warnings.n;

    input.sales = 100; /* of 0.0429 each */
    plan = computed(&input);
    assert_int_equal(plan.redis_masters, 9);
    assert_int_equal(plan.peak_joins, 1000000);
    assert_int_equal(plan.processes, 527); /* 10,000,000 pages of 19,000 */
    assert_int_equal(plan.redis_bytes, 2600000000);
    tl_plan_warn(&input, &plan, &warnings);
    assert_int_equal(warnings.n, before);

    input.sales = 12; /* more than one, so a cluster, which has three */
    assert_int_equal(computed(&input).redis_masters, 3);

    /* A sale is in one master. */
    input.sales = 4;
    input.crowd.over_ms = 100;
    plan = computed(&input);
    assert_true(plan.redis_share > 3.5);
    assert_int_equal(plan.redis_masters, 4);
    tl_plan_warn(&input, &plan, &warnings);
    assert_int_equal(warnings.n, before + 1);
}

static void assert_refused(const struct tl_plan_input *input, const char *part)
{
    struct tl_plan plan;
    struct tl_error err = {0};
    assert_false(tl_plan_compute(input, &plan, &err));
    assert_int_equal(err.kind, TL_ERR_INVALID);
    if (strstr(err.text, part) == NULL)
        fail_msg("no \"%s\" in \"%s\"", part, err.text);
}

static void test_refused(void **state)
{
    (void)state;
    struct tl_plan_input input = example(300000, 6, 0.3);
    input.tps = 0;
    assert_refused(&input, "--tps is missing, for example --tps 1000");
    input = example(0, 6, 0.3);
    assert_refused(&input, "--session is missing");
    input = example(300000, 0, 0.3);
    assert_refused(&input, "--calls is missing");
    input = example(INT64_C(7) * 86400000, 6, 0.3);
    assert_refused(&input, "longer than 7d");
    input = example(300000, 6000, 0.3);
    input.tps = 10;
    assert_refused(&input, "the shortest period for one is 858s");
    input.policy = TL_POLICY_COUNTER;
    assert_refused(&input, "not even one visitor");
    input = example(300000, 1, 0);
    input.tps = 1e9;
    assert_refused(&input, "above the largest setting, 10000000");
    input.policy = TL_POLICY_RATE;
    assert_refused(&input, "shorter --period");
}

static bool warned(const struct tl_plan_input *input, const char *part)
{
    struct tl_plan plan = computed(input);
    struct tl_sentences warnings;
    tl_plan_warn(input, &plan, &warnings);
    for (size_t i = 0; i < warnings.n; i++)
        if (strstr(warnings.texts[i], part) != NULL)
            return true;
    return part[0] == '\0' && warnings.n > 0;
}

static void test_warnings(void **state)
{
    (void)state;
    const struct tl_plan_input good = example(300000, 6, 0.3);
    struct tl_plan_input input = good;
    assert_false(warned(&good, ""));
    input.safety = 0.05;
    assert_true(warned(&input, "--safety below 0.1"));
    input = good;
    input.failure_rate = 0.5;
    assert_true(warned(&input, "use 12 requests per session"));
    input = good;
    input.shape = TL_RATE_BATCHES;
    assert_true(warned(&input, "first requests alone take 1.1 s"));
    input = good;
    input.burst = 2000;
    assert_true(warned(&input, "smaller --burst"));
    input = good;
    input.policy = TL_POLICY_COUNTER;
    assert_true(warned(&input, "when the queue opens, 35,000 visitors"));
    input.policy = TL_POLICY_RATE;
    assert_true(warned(&input, "pile up"));
    input = good;
    input.admit = 1700;
    assert_true(warned(&input, "--admit 1,700 is above what the site serves: 1,666"));
    input = good;
    input.capacity = 50001;
    assert_true(warned(&input, "50,000 at once"));
    input = good;
    input.calls = 0.5;
    assert_true(warned(&input, "Less than one request"));
    input = good;
    input.no_shows = 0.1;
    input.claim_ttl_ms = 400000;
    assert_true(warned(&input, "as much as a visit") && warned(&input, "longer than session_ttl"));
    input = good;
    input.crowd.visitors = 2000000;
    assert_true(warned(&input, "would wait 5 h 3 min"));
    input = good;
    input.tps = 1.6;
    input.period_ms = 10000;
    assert_true(warned(&input, "Rounding down"));
}

static void assert_words(struct tl_words found, const char *expected)
{
    assert_string_equal(found.text, expected);
}

static void test_words(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        const char *text;
    } times[] = {{0, "0 s"},
                 {7143, "7.1 s"},
                 {9999, "10 s"},
                 {71000, "71 s"},
                 {119600, "2 min"},
                 {375000, "6 min 15 s"},
                 {3599600, "1 h"},
                 {3600000, "1 h"},
                 {7143000, "1 h 59 min"},
                 {86399000, "1 d"},
                 {277200000, "3 d 5 h"},
                 {259200000, "3 d"},
                 {10500, "11 s"},
                 {-1, "-"}};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        assert_words(tl_words_time(times[i].ms), times[i].text);
    static const struct {
        double value;
        int decimals;
        const char *text;
    } numbers[] = {{0, 0, "0"},
                   {999, 0, "999"},
                   {1000, 0, "1,000"},
                   {43478.26, 2, "43,478.26"},
                   {6.9, 4, "6.9"},
                   {6, 4, "6"},
                   {1234567, 1, "1,234,567"},
                   {100, 2, "100"},
                   {-1234.5, 1, "-1,234.5"}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        assert_words(tl_words_number(numbers[i].value, numbers[i].decimals), numbers[i].text);
    assert_words(tl_words_share(0.123), "12 %");
    assert_words(tl_words_share(0.0042), "0.4 %");
    assert_words(tl_words_share(1), "100 %");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repeats),    cmocka_unit_test(test_calls_per_minute),
        cmocka_unit_test(test_one_minute), cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_policies),   cmocka_unit_test(test_times),
        cmocka_unit_test(test_size),       cmocka_unit_test(test_masters),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
