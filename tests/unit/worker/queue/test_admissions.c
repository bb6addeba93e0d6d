/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/queue/admissions.h"

#define START INT64_C(1000000)

static void admit(struct tl_admissions *admissions, uint64_t count, int64_t now_ms)
{
    struct tl_run run = {.first = 1, .count = count};
    struct tl_event events[] = {
        {.kind = TL_EVENT_ADMITTED, .places = {.n = 1, .runs = &run}},
        {.kind = TL_EVENT_FREED, .places = {.n = 1, .runs = &run}}, /* does not count */
    };
    const struct tl_event_entry entry = {.n_events = 2, .events = events};
    tl_admissions_apply(admissions, &entry, now_ms);
}

static uint64_t minute(const struct tl_admissions *admissions, int64_t now_ms)
{
    uint64_t count;
    assert_true(tl_admissions_minute(admissions, now_ms, &count));
    return count;
}

static void test_a_minute_is_seen_before_it_is_told(void **state)
{
    (void)state;
    struct tl_admissions admissions = {.since_ms = 0};
    uint64_t count;
    assert_false(tl_admissions_minute(&admissions, START, &count));
    tl_admissions_begin(&admissions, START);
    admit(&admissions, 3, START + 1000);
    assert_false(tl_admissions_minute(&admissions, START + 59999, &count));
    assert_int_equal(minute(&admissions, START + 60000), 3);
    tl_admissions_begin(&admissions, START + 60000);
    assert_false(tl_admissions_minute(&admissions, START + 60000, &count));
}

static void test_what_is_older_is_forgotten(void **state)
{
    (void)state;
    struct tl_admissions admissions;
    tl_admissions_begin(&admissions, START);
    for (int64_t i = 0; i < 20; i++)
        admit(&admissions, 2, START + i * 10000);
    int64_t now_ms = START + 190000;
    assert_int_equal(minute(&admissions, now_ms), 14);
    assert_int_equal(minute(&admissions, now_ms + 30000), 8);
    assert_int_equal(minute(&admissions, now_ms + 70000), 0);
    admit(&admissions, 5, now_ms + INT64_C(1000000000));
    assert_int_equal(minute(&admissions, now_ms + INT64_C(1000000000)), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_minute_is_seen_before_it_is_told),
        cmocka_unit_test(test_what_is_older_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
