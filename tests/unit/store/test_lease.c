/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of one round of leases, without a store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/store/lease.h"

#define N 40

static const struct tl_lease_round quiet = {0};
static const struct tl_lease_round renewing = {.renew = true};
static const struct tl_lease_round everything = {.renew = true, .check_all = true};
static const struct tl_lease_round by_script = {.take_all = true, .renew = true, .check_all = true};

static size_t count(const struct tl_lease *leases, size_t n, enum tl_lease_step step)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += leases[i].step == step;
    return found;
}

static void held_leases_are_renewed_and_others_checked(void **state)
{
    (void)state;
    struct tl_lease leases[4] = {[1] = {.held = true}, [2] = {.held = true}};
    size_t next = 0;
    tl_lease_plan_round(leases, 4, &everything, &next);
    assert_int_equal(leases[0].step, TL_LEASE_CHECK);
    assert_int_equal(leases[1].step, TL_LEASE_RENEW);
    assert_int_equal(leases[2].step, TL_LEASE_RENEW);
    assert_int_equal(leases[3].step, TL_LEASE_CHECK);
    tl_lease_plan_round(leases, 4, &quiet, &next);
    assert_int_equal(leases[1].step, TL_LEASE_SKIP);
    assert_int_equal(leases[0].step, TL_LEASE_CHECK);
}

static void what_may_be_out_of_date_is_asked_by_script(void **state)
{
    (void)state;
    struct tl_lease leases[4] = {[1] = {.held = true, .error.kind = TL_ERR_NOQUEUE}};
    size_t next = 0;
    tl_lease_plan_round(leases, 4, &by_script, &next);
    assert_int_equal(count(leases, 4, TL_LEASE_TAKE), 4);
    assert_int_equal(leases[1].error.kind, TL_OK);
}

static void the_few_checks_go_round_the_list(void **state)
{
    (void)state;
    struct tl_lease leases[N] = {0};
    unsigned checked[N] = {0};
    size_t next = 0;
    for (int round = 0; round < 5; round++) {
        tl_lease_plan_round(leases, N, &renewing, &next);
        assert_int_equal(count(leases, N, TL_LEASE_CHECK), TL_LEASE_CHECKS_PER_ROUND);
        for (size_t i = 0; i < N; i++)
            checked[i] += leases[i].step == TL_LEASE_CHECK;
    }
    for (size_t i = 0; i < N; i++) /* 5 * 16 checks of 40 leases */
        assert_int_equal(checked[i], 2);
}

static void a_free_lease_among_the_few_has_the_rest_checked(void **state)
{
    (void)state;
    struct tl_lease leases[N] = {[20] = {.held = true}};
    size_t next = 0;
    tl_lease_plan_round(leases, N, &renewing, &next);
    assert_false(tl_lease_plan_checks(leases, N));
    assert_int_equal(leases[0].step, TL_LEASE_CHECK);
    leases[3].free = true;
    assert_true(tl_lease_plan_checks(leases, N));
    assert_int_equal(count(leases, N, TL_LEASE_CHECK), N - 1 - TL_LEASE_CHECKS_PER_ROUND);
    assert_int_equal(leases[3].step, TL_LEASE_SKIP);
    assert_int_equal(leases[20].step, TL_LEASE_SKIP);
    assert_true(leases[3].free); /* the last step still knows it */
}

static void a_lease_of_our_own_that_ran_out_has_nothing_else_checked(void **state)
{
    (void)state;
    struct tl_lease leases[N] = {[20] = {.held = true}};
    size_t next = 0;
    tl_lease_plan_round(leases, N, &renewing, &next);
    leases[20].free = true;
    leases[20].held = false;
    assert_false(tl_lease_plan_checks(leases, N));
    assert_true(tl_lease_plan_take(leases, N));
    assert_int_equal(leases[20].step, TL_LEASE_TAKE);
}

static void only_free_leases_are_taken(void **state)
{
    (void)state;
    struct tl_lease leases[3] = {{.held = true}, {.free = true}, {.left_ms = 100}};
    assert_true(tl_lease_plan_take(leases, 3));
    assert_int_equal(leases[0].step, TL_LEASE_SKIP);
    assert_int_equal(leases[1].step, TL_LEASE_TAKE);
    assert_int_equal(leases[2].step, TL_LEASE_SKIP);
    leases[1].free = false;
    assert_false(tl_lease_plan_take(leases, 3));
    assert_int_equal(count(leases, 3, TL_LEASE_SKIP), 3);
}

static void the_next_check_comes_when_the_first_lease_runs_out(void **state)
{
    (void)state;
    struct tl_lease leases[] = {{.held = true, .left_ms = 5},
                                {.left_ms = 700},
                                {.left_ms = 300},
                                {.free = true, .left_ms = 0}};
    assert_int_equal(tl_lease_next_check_ms(leases, 4, 10000), 10301);
    leases[1].left_ms = 3;
    assert_int_equal(tl_lease_next_check_ms(leases, 4, 10000), 10000 + TL_LEASE_CHECK_MIN_MS);
    assert_int_equal(tl_lease_next_check_ms(leases, 0, 10000), 10000 + TL_LEASE_MS + 1);
}

static void a_lease_lasts_twice_as_long_as_the_longest_recent_turn(void **state)
{
    (void)state;
    int64_t length_ms = tl_lease_plan_length(TL_LEASE_MS, 0);
    assert_int_equal(length_ms, TL_LEASE_MS);
    assert_int_equal(tl_lease_plan_length(length_ms, 750), TL_LEASE_MS);
    assert_int_equal(tl_lease_plan_length(length_ms, 1000), 2000);
    length_ms = tl_lease_plan_length(length_ms, 4000);
    assert_int_equal(length_ms, 8000);
    assert_int_equal(tl_lease_plan_length(length_ms, 3900), 7800);
    length_ms = tl_lease_plan_length(length_ms, 500);
    assert_int_equal(length_ms, 6000);
    for (int i = 0; i < 5; i++)
        length_ms = tl_lease_plan_length(length_ms, 500);
    assert_int_equal(length_ms, TL_LEASE_MS);
    assert_int_equal(tl_lease_plan_length(length_ms, INT64_MAX), TL_LEASE_MAX_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_leases_are_renewed_and_others_checked),
        cmocka_unit_test(what_may_be_out_of_date_is_asked_by_script),
        cmocka_unit_test(the_few_checks_go_round_the_list),
        cmocka_unit_test(a_free_lease_among_the_few_has_the_rest_checked),
        cmocka_unit_test(a_lease_of_our_own_that_ran_out_has_nothing_else_checked),
        cmocka_unit_test(only_free_leases_are_taken),
        cmocka_unit_test(the_next_check_comes_when_the_first_lease_runs_out),
        cmocka_unit_test(a_lease_lasts_twice_as_long_as_the_longest_recent_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
