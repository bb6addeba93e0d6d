/* SPDX-License-Identifier: Apache-2.0 */
/* When a process counts as deaf. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/process/board.h"

enum { LOOKS = 30, BEATS_PER_LOOK = 10, PATIENCE_MS = 120000 };

/* Looks until the process counts as deaf; returns after how many looks, LOOKS + 1 if it does not.
 */
static int look(struct tl_hearing *hearing, bool waiting, int64_t accepted_per_look,
                int64_t beats_per_look)
{
    for (int i = 1; i <= LOOKS; i++) {
        if (tl_hearing_lost(hearing, waiting, 100 + i * accepted_per_look,
                            1000 + i * beats_per_look))
            return i;
    }
    return LOOKS + 1;
}

static void connections_that_nobody_takes_show_it(void **state)
{
    struct tl_hearing hearing = {0};
    (void)state;
    int looks = look(&hearing, true, 0, BEATS_PER_LOOK);
    assert_int_equal(looks, TL_HEARING_LOST_MS / 500 + 1);
}

static void a_process_that_takes_some_is_busy(void **state)
{
    struct tl_hearing hearing = {0};
    (void)state;
    assert_int_equal(look(&hearing, true, 1, BEATS_PER_LOOK), LOOKS + 1);
}

static void a_process_without_visitors_is_not_judged(void **state)
{
    struct tl_hearing hearing = {0};
    (void)state;
    assert_int_equal(look(&hearing, false, 0, BEATS_PER_LOOK), LOOKS + 1);
    for (int i = 0; i < LOOKS; i++) /* none waits at every other look */
        assert_false(tl_hearing_lost(&hearing, i % 2 == 0, 100, 2000 + i * BEATS_PER_LOOK));
}

static void a_loop_that_does_not_turn_is_stuck_not_deaf(void **state)
{
    struct tl_hearing hearing = {0};
    (void)state;
    assert_int_equal(look(&hearing, true, 0, 0), LOOKS + 1);
}

static void a_connection_waits_until_it_is_taken(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);
    (void)state;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    assert_false(tl_hearing_waits(listener));
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client, (struct sockaddr *)&address, sizeof(address)), 0);
    struct pollfd arrival = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&arrival, 1, PATIENCE_MS), 1);
    assert_true(tl_hearing_waits(listener));
    int taken = accept(listener, NULL, NULL);
    assert_false(tl_hearing_waits(listener));
    close(taken);
    close(client);
    close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_that_nobody_takes_show_it),
        cmocka_unit_test(a_process_that_takes_some_is_busy),
        cmocka_unit_test(a_process_without_visitors_is_not_judged),
        cmocka_unit_test(a_loop_that_does_not_turn_is_stuck_not_deaf),
        cmocka_unit_test(a_connection_waits_until_it_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
