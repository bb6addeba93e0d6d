/* SPDX-License-Identifier: Apache-2.0 */
/* When the sessions of a queue are due, with the time passed in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "expirer/schedule.h"

#define NOW_MS    5000    /* local */
#define OFFSET_MS 1000000 /* the store's clock is so far ahead */

static void note(struct tl_schedule *schedule, enum tl_event_kind kind, int64_t deadline_ms)
{
    struct tl_event event = {.kind = kind, .deadline_ms = deadline_ms};
    const struct tl_event_entry entry = {.n_events = 1, .events = &event};
    tl_schedule_note(schedule, &entry);
}

static void a_new_queue_is_due_at_once(void **state)
{
    (void)state;
    const struct tl_schedule schedule = {0};
    assert_true(tl_schedule_is_due(&schedule, NOW_MS));
    assert_true(tl_schedule_deadline(&schedule) == INT64_MAX);
}

static void a_deadline_is_due_by_the_clock_of_the_store(void **state)
{
    (void)state;
    const struct tl_schedule schedule = {
        .deadline_ms = OFFSET_MS + NOW_MS, .offset_ms = OFFSET_MS, .check_ms = NOW_MS + 5000};
    assert_int_equal(tl_schedule_deadline(&schedule), NOW_MS);
    assert_false(tl_schedule_is_due(&schedule, NOW_MS - 1));
    assert_true(tl_schedule_is_due(&schedule, NOW_MS));
}

static void the_check_is_due_without_a_deadline(void **state)
{
    (void)state;
    const struct tl_schedule schedule = {.offset_ms = OFFSET_MS, .check_ms = NOW_MS};
    assert_false(tl_schedule_is_due(&schedule, NOW_MS - 1));
    assert_true(tl_schedule_is_due(&schedule, NOW_MS));
}

static void the_earliest_deadline_of_the_events_counts(void **state)
{
    (void)state;
    struct tl_schedule schedule = {0};
    note(&schedule, TL_EVENT_ADMITTED, 700);
    assert_int_equal(schedule.deadline_ms, 700);
    note(&schedule, TL_EVENT_RENEWED, 900);
    assert_int_equal(schedule.deadline_ms, 700);
    note(&schedule, TL_EVENT_RENEWED, 300);
    assert_int_equal(schedule.deadline_ms, 300);
    note(&schedule, TL_EVENT_JOINED, 100);
    assert_int_equal(schedule.deadline_ms, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_queue_is_due_at_once),
        cmocka_unit_test(a_deadline_is_due_by_the_clock_of_the_store),
        cmocka_unit_test(the_check_is_due_without_a_deadline),
        cmocka_unit_test(the_earliest_deadline_of_the_events_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
