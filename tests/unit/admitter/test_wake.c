/* SPDX-License-Identifier: Apache-2.0 */
/* Which events give the admitter a reason to try. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "admitter/wake.h"

/* Is an entry with one event, after which `waiting` visitors wait, a reason? */
static bool reason(enum tl_event_kind kind, uint64_t waiting, struct tl_wake *wake)
{
    struct tl_event event = {.kind = kind};
    const struct tl_event_entry entry = {.waiting = waiting, .n_events = 1, .events = &event};
    return tl_wake_reason(wake, &entry);
}

static void an_ended_session_is_a_reason_while_visitors_wait(void **state)
{
    (void)state;
    struct tl_wake wake = {0};
    assert_true(reason(TL_EVENT_FREED, 1, &wake));
    assert_int_equal(wake.capacity_left, 1);
}

static void an_ended_session_is_a_reason_where_somebody_may_have_the_next_turn(void **state)
{
    (void)state;
    struct tl_wake wake = {.overbooked = true};
    assert_true(reason(TL_EVENT_FREED, 0, &wake));
    assert_int_equal(wake.capacity_left, 1);
    wake.overbooked = false;
    assert_false(reason(TL_EVENT_FREED, 0, &wake));
}

static void capacity_that_nobody_waits_for_is_kept_for_the_next_visitor(void **state)
{
    (void)state;
    struct tl_wake wake = {0};
    assert_false(reason(TL_EVENT_JOINED, 1, &wake));
    assert_false(reason(TL_EVENT_FREED, 0, &wake));
    assert_int_equal(wake.capacity_left, 1);
    assert_true(reason(TL_EVENT_JOINED, 1, &wake));
}

static void changed_settings_are_always_a_reason(void **state)
{
    (void)state;
    struct tl_wake wake = {0};
    assert_true(reason(TL_EVENT_CONFIG, 0, &wake));
}

static void other_events_are_no_reason(void **state)
{
    (void)state;
    struct tl_wake wake = {.capacity_left = 5};
    assert_false(reason(TL_EVENT_ADMITTED, 9, &wake));
    assert_false(reason(TL_EVENT_RENEWED, 9, &wake));
    assert_false(reason(TL_EVENT_NOTICE, 9, &wake));
    assert_int_equal(wake.capacity_left, 5);
}

static void a_join_after_an_end_in_the_same_entry_is_a_reason(void **state)
{
    (void)state;
    struct tl_event events[] = {{.kind = TL_EVENT_FREED}, {.kind = TL_EVENT_JOINED}};
    const struct tl_event_entry entry = {.waiting = 0, .n_events = 2, .events = events};
    struct tl_wake wake = {0};
    assert_true(tl_wake_reason(&wake, &entry));
}

/* After FLUSHALL the capacity known before says nothing: the first join must be a reason. */
static void a_new_generation_is_a_reason(void **state)
{
    (void)state;
    struct tl_event event = {.kind = TL_EVENT_JOINED};
    struct tl_event_entry entry = {.generation = 7, .n_events = 1, .events = &event};
    struct tl_wake wake = {0};
    assert_false(tl_wake_reason(&wake, &entry));
    entry.generation = 8;
    assert_true(tl_wake_reason(&wake, &entry));
    assert_false(tl_wake_reason(&wake, &entry));
}

/* The budget of a rate is spent, or the queue is not open: the script said when to call again. */
static void before_the_next_call_is_due_only_settings_are_a_reason(void **state)
{
    (void)state;
    struct tl_wake wake = {.not_yet = true};
    assert_false(reason(TL_EVENT_FREED, 5, &wake));
    assert_false(reason(TL_EVENT_JOINED, 5, &wake));
    assert_true(reason(TL_EVENT_CONFIG, 5, &wake));
    wake.not_yet = false;
    assert_true(reason(TL_EVENT_FREED, 5, &wake));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ended_session_is_a_reason_while_visitors_wait),
        cmocka_unit_test(an_ended_session_is_a_reason_where_somebody_may_have_the_next_turn),
        cmocka_unit_test(capacity_that_nobody_waits_for_is_kept_for_the_next_visitor),
        cmocka_unit_test(changed_settings_are_always_a_reason),
        cmocka_unit_test(other_events_are_no_reason),
        cmocka_unit_test(a_join_after_an_end_in_the_same_entry_is_a_reason),
        cmocka_unit_test(a_new_generation_is_a_reason),
        cmocka_unit_test(before_the_next_call_is_due_only_settings_are_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
