/* SPDX-License-Identifier: Apache-2.0 */
/* What a rehearsal says about the settings, by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lab/figures.h"

enum { N = 10 };

static const struct tl_queue_settings settings = {
    .policy = TL_POLICY_BOTH, .capacity = 3, .rate.admit = 2, .rate.every_ms = 1000};

/* Ten visitors come 100 ms apart, know their place 10 ms later, and are called 600 ms apart, from
 * 1000 on. */
static struct tl_rehearsal line(struct tl_rehearsed visitors[N])
{
    for (int i = 0; i < N; i++)
        visitors[i] = (struct tl_rehearsed){.fate = TL_FATE_SERVED,
                                            .joins_ms = 100 * i,
                                            .joined_ms = 100 * i + 10,
                                            .called_ms = 1000 + 600 * i,
                                            .admitted_ms = 50000 + 600 * i,
                                            .promised_ms = -1};
    return (struct tl_rehearsal){
        .n = N, .visitors = visitors, .most_active = 3, .most_on_the_site = 3};
}

static struct tl_figures figures_of(const struct tl_rehearsal *rehearsal)
{
    struct tl_figures figures;
    tl_figures_compute(rehearsal, &settings, &figures);
    return figures;
}

static size_t broken_of(const struct tl_rehearsal *rehearsal, const char *part)
{
    struct tl_figures figures = figures_of(rehearsal);
    struct tl_sentences broken;
    tl_figures_judge(rehearsal, &settings, &figures, &broken);
    if (broken.n > 0 && strstr(broken.texts[0], part) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", broken.texts[0], part);
    return broken.n;
}

static void test_line_in_order(void **state)
{
    (void)state;
    struct tl_rehearsed visitors[N];
    struct tl_rehearsal rehearsal = line(visitors);
    struct tl_figures figures = figures_of(&rehearsal);
    assert_int_equal(figures.all.arrived, N);
    assert_int_equal(figures.joined, N);
    assert_int_equal(figures.all.admitted, N);
    assert_int_equal(figures.fates[TL_FATE_SERVED], N);
    assert_int_equal(figures.all.waits.median_ms, 1000 + 4 * 500);
    assert_int_equal(figures.all.waits.p90_ms, 1000 + 8 * 500);
    assert_int_equal(figures.all.waits.longest_ms, 1000 + 9 * 500);
    assert_int_equal(figures.per_period, 2);
    assert_true(figures.per_period_average > 1.66 && figures.per_period_average < 1.67);
    assert_int_equal(figures.overtaken, 0);
    assert_int_equal(broken_of(&rehearsal, ""), 0);
}

static void test_overtaken(void **state)
{
    (void)state;
    struct tl_rehearsed visitors[N];
    struct tl_rehearsal rehearsal = line(visitors);
    visitors[7].admitted_ms = visitors[4].admitted_ms - 1;
    assert_int_equal(figures_of(&rehearsal).overtaken, 1);
    /* 5, 6 and 7 before 4, as often as the rate allows. */
    visitors[7].admitted_ms = 50000 + 600 * 4;
    visitors[4].admitted_ms = 50000 + 600 * 7;
    assert_int_equal(figures_of(&rehearsal).overtaken, 3);
    assert_int_equal(broken_of(&rehearsal, "joined earlier"), 1);
    /* Those of another lane may pass; in that lane 7 still passes 5 and 6. */
    visitors[5].lane = visitors[6].lane = visitors[7].lane = 1;
    assert_int_equal(figures_of(&rehearsal).overtaken, 1);
    rehearsal = line(visitors);
    visitors[7].admitted_ms = visitors[4].admitted_ms - 1;
    /* Whose joins were under way at the same time may stand in either order. */
    visitors[7].joins_ms = visitors[4].joined_ms - 1;
    visitors[5].joined_ms = visitors[6].joined_ms = 900;
    assert_int_equal(figures_of(&rehearsal).overtaken, 0);
    /* Before the opening everybody may be drawn. */
    rehearsal = line(visitors);
    visitors[7].admitted_ms = visitors[4].admitted_ms - 1;
    rehearsal.opened_ms = 701;
    assert_int_equal(figures_of(&rehearsal).overtaken, 0);
    /* In the same step nobody is before another. */
    rehearsal = line(visitors);
    for (int i = 0; i < N; i++)
        visitors[i].admitted_ms = 50000;
    assert_int_equal(figures_of(&rehearsal).overtaken, 0);
}

static void test_limits(void **state)
{
    (void)state;
    struct tl_rehearsed visitors[N];
    struct tl_rehearsal rehearsal = line(visitors);
    rehearsal.most_active = 4;
    assert_int_equal(broken_of(&rehearsal, "4 are active"), 1);
    rehearsal = line(visitors);
    rehearsal.most_on_the_site = 4;
    assert_int_equal(broken_of(&rehearsal, "on the site"), 1);
    rehearsal = line(visitors);
    visitors[2].admitted_ms = 50999; /* 50000, 50600, 50999 */
    assert_int_equal(figures_of(&rehearsal).per_period, 3);
    assert_int_equal(broken_of(&rehearsal, "3 were admitted"), 1);
    visitors[2].admitted_ms = 51000;
    visitors[1].admitted_ms = 50000;
    assert_int_equal(figures_of(&rehearsal).per_period, 2);
}

static void test_promises(void **state)
{
    (void)state;
    struct tl_rehearsed visitors[N];
    struct tl_rehearsal rehearsal = line(visitors);
    visitors[0].promised_ms = 0; /* called at 1000 */
    visitors[0].low_ms = visitors[0].high_ms = 1000;
    visitors[1].promised_ms = 0; /* called at 1600 */
    visitors[1].low_ms = 0;
    visitors[1].high_ms = 1599;
    visitors[2].promised_ms = 0;
    visitors[2].called_ms = -1; /* gave up */
    visitors[2].fate = TL_FATE_GAVE_UP;
    struct tl_figures figures = figures_of(&rehearsal);
    assert_int_equal(figures.all.promises, 2);
    assert_int_equal(figures.all.promises_kept, 1);
}

static void test_other_faults(void **state)
{
    (void)state;
    struct tl_rehearsed visitors[N];
    struct tl_rehearsal rehearsal = line(visitors);
    rehearsal.set_back = 2;
    assert_int_equal(broken_of(&rehearsal, "higher position"), 1);
    rehearsal = line(visitors);
    visitors[3].fate = TL_FATE_DROPPED;
    assert_int_equal(broken_of(&rehearsal, "lost their places"), 1);
    rehearsal = line(visitors);
    visitors[3].fate = TL_FATE_FAILED;
    assert_int_equal(broken_of(&rehearsal, "errors"), 1);
    rehearsal = line(visitors);
    rehearsal.overtime = true;
    assert_int_equal(broken_of(&rehearsal, "not done"), 1);
    for (int i = 0; i < N; i++)
        visitors[i] = (struct tl_rehearsed){.fate = TL_FATE_REFUSED,
                                            .joined_ms = -1,
                                            .called_ms = -1,
                                            .admitted_ms = -1,
                                            .promised_ms = -1};
    rehearsal.overtime = false;
    assert_int_equal(broken_of(&rehearsal, "nobody could join"), 1);
}

static void test_reasons(void **state)
{
    (void)state;
    struct tl_reasons reasons = {0};
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof(name), "reason %d", i % 50);
        tl_reasons_count(&reasons, name);
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < reasons.n; i++)
        sum += reasons.list[i].count;
    assert_int_equal(reasons.n, TL_REASONS_MOST);
    assert_int_equal(sum, 100);
    assert_string_equal(reasons.list[3].name, "reason 3");
    assert_int_equal(reasons.list[3].count, 2);
    assert_string_equal(reasons.list[TL_REASONS_MOST - 1].name, "others");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_in_order), cmocka_unit_test(test_overtaken),
        cmocka_unit_test(test_limits),        cmocka_unit_test(test_promises),
        cmocka_unit_test(test_other_faults),  cmocka_unit_test(test_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
