/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the outlook against the mathematics that it is made of. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/queue/eta.h"

/* How likely a session ends within a step, at an age in mean sessions. */
typedef double hazard(double age);

static double constant(double age)
{
    (void)age;
    return 1.0 / TL_LIFETIME_PER_MEAN;
}

static double growing(double age)
{
    return fmin(6, 0.05 + 1.5 * age * age) / TL_LIFETIME_PER_MEAN;
}

static double falling(double age)
{
    return fmax(0.12, 1.6 / (1 + 2 * age)) / TL_LIFETIME_PER_MEAN;
}

/* Sessions that run since any time, with so many ends seen. */
static struct tl_lifetimes make(hazard *hazard_at, double mean_ms, double ended)
{
    struct tl_lifetimes made = {.step_ms = mean_ms / TL_LIFETIME_PER_MEAN, .ended = ended};
    double mean = 0, square = 0, sum = 0;
    made.survival[0] = 1;
    for (int i = 0; i < 2 * TL_LIFETIME_BINS; i++) {
        double h = hazard_at((i + 0.5) / TL_LIFETIME_PER_MEAN);
        made.survival[i + 1] = made.survival[i] * exp(-h);
        double lived = (made.survival[i] - made.survival[i + 1]) / h;
        mean += lived;
        square += 2 * lived * (i + 0.5);
    }
    made.mean_ms = mean * made.step_ms;
    made.spread = square / (mean * mean) - 1;
    for (int i = 0; i <= TL_LIFETIME_BINS; i++)
        sum += made.survival[i];
    for (int i = 0; i <= TL_LIFETIME_BINS; i++)
        made.ages[i] = made.survival[i] / sum;
    return made;
}

static void near(double told_s, double computed_s)
{
    if (fabs(told_s - computed_s) > fmax(1, computed_s * 0.01))
        fail_msg("%g s is not near %g s", told_s, computed_s);
}

/* Each position that is told is within 1 % or a second of what is computed. jumps: the low end
 * does, where the sessions beyond a lowered capacity may all have ended. */
static void compare(const struct tl_lifetimes *lifetimes, const struct tl_outlook_input *input,
                    bool jumps)
{
    struct tl_outlook outlook, computed;
    struct tl_outlook_input nobody = *input;
    nobody.waiting = 0; /* what is behind the end of a line is computed */
    tl_outlook_compute(&outlook, lifetimes, input);
    tl_outlook_compute(&computed, lifetimes, &nobody);
    for (double position = 1; position <= input->waiting;
         position = ceil(fmax(position + 1, position * 1.07))) {
        struct tl_eta_range range = tl_outlook_range(&outlook, position);
        struct tl_eta_range expected = tl_outlook_range(&computed, position);
        assert_true(range.low_s <= range.median_s && range.median_s <= range.high_s);
        if (!jumps)
            near(range.low_s, expected.low_s);
        near(range.median_s, expected.median_s);
        near(range.high_s, expected.high_s);
    }
}

static void test_the_table_is_near_what_is_computed(void **state)
{
    (void)state;
    static hazard *const hazards[] = {constant, growing, falling};
    static const double capacities[] = {3, 20, 300, 5000}, lines[] = {10, 700, 20000, 300000};
    for (size_t i = 0; i < 3 * 4 * 4; i++) {
        double capacity = capacities[i / 3 % 4], waiting = lines[i / 12];
        double mean_ms = 20e3 * (double)(1 + i % 5);
        const struct tl_lifetimes lifetimes =
            make(hazards[i % 3], mean_ms, 30 + 40 * (double)(i % 7));
        struct tl_outlook_input input = {
            .waiting = waiting, .active = capacity, .capacity = capacity};
        compare(&lifetimes, &input, false);
        input.left_per_ms = capacity / mean_ms / waiting / 4; /* one in five or so */
        input.left_seen = 50;
        compare(&lifetimes, &input, false);
        input.admit_per_ms = 0.7 * capacity / mean_ms;
        compare(&lifetimes, &input, false);
        input.left_per_ms = input.admit_per_ms = 0;
        input.active = floor(0.4 * capacity);
        compare(&lifetimes, &input, false);
        input.active = 2 * capacity;
        compare(&lifetimes, &input, true);
    }
}

/* What is computed when it is asked for depends on nothing that was asked before. */
static void test_the_order_of_questions_means_nothing(void **state)
{
    (void)state;
    const struct tl_lifetimes lifetimes = make(falling, 60e3, 100);
    const struct tl_outlook_input input = {.waiting = 9000, .active = 50, .capacity = 50};
    struct tl_outlook forth, back;
    tl_outlook_compute(&forth, &lifetimes, &input);
    tl_outlook_compute(&back, &lifetimes, &input);
    for (int i = 1; i <= 10000; i++)
        (void)tl_outlook_range(&forth, i);
    for (int i = 10000; i >= 1; i--) {
        struct tl_eta_range a = tl_outlook_range(&forth, i), b = tl_outlook_range(&back, i);
        assert_memory_equal(&a, &b, sizeof(a));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_is_near_what_is_computed),
        cmocka_unit_test(test_the_order_of_questions_means_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
