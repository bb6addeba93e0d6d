/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as input of a loop. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "common/role/signals.h"

static void a_signal_is_read_from_the_descriptor(void **state)
{
    struct tl_signals signals;
    struct tl_error err = {0};
    (void)state;
    assert_true(tl_signals_open(&signals, &err));
    assert_int_equal(tl_signals_next(&signals), TL_SIGNAL_NONE);
    raise(SIGHUP);
    assert_true(tl_signals_wait(&signals, 1000));
    assert_int_equal(tl_signals_next(&signals), TL_SIGNAL_RELOAD);
    raise(SIGTERM);
    assert_int_equal(tl_signals_next(&signals), TL_SIGNAL_STOP);
    assert_int_equal(tl_signals_next(&signals), TL_SIGNAL_NONE);
    tl_signals_close(&signals);
    assert_int_equal(signals.fd, -1);
}

/* Otherwise a service manager that sends SIGTERM twice would see a crash. */
static void a_second_sigterm_does_not_kill_a_process_that_exits(void **state)
{
    struct tl_signals signals;
    struct tl_error err = {0};
    sigset_t set;
    const struct timespec at_once = {0};
    (void)state;
    assert_true(tl_signals_open(&signals, &err));
    tl_signals_close(&signals);
    raise(SIGTERM); /* would end this test */
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    assert_int_equal(sigtimedwait(&set, NULL, &at_once), SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_is_read_from_the_descriptor),
        cmocka_unit_test(a_second_sigterm_does_not_kill_a_process_that_exits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
