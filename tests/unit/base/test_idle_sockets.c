/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that wait for their client: which one is closed, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/idle_sockets.h"

enum { SOCKETS = 3, LIMIT_MS = 1000 };

struct room {
    struct tl_idle_sockets idle;
    struct tl_idle_socket sockets[SOCKETS];
    int far[SOCKETS]; /* the other ends */
};

/* Three sockets, idle since 0, 10 and 20. */
static void enter(struct room *room)
{
    *room = (struct room){0};
    for (int i = 0; i < SOCKETS; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        room->sockets[i].fd = pair[0];
        room->far[i] = pair[1];
        tl_idle_sockets_add(&room->idle, &room->sockets[i], false, (int64_t)10 * i);
    }
}

static void leave(struct room *room)
{
    for (int i = 0; i < SOCKETS; i++) {
        close(room->sockets[i].fd);
        close(room->far[i]);
    }
}

static bool is_shut(const struct room *room, int i)
{
    char byte;
    return recv(room->far[i], &byte, 1, 0) == 0;
}

static void the_oldest_goes_first(void **state)
{
    struct room room;
    (void)state;
    enter(&room);
    assert_true(tl_idle_sockets_shut_oldest(&room.idle));
    assert_true(is_shut(&room, 0) && !is_shut(&room, 1) && !is_shut(&room, 2));
    assert_false(room.sockets[0].listed);
    assert_true(tl_idle_sockets_shut_oldest(&room.idle));
    assert_true(tl_idle_sockets_shut_oldest(&room.idle));
    assert_true(is_shut(&room, 1) && is_shut(&room, 2));
    assert_false(tl_idle_sockets_shut_oldest(&room.idle));
    /* They are gone when their owner has closed them. Until then they wait for nobody. */
    tl_idle_sockets_add(&room.idle, &room.sockets[2], true, 0);
    assert_true(room.idle.n == 0 && room.idle.shut == 3);
    tl_idle_sockets_close(&room.idle, &room.sockets[2]);
    assert_int_equal(room.idle.shut, 2);
    leave(&room);
}

static void only_those_that_take_too_long_expire(void **state)
{
    struct room room;
    (void)state;
    enter(&room);
    assert_int_equal(tl_idle_sockets_expire(&room.idle, LIMIT_MS, LIMIT_MS), 0);
    assert_int_equal(tl_idle_sockets_expire(&room.idle, LIMIT_MS + 11, LIMIT_MS), 2);
    assert_true(is_shut(&room, 0) && is_shut(&room, 1) && !is_shut(&room, 2));
    leave(&room);
}

static void one_that_was_taken_out_stays_open_and_may_come_back(void **state)
{
    struct room room;
    (void)state;
    enter(&room);
    tl_idle_sockets_remove(&room.idle, &room.sockets[1]);
    tl_idle_sockets_remove(&room.idle, &room.sockets[1]); /* once is enough */
    tl_idle_sockets_remove(&room.idle, &room.sockets[0]);
    tl_idle_sockets_add(&room.idle, &room.sockets[0], false, 30);
    assert_int_equal(tl_idle_sockets_expire(&room.idle, LIMIT_MS + 25, LIMIT_MS), 1);
    assert_true(!is_shut(&room, 0) && !is_shut(&room, 1) && is_shut(&room, 2));
    tl_idle_sockets_remove(&room.idle, &room.sockets[0]);
    assert_false(tl_idle_sockets_shut_oldest(&room.idle));
    leave(&room);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_goes_first),
        cmocka_unit_test(only_those_that_take_too_long_expire),
        cmocka_unit_test(one_that_was_taken_out_stays_open_and_may_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
